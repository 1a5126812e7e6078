"""Writes what the tests of app/gguf compare with, all of it from outside software: the codebooks of the IQ types, the golden
vectors of the dequantizer, and a file by PyPI `gguf` with every metadata type.

Random valid blocks of every type are turned into floats by libggml and, where it knows the type, by PyPI `gguf` too;
the two must agree bit for bit. For the types that keys and values are stored in, floats are turned into blocks as well
(app/gguf/tests/data/quantize/TYPE.bin: the floats, then the blocks). The vectors go to app/gguf/tests/data/dequantize/TYPE.bin: the blocks' bytes, then the
floats, little endian. Run through `python3 e2e/golden/make.py --dequantize`.
"""

import ctypes as c

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize, _type_traits

from llama_cpp import HERE, Library

ROOT = HERE.parent.parent
BLOCKS = 3
SEED = 20261121

# Type: values and bytes of a block, where its half-precision scales stand, its number.
TYPES = {
    "F32": (1, 4, [], 0), "F16": (1, 2, [], 1), "BF16": (1, 2, [], 30),
    "Q4_0": (32, 18, [0], 2), "Q4_1": (32, 20, [0, 2], 3), "Q5_0": (32, 22, [0], 6), "Q5_1": (32, 24, [0, 2], 7),
    "Q8_0": (32, 34, [0], 8), "Q2_K": (256, 84, [80, 82], 10), "Q3_K": (256, 110, [108], 11),
    "Q4_K": (256, 144, [0, 2], 12), "Q5_K": (256, 176, [0, 2], 13), "Q6_K": (256, 210, [208], 14),
    "IQ2_XXS": (256, 66, [0], 16), "IQ2_XS": (256, 74, [0], 17), "IQ3_XXS": (256, 98, [0], 18), "IQ1_S": (256, 50, [0], 19),
    "IQ4_NL": (32, 18, [0], 20), "IQ3_S": (256, 110, [0], 21), "IQ2_S": (256, 82, [0], 22), "IQ4_XS": (256, 136, [0], 23),
    "IQ1_M": (256, 56, [], 29), "TQ1_0": (256, 54, [52], 34), "TQ2_0": (256, 66, [64], 35), "MXFP4": (32, 17, [], 39),
    "NVFP4": (64, 36, [], 40), "Q1_0": (128, 18, [0], 41), "Q2_0": (64, 18, [0], 42),
}


