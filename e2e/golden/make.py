"""Remakes the golden answers: `python3 e2e/golden/make.py [NAME ...]`; with `--dequantize` what app/gguf/tests
compares with; with `--cache` what is answered with smaller keys and values; with `--exact` it measures how exact the reference is and writes nothing.

Builds every model of models.json from its seed with the Rust writer, turns it into F32 with PyPI `gguf`, runs llama.cpp on
that file with an f32 KV cache, teacher-forced, and writes data/NAME.json.gz. What it needs it installs into e2e/out/golden.
README.md says what the numbers mean.
"""

import gzip
import json
import pathlib
import subprocess
import sys
import venv
import zlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = HERE.parent / "out" / "golden"
GGUF_VERSION = "0.19.0"

PROMPTS = 3
POSITIONS = 64
TOP = 8
# In logits, for f32 weights and an f32 cache; README.md says why.
TOLERANCE = 0.001
# Smaller caches: which models (heads of 64 and of 128 values) and types. In logits for each type, README.md says why.
CACHE_MODELS = ["llama-Q4_K", "qwen3-Q4_K"]
CACHE_TOLERANCES = {"f16": 0.05, "q8_0": 0.5}
# Chosen with the seeds of models.json, before any answer was compared.
PROMPT_SEED = 20261121


def enter_venv():
    """Restarts in a virtual environment that has `gguf` and numpy."""
    try:
        import gguf  # noqa: F401
        return
    except ImportError:
        pass
    folder = OUT / "venv"
    python = folder / "bin" / "python"
    if pathlib.Path(sys.prefix) == folder:
        raise SystemExit(f"{folder} lacks the package gguf; remove it and try again.")
    if not python.exists():
        print("Installing gguf and numpy from PyPI (half a minute)")
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", f"gguf=={GGUF_VERSION}", "numpy"], check=True)
    raise SystemExit(subprocess.run([python, *sys.argv]).returncode)


def build(name, fields):
    """Writes the model with the Rust writer; returns its path and its full description."""
    tool = ["cargo", "run", "--quiet", "--release", "-p", "potluck-gguf", "--example", "synthetic", "--"]
    options = []
    for key, value in fields.items():
        options += ["--" + key.replace("_", "-"), value if isinstance(value, str) else json.dumps(value)]
    described = subprocess.run([*tool, *options, "--print"], cwd=ROOT, check=True, capture_output=True, text=True)
    path = OUT / "models" / f"{name}.gguf"
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([*tool, *options, str(path)], cwd=ROOT, check=True, capture_output=True)
    return path, json.loads(described.stdout)


