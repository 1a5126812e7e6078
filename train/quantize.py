"""Quantizes a GGUF file with llama.cpp, and checks that only types that Potluck runs are in a shipped file.

    python quantize.py --source out/potluck-small-F16.gguf --kind Q4_K_M --out ../public/models/potluck-small-Q4_K_M.gguf --ship
    python quantize.py --source … --kind Q2_K --out out/shadow.gguf
    python quantize.py --source ../public/models/potluck-small-Q4_K_M.gguf --kind F32 --out out/dequantized.gguf
"""

import argparse
import collections
import os

import gguf
import numpy

from llama import THREADS, Library

RUNNABLE = frozenset("F32 F16 Q8_0 Q4_0 Q4_K Q6_K".split())
LARGEST = 26_000_000
OVERRIDES = {r"attn_(q|k|v|output)\.weight": "Q6_K"}
"""The shipped file spends a megabyte more on attention, which a small model's answers depend on most."""


def dequantize(source, out):
    """The same file with every matrix in 32 bits; all other fields are copied."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        value = int(gguf.LlamaFileType.ALL_F32) if field.name == "general.file_type" else field.contents()
        writer.add_key_value(field.name, value, kind, sub_type=field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        shape = [int(n) for n in reversed(tensor.shape)]
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(shape)
        writer.add_tensor(tensor.name, values.astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def types(path):
    """How many tensors of each type the file has."""
    return collections.Counter(tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--ship", action="store_true", help="refuse types that Potluck cannot run, and files above 26 MB")
    args = parser.parse_args()
    if args.kind == "F32":
        dequantize(args.source, args.out)
    else:
        Library().quantize(args.source, args.out, args.kind, requantize=True, threads=THREADS, overrides=OVERRIDES if args.ship else None)
    found, size = types(args.out), os.path.getsize(args.out)
    print(f"{args.out}: {size:,} bytes, {dict(found)}")
    if args.ship and (set(found) - RUNNABLE or size > LARGEST):
        raise SystemExit(f"Not fit to ship: {size:,} bytes with types {sorted(found)}.")


if __name__ == "__main__":
    main()
