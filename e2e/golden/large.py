"""Writes a file of a published model's shape with random blocks: `python3 e2e/golden/large.py gpt-oss-20b OUT.gguf [--blocks 4]`.

Benchmarks run on these. Types are the usual ones: MXFP4 experts in Q8_0 for gpt-oss, llama.cpp's Q4_K_M mixture for the others. It
needs Python alone, and writes as fast as the disk takes it: tensors repeat the same random blocks, whose scales give the values the
deviation that shapes_large.py asks for.
"""

import argparse
import math
import random
import struct

from shapes_large import SHAPES

ALIGNMENT = 32
# Random blocks that tensors repeat, each from a place of its own. No row has a multiple of a prime, so that rows differ.
BLOCKS = 65537

# Of a type: its number in files, values and bytes of a block, and for each of its half-precision scales the offset and the factor
# that gives it from the values' deviation when all other bits are random (as in app/gguf/src/synthetic/blocks.rs).
TYPES = {
    "F32": (0, 1, 4, []),
    "Q5_0": (6, 32, 22, [(0, 1 / 9.25)]),
    "Q5_1": (7, 32, 24, [(0, 1 / 9.23), (2, -15.5 / 9.23)]),
    "Q8_0": (8, 32, 34, [(0, 1 / 73.9)]),
    "Q4_K": (12, 256, 144, [(0, 1 / 258), (2, 7.5 / 258)]),
    "Q5_K": (13, 256, 176, [(0, 1 / 530), (2, 15.5 / 530)]),
    "Q6_K": (14, 256, 210, [(208, 1 / 1366)]),
    "MXFP4": (39, 32, 17, []),
}
# Deviation of a value of MXFP4 whose block's scale is 1, and what is added to the scale's exponent.
E2M1_DEVIATION, E8M0_BIAS = 2.926, 127
# Types for rows that are no multiple of 256.
NARROW = {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
# Matrices that llama.cpp's quantizer leaves alone.
PLAIN = ("ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight", "ssm_conv1d.weight")


def type_of(tensor, model):
    """As llama.cpp's quantizer chooses it."""
    name, shape = tensor["name"], tensor["shape"]
    part = name.split(".", 2)[2] if name.startswith("blk.") else name
    if len(shape) == 1 or not name.endswith(".weight") or part in PLAIN:
        return "F32"
    if model.architecture == "gpt-oss":
        return "MXFP4" if "_exps" in part else "Q8_0"
    tied = not any(other["name"] == "output.weight" for other in model.tensors)
    if part == "output.weight" or (part == "token_embd.weight" and tied):
        kind = "Q6_K"
    elif part == "attn_qkv.weight":
        kind = "Q5_K"
    elif part.startswith(("attn_v.", "ffn_down")) and more_bits(int(name.split(".")[1]), model.blocks):
        kind = "Q6_K"
    else:
        kind = "Q4_K"
    return kind if shape[0] % 256 == 0 else NARROW[kind]


def more_bits(block, blocks):
    """The first and last eighth of the blocks, and every third block in between."""
    return block < blocks // 8 or block >= 7 * blocks // 8 or (block - blocks // 8) % 3 == 2


def random_blocks(kind, mean, scale):
    """Blocks of a type, whose values deviate as uniform ones within `mean` ± `scale` do."""
    source = random.Random(f"{kind} {mean} {scale}")
    if kind == "F32":
        return struct.pack(f"<{BLOCKS}f", *(mean + scale * source.uniform(-1, 1) for _ in range(BLOCKS)))
    _, _, size, scales = TYPES[kind]
    deviation = scale / math.sqrt(3)
    data = bytearray(source.randbytes(BLOCKS * size))
    if kind == "MXFP4":
        data[0::size] = bytes([E8M0_BIAS + round(math.log2(deviation / E2M1_DEVIATION))]) * BLOCKS
    # A random sign per block makes the mean zero.
    signs = [source.choice((1, -1)) for _ in range(BLOCKS)]
    for at, factor in scales:
        halves = {sign: struct.pack("<e", sign * deviation * factor) for sign in (1, -1)}
        for byte in (0, 1):
            data[at + byte::size] = bytes(halves[sign][byte] for sign in signs)
    return bytes(data)


def write_tensor(out, kind, tensor, cache):
    _, values, size, _ = TYPES[kind]
    left = math.prod(tensor["shape"]) // values
    key = kind, tensor["mean"], tensor["scale"]
    if key not in cache:
        cache[key] = random_blocks(*key)
    chunk = memoryview(cache[key])
    start = random.Random(tensor["name"]).randrange(BLOCKS)
    while left:
        count = min(left, BLOCKS - start)
        out.write(chunk[start * size:(start + count) * size])
        left, start = left - count, 0


def string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


# Types of metadata: their number, and how one is written.
KINDS = {
    "u32": (4, lambda value: struct.pack("<I", value)),
    "i32": (5, lambda value: struct.pack("<i", value)),
    "f32": (6, lambda value: struct.pack("<f", value)),
    "bool": (7, lambda value: struct.pack("<B", value)),
    "string": (8, string),
}
ARRAY = 9


def entry(key, kind, value):
    if not kind.startswith("["):
        number, write = KINDS[kind]
        return string(key) + struct.pack("<I", number) + write(value)
    number, write = KINDS[kind[1:-1]]
    return string(key) + struct.pack("<IIQ", ARRAY, number, len(value)) + b"".join(map(write, value))


def tokenizer(vocabulary, pre):
    """All bytes, one merge, and tokens that no text has."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    tokens = [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]
    tokens += ["th", "<|end|>"]
    types = [1] * 257 + [3]
    tokens += [f"token {number}" for number in range(len(tokens), vocabulary)]
    types += [1] * (vocabulary - len(types))
    return [
        ["tokenizer.ggml.model", "string", "gpt2"], ["tokenizer.ggml.pre", "string", pre],
        ["tokenizer.ggml.tokens", "[string]", tokens], ["tokenizer.ggml.token_type", "[i32]", types],
        ["tokenizer.ggml.merges", "[string]", ["t h"]], ["tokenizer.ggml.eos_token_id", "u32", 257],
        ["tokenizer.ggml.bos_token_id", "u32", 257], ["tokenizer.ggml.add_bos_token", "bool", False],
    ]


def write(path, model, pre):
    metadata = [row for row in model.metadata if row[0] != "tokenizer.ggml.model"] + tokenizer(model.vocabulary, pre)
    header = [b"GGUF", struct.pack("<IQQ", 3, len(model.tensors), len(metadata)), *(entry(*row) for row in metadata)]
    offset, kinds = 0, []
    for tensor in model.tensors:
        kind = type_of(tensor, model)
        number, values, size, _ = TYPES[kind]
        shape = tensor["shape"]
        header.append(string(tensor["name"]) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, number, offset))
        offset += -(-math.prod(shape) // values * size // ALIGNMENT) * ALIGNMENT
        kinds.append(kind)
    raw = b"".join(header)
    cache = {}
    with open(path, "wb") as out:
        out.write(raw + bytes(-len(raw) % ALIGNMENT))
        for tensor, kind in zip(model.tensors, kinds):
            write_tensor(out, kind, tensor, cache)
            out.write(bytes(-out.tell() % ALIGNMENT))
        length = out.tell()
    parameters = sum(math.prod(tensor["shape"]) for tensor in model.tensors)
    print(f"{path}: {length} bytes, {parameters} parameters, {len(model.tensors)} tensors: "
          + ", ".join(f"{kinds.count(kind)} {kind}" for kind in TYPES if kind in kinds))
    return parameters


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("shape", choices=SHAPES)
    arguments.add_argument("out")
    arguments.add_argument("--blocks", type=int, help="fewer blocks than the model has")
    given = arguments.parse_args()
    build, blocks, pre, parameters = SHAPES[given.shape]
    wrote = write(given.out, build(given.blocks or blocks), pre)
    if not given.blocks and wrote != parameters:
        raise SystemExit(f"{given.shape} has {parameters} parameters, and this file {wrote}.")


if __name__ == "__main__":
    main()