def codebooks():
    """The packed grids, in the order and at the offsets that codebook.rs expects."""
    grids = [_type_traits[Kind[name]] for name in ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S")]
    return b"".join(bytes.fromhex(grid.grid_hex.decode()) for grid in grids)


def random_blocks(name, rng):
    """Random bytes, with scales that are ordinary numbers of both signs."""
    _, size, halves, _ = TYPES[name]
    if name in ("F32", "F16", "BF16"):
        values = np.concatenate([rng.standard_normal(60), [0.0, -0.0, 6e-8, -65504.0]]).astype(np.float32)
        if name == "F32":
            return values.view(np.uint8)
        if name == "F16":
            return values.astype(np.float16).view(np.uint8)
        return values.view(np.uint8).reshape(-1, 4)[:, 2:].reshape(-1)
    blocks = rng.integers(0, 256, (BLOCKS, size), np.uint8)
    for at in halves:
        scale = (rng.standard_normal(BLOCKS) * 0.02).astype(np.float16)
        blocks[:, at:at + 2] = scale.view(np.uint8).reshape(BLOCKS, 2)
    if name == "IQ1_M":
        # The scale's nibbles are the top ones of four words.
        words = blocks[:, 48:56].copy().view(np.uint16)
        scale = (rng.standard_normal(BLOCKS) * 0.02).astype(np.float16).view(np.uint16)
        for i in range(4):
            words[:, i] = (words[:, i] & 0x0FFF) | (((scale >> (4 * i)) & 15) << 12)
        blocks[:, 48:56] = words.view(np.uint8)
    if name == "MXFP4":
        # Both subnormal exponents and ordinary ones.
        blocks[:, 0] = [0, 1, 120]
    return blocks.reshape(-1)


def by_libggml(base, name, raw, count):
    out = np.empty(count, np.float32)
    row = getattr(base, "dequantize_row_" + name.lower().replace("_k", "_K"))
    row.argtypes = [c.c_void_p, c.c_void_p, c.c_int64]
    row.restype = None
    row(raw.ctypes.data, out.ctypes.data, count)
    return out


def quantized_rows(base, name, folder):
    """Blocks of floats of every size, as libggml and PyPI `gguf` store them."""
    rng = np.random.default_rng([SEED, 1000])
    sizes = np.repeat([1.0, 30.0, 0.02, 1e-4, 2e-7, 3e4], 8)[:, None]
    values = (rng.standard_normal((48, 32)) * sizes).astype(np.float32)
    values[0], values[1] = 0.0, np.eye(32, dtype=np.float32)[5] * -2.5
    blocks = np.zeros((48, TYPES[name][1]), np.uint8)
    row = getattr(base, f"quantize_row_{name.lower()}_ref")
    row.argtypes = [c.c_void_p, c.c_void_p, c.c_int64]
    row.restype = None
    row(values.ctypes.data, blocks.ctypes.data, values.size)
    if not np.array_equal(blocks, gguf.quants.quantize(values, Kind[name])):
        raise RuntimeError(f"{name}: libggml and gguf store values differently.")
    (folder / f"{name}.bin").write_bytes(values.tobytes() + blocks.tobytes())
    print(f"{name}: {values.size} values stored alike by libggml and gguf")


def every_metadata_type(path):
    """A file with a value and an array of every type, three tensors and an alignment of 64."""
    T = gguf.GGUFValueType
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_custom_alignment(64)
    numbers = {T.UINT8: 200, T.INT8: -100, T.UINT16: 60000, T.INT16: -30000, T.UINT32: 4000000000, T.INT32: -2000000000,
               T.FLOAT32: 0.5, T.UINT64: 1 << 63, T.INT64: -(1 << 62), T.FLOAT64: 0.1, T.BOOL: True, T.STRING: "grüße"}
    for kind, value in numbers.items():
        writer.add_key_value(f"one.{kind.name.lower()}", value, kind)
        writer.add_key_value(f"many.{kind.name.lower()}", [value, value, value], T.ARRAY, sub_type=kind)
    writer.add_tensor("first", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("second", np.arange(5, dtype=np.float16))
    blocks = gguf.quants.quantize(np.arange(64, dtype=np.float32).reshape(2, 32), Kind.Q8_0)
    writer.add_tensor("third", blocks, raw_dtype=Kind.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    folder = ROOT / "app/gguf/tests/data/dequantize"
    folder.mkdir(parents=True, exist_ok=True)
    (ROOT / "app/gguf/src/dequantize/codebooks.bin").write_bytes(codebooks())
    every_metadata_type(ROOT / "app/gguf/tests/data/gguf-py.gguf")
    base = c.CDLL(str(Library().folder / "libggml-base.so"))
    stored = folder.parent / "quantize"
    stored.mkdir(exist_ok=True)
    for name in ("Q8_0", "Q4_0"):
        quantized_rows(base, name, stored)
    for name, (elements, size, _, number) in TYPES.items():
        raw = np.ascontiguousarray(random_blocks(name, np.random.default_rng([SEED, number])))
        count = raw.size // size * elements
        results = []
        if name not in ("F32", "F16", "BF16"):
            results.append(("libggml", by_libggml(base, name, raw, count)))
        if name in ("F32", "F16") or name in Kind.__members__ and Kind[name] in _type_traits:
            floats = dequantize(raw.reshape(1, -1), Kind[name])
            results.append(("gguf", np.asarray(floats, np.float32).reshape(-1)))
        first = results[0][1]
        for source, other in results[1:]:
            # Equal as numbers: on the sign of zero the two differ.
            if not np.array_equal(first, other):
                raise RuntimeError(f"{name}: {results[0][0]} and {source} differ.")
        (folder / f"{name}.bin").write_bytes(raw.tobytes() + first.tobytes())
        print(f"{name}: {count} values by {' and '.join(source for source, _ in results)}")


if __name__ == "__main__":
    main()