def to_f32(source, target):
    """The same model with every tensor in F32, by PyPI `gguf` alone."""
    import gguf
    import numpy as np
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        sub_type = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=sub_type)
    for tensor in reader.tensors:
        shape = [int(n) for n in reversed(tensor.shape)]
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, np.ascontiguousarray(values.reshape(shape), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def answer(logits):
    """What is kept of the logits after each position."""
    import numpy as np
    order = np.argsort(-logits, axis=1, kind="stable")[:, :TOP]
    values = np.take_along_axis(logits, order, axis=1)
    return {
        "argmax": [int(row[0]) for row in order],
        "margin": [round(float(row[0]) - float(row[1]), 4) for row in values],
        "top": [[int(i) for i in row] for row in order],
        "logits": [[round(float(v), 4) for v in row] for row in values],
    }


def golden(library, name, fields):
    import gguf
    import numpy as np
    path, description = build(name, fields)
    plain = path.with_suffix(".f32.gguf")
    to_f32(path, plain)
    # The three markers at the end of the vocabulary stay out.
    ordinary = description["vocabulary"] - 3
    prompts = []
    with library.load(plain, repack=False) as model:
        context = model.context(length=POSITIONS, cache="f32", batch=POSITIONS, threads=1)
        for number in range(PROMPTS):
            ids = np.random.default_rng([PROMPT_SEED, number]).integers(0, ordinary, POSITIONS).tolist()
            context.clear()
            prompts.append({"ids": ids, **answer(context.logits(ids))})
    plain.unlink()
    raw = path.read_bytes()
    result = {
        "name": name,
        "model": description,
        "file": {"bytes": len(raw), "crc32": zlib.crc32(raw)},
        "reference": {"llama.cpp": library.version, "gguf": GGUF_VERSION, "weights": "F32", "cache": "f32"},
        "tolerance": TOLERANCE,
        "prompts": prompts,
    }
    target = HERE / "data" / f"{name}.json.gz"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(gzip.compress(f"{compact(result)}\n".encode(), mtime=0))
    margins = sorted(m for prompt in prompts for m in prompt["margin"])
    print(f"{name}: {len(raw)} bytes, margins from {margins[0]} with median {margins[len(margins) // 2]}, "
          f"{len({a for prompt in prompts for a in prompt['argmax']})} different answers, {target.stat().st_size} bytes of data")


def caches(library, name, fields):
    """Answers with smaller keys and values, and how far llama.cpp's own logits move from those with exact ones."""
    import numpy as np
    path, description = build(name, fields)
    plain = path.with_suffix(".f32.gguf")
    to_f32(path, plain)
    with library.load(plain, repack=False) as model:
        def run(cache):
            # llama.cpp stores quantized values for flash attention only.
            context = model.context(length=256, cache=cache, batch=POSITIONS, threads=1, flash=cache == "q8_0")
            rows = []
            for number in range(PROMPTS):
                ids = np.random.default_rng([PROMPT_SEED, number]).integers(0, description["vocabulary"] - 3, POSITIONS).tolist()
                context.clear()
                rows.append((ids, context.logits(ids)))
            return rows
        exact = run("f32")
        for cache, tolerance in CACHE_TOLERANCES.items():
            rows = run(cache)
            moved = max(float(np.abs(a[1] - b[1]).max()) for a, b in zip(rows, exact))
            prompts = [{"ids": ids, **answer(logits)} for ids, logits in rows]
            raw = path.read_bytes()
            result = {
                "name": f"{name} {cache}",
                "model": description,
                "file": {"bytes": len(raw), "crc32": zlib.crc32(raw)},
                "reference": {"llama.cpp": library.version, "gguf": GGUF_VERSION, "weights": "F32", "cache": cache},
                "tolerance": tolerance,
                "prompts": prompts,
            }
            target = HERE / "cache" / f"{name}.{cache}.json.gz"
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(gzip.compress(f"{compact(result)}\n".encode(), mtime=0))
            clear = sum(m >= tolerance for prompt in prompts for m in prompt["margin"])
            print(f"{name} {cache}: logits move by up to {moved:.2g}, {clear} of {PROMPTS * POSITIONS} margins are clear")
    plain.unlink()


def measure(library, name, fields):
    import exact
    path, description = build(name, fields)
    plain = path.with_suffix(".f32.gguf")
    to_f32(path, plain)
    exact.compare(name, path, description, plain, library)
    plain.unlink()


def compact(value, depth=0):
    """JSON with a line for each entry of the outer objects, so that a change is readable in a diff."""
    pad = " " * (depth + 1)
    if depth < 3 and isinstance(value, dict):
        return "{\n" + ",\n".join(f"{pad}{json.dumps(k)}: {compact(v, depth + 1)}" for k, v in value.items()) + "\n" + " " * depth + "}"
    if depth < 3 and isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(pad + compact(v, depth + 1) for v in value) + "\n" + " " * depth + "]"
    return json.dumps(value, separators=(",", ":"))


def main():
    enter_venv()
    exact = "--exact" in sys.argv
    cache = "--cache" in sys.argv
    names = [argument for argument in sys.argv[1:] if argument not in ("--exact", "--cache")]
    if names == ["--dequantize"]:
        import vectors
        vectors.main()
        return
    from llama_cpp import Library
    models = json.loads((HERE / "models.json").read_text())
    unknown = set(names) - models.keys()
    if unknown:
        raise SystemExit(f"models.json has no model {', '.join(sorted(unknown))}.")
    library = Library()
    make = caches if cache else measure if exact else golden
    for name, fields in models.items():
        if name in names or not names and (not cache or name in CACHE_MODELS):
            make(library, name, fields)


if __name__ == "__main__":
    main()
