"""Remakes architectures/: `python3 e2e/golden/architectures.py [NAME ...]`; README.md says what the numbers mean.

For every model of shapes.py, shapes_experts.py and shapes_hybrids.py it writes a GGUF file of random weights with PyPI `gguf`,
runs llama.cpp on it teacher-forced, and keeps the answers beside the description that makes the same file again. With
`--search` it tries seeds until one meets the conditions and prints it; with `--exact` it compares some with
exact_architectures.py. Neither writes answers.
"""

import gzip
import json
import math
import pathlib
import subprocess
import sys
import tarfile
import zlib

from make import GGUF_VERSION, HERE, OUT, POSITIONS, PROMPTS, PROMPT_SEED, TOLERANCE, enter_venv

TOP = 4
# As in make.py, and for the same reason: no choice between experts or groups hangs on less (in probabilities or logits, whichever
# the router compares).
CLOSEST_CALL = 1e-4
SOURCE = "llama_cpp_python-0.3.36"
FOLDER = OUT / "architectures"
DATA = HERE / "architectures"


def reference_folder():
    """llama.cpp as `llama_cpp.py` installs it, with a CPU backend of the same release that computes GELU in single precision.

    The prebuilt one looks GELU up in a table of half precision, and so is no reference for Gemma. This one also uses no
    instructions beyond x86-64's first, so that its answers do not depend on the processor.
    """
    folder = OUT / "reference"
    if (folder / "libggml-cpu.so").exists():
        return folder
    from llama_cpp import library_folder
    print("Building llama.cpp's CPU backend (two minutes)")
    source = OUT / "llama.cpp"
    unpack(source)
    header = source / "ggml" / "src" / "ggml-cpu" / "vec.h"
    text, table = header.read_text(), "#define GGML_GELU_FP16\n"
    if table not in text:
        raise SystemExit(f"{SOURCE} no longer says in {header.name} how it computes GELU; see reference_folder().")
    header.write_text(text.replace(table, ""))
    without = ("NATIVE", "SSE42", "AVX", "AVX2", "BMI2", "FMA", "F16C", "OPENMP", "LLAMAFILE")
    plain = [f"-DGGML_{name}=OFF" for name in without]
    shared = ["-DGGML_BACKEND_DL=ON", "-DBUILD_SHARED_LIBS=ON", "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", "-DCMAKE_INSTALL_RPATH=$ORIGIN"]
    build = OUT / "build"
    subprocess.run(["cmake", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-Wno-dev", *plain, *shared], check=True,
                   capture_output=True)
    subprocess.run(["cmake", "--build", build, "--target", "ggml-cpu"], check=True, capture_output=True)
    folder.mkdir(exist_ok=True)
    for file in library_folder().glob("lib*.so"):
        if not file.name.startswith("libggml-cpu"):
            link(folder / file.name, file)
    # The name under which the backend looks for the base library: it must find the one that is loaded already.
    link(folder / "libggml-base.so.0", folder / "libggml-base.so")
    (folder / "libggml-cpu.so").write_bytes((build / "bin" / "libggml-cpu.so").read_bytes())
    return folder


def link(path, target):
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def unpack(folder):
    """llama.cpp's source, from the source distribution of PyPI `llama-cpp-python`."""
    archive = OUT / f"{SOURCE}.tar.gz"
    if not archive.exists():
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "scikit-build-core"], check=True)
        package = SOURCE.replace("_python-", "_python==").replace("_", "-")
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
                        "--no-build-isolation", "--dest", str(OUT), package], check=True)
    inside = f"{SOURCE}/vendor/llama.cpp/"
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.name.startswith(inside) and member.isfile():
                path = folder / member.name.removeprefix(inside)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(tar.extractfile(member).read())


def values(seed, name, count, mean, scale):
    """The values of a tensor: splitmix64 from a state of the seed and the name, 24 bits of each number, in float32 throughout."""
    import numpy as np
    step = 0x9E3779B97F4A7C15
    wrap = (1 << 64) - 1
    start = (seed * step + zlib.crc32(name.encode())) & wrap
    with np.errstate(over="ignore"):
        z = np.uint64(start) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(step)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    u = (z >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24)
    return np.float32(mean) + np.float32(scale) * (np.float32(2) * u - np.float32(1))


def write(path, model, seed):
    """The GGUF file of a description."""
    import gguf
    import numpy as np
    kinds = {"u32": gguf.GGUFValueType.UINT32, "i32": gguf.GGUFValueType.INT32, "f32": gguf.GGUFValueType.FLOAT32,
             "bool": gguf.GGUFValueType.BOOL, "string": gguf.GGUFValueType.STRING}
    (_, _, architecture), *rest = model.metadata
    writer = gguf.GGUFWriter(path, architecture)
    for key, kind, value in rest:
        if kind.startswith("["):
            writer.add_key_value(key, value, gguf.GGUFValueType.ARRAY, sub_type=kinds[kind[1:-1]])
        else:
            writer.add_key_value(key, value, kinds[kind])
    for tensor in model.tensors:
        count = math.prod(tensor["shape"])
        data = values(seed, tensor["name"], count, tensor["mean"], tensor["scale"])
        writer.add_tensor(tensor["name"], np.ascontiguousarray(data.reshape(tensor["shape"][::-1])))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Router:
    """Watches llama.cpp choose experts; `gap` is the closest choice seen."""

    # In the order in which a graph computes them: the last one seen of a block is what experts are chosen by.
    SCORES = ("ffn_moe_logits", "ffn_moe_logits_biased", "ffn_moe_probs", "ffn_moe_probs_biased", "ffn_moe_probs_masked")

    def __init__(self, library, model):
        import ctypes as c
        self.model, self.base, self.scores = model, c.CDLL(str(library.folder / "libggml-base.so")), {}
        self.base.ggml_get_name.restype = c.c_char_p
        self.base.ggml_get_name.argtypes = [c.c_void_p]
        self.base.ggml_nbytes.restype = c.c_size_t
        self.base.ggml_nbytes.argtypes = [c.c_void_p]
        self.base.ggml_backend_tensor_get.argtypes = [c.c_void_p, c.c_void_p, c.c_size_t, c.c_size_t]
        self.callback = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_bool, c.c_void_p)(self.see)

    def see(self, tensor, ask, _data):
        import numpy as np
        name, _, block = self.base.ggml_get_name(tensor).decode().rpartition("-")
        wanted = name in self.SCORES and block.isdigit()
        if ask or not wanted:
            return wanted or not ask
        raw = np.empty(self.base.ggml_nbytes(tensor) // 4, np.float32)
        self.base.ggml_backend_tensor_get(tensor, raw.ctypes.data, 0, raw.nbytes)
        self.scores.setdefault(int(block), {})[name] = raw.reshape(-1, self.model.experts)
        return True

    def gap(self):
        """The smallest difference between the last one chosen and the first one not, of experts and of groups."""
        import numpy as np
        closest = math.inf
        for seen in self.scores.values():
            by = self.model.selection or [name for name in self.SCORES if name in seen][-1]
            ranked = -np.sort(-seen[by], axis=1)
            closest = min(closest, float((ranked[:, self.model.used - 1] - ranked[:, self.model.used]).min()))
            if self.model.groups:
                count, used = self.model.groups
                before = seen["ffn_moe_probs_biased" if "ffn_moe_probs_biased" in seen else "ffn_moe_probs"]
                best = -np.sort(-before.reshape(len(before), count, -1), axis=2)[:, :, :2].sum(2)
                ranked = -np.sort(-best, axis=1)
                closest = min(closest, float((ranked[:, used - 1] - ranked[:, used]).min()))
        return closest


def prompts_of(model):
    import numpy as np
    return [np.random.default_rng([PROMPT_SEED, number]).integers(0, model.vocabulary, POSITIONS).tolist() for number in range(PROMPTS)]


def run(library, path, model, watch=True):
    """The logits after each position of each prompt, and the closest choice between experts."""
    rows, gap = [], math.inf
    with library.load(path, repack=False) as loaded:
        router = Router(library, model) if watch and model.experts else None
        context = loaded.context(length=POSITIONS, cache="f32", batch=POSITIONS, threads=1, watch=router and router.callback)
        for ids in prompts_of(model):
            context.clear()
            rows.append(context.logits(ids))
            gap = min(gap, router.gap()) if router else gap
    return rows, gap


def answer(logits):
    """What is kept of the logits after each position."""
    import numpy as np
    order = np.argsort(-logits, axis=1, kind="stable")[:, :TOP]
    best = np.take_along_axis(logits, order, axis=1)
    return {
        "argmax": [int(row[0]) for row in order],
        "margin": [round(float(row[0]) - float(row[1]), 5) for row in best],
        "top": [[int(i) for i in row] for row in order],
        "logits": [[round(float(v), 5) for v in row] for row in best],
    }


def troubles(rows, gap):
    """Why a seed is no good; empty if it is."""
    import numpy as np
    ranked = -np.sort(-np.concatenate(rows), axis=1)
    margin = float((ranked[:, 0] - ranked[:, 1]).min())
    found = []
    if not np.isfinite(ranked).all():
        found.append("logits are not finite")
    if margin <= TOLERANCE:
        found.append(f"an answer hangs on {margin:.1e}")
    if gap < CLOSEST_CALL:
        found.append(f"a choice between experts hangs on {gap:.1e}")
    return found


def text(value):
    return json.dumps(value, separators=(",", ":"))


def lines(entries):
    return "[\n" + ",\n".join(f"  {text(entry)}" for entry in entries) + "\n ]"


def prompt_lines(prompt):
    return "  {\n" + ",\n".join(f"   {text(key)}:{text(value)}" for key, value in prompt.items()) + "\n  }"


def document(model, seed, raw, reference, prompts):
    """JSON with one line for each key, tensor and list of answers."""
    fields = {
        "architecture": text(model.metadata[0][2]),
        "seed": text(seed),
        "metadata": lines(model.metadata),
        "tensors": lines(model.tensors),
        "file": text({"bytes": len(raw), "crc32": zlib.crc32(raw)}),
        "reference": text(reference),
        "tolerance": text(TOLERANCE),
        "prompts": "[\n" + ",\n".join(map(prompt_lines, prompts)) + "\n ]",
    }
    return "{\n" + ",\n".join(f" {text(k)}: {v}" for k, v in fields.items()) + "\n}\n"


def golden(library, name, model):
    path = FOLDER / f"{name}.gguf"
    write(path, model, model.seed)
    rows, gap = run(library, path, model)
    wrong = troubles(rows, gap)
    if wrong:
        raise SystemExit(f"{name}: with seed {model.seed} {' and '.join(wrong)}; take another (--search).")
    raw = path.read_bytes()
    reference = f"llama.cpp {library.version}, GELU without its table, weights and cache F32; gguf {GGUF_VERSION}"
    prompts = [{"ids": ids, **answer(logits)} for ids, logits in zip(prompts_of(model), rows)]
    target = DATA / f"{name}.json.gz"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(gzip.compress(document(model, model.seed, raw, reference, prompts).encode(), mtime=0))
    report(name, path, rows, gap, target)


def report(name, path, rows, gap, target):
    import numpy as np
    every = np.concatenate(rows)
    ranked = -np.sort(-every, axis=1)
    margins = np.sort(ranked[:, 0] - ranked[:, 1])
    print(f"{name}: {path.stat().st_size} bytes, deviation {every.std():.2f}, margins from {margins[0]:.4f} with median "
          f"{margins[len(margins) // 2]:.2f}, {len(set(every.argmax(1).tolist()))} different answers"
          + (f", closest call {gap:.1e}" if gap < math.inf else "") + f", {target.stat().st_size} bytes of data", flush=True)


def search(library, name, model):
    path = FOLDER / f"{name}.gguf"
    for seed in range(1, 1000):
        write(path, model, seed)
        wrong = troubles(*run(library, path, model))
        print(f"{name}: seed {seed}: {' and '.join(wrong) or 'good'}", flush=True)
        if not wrong:
            return


def measure(library, name, model):
    import exact_architectures
    if name not in exact_architectures.NAMES:
        return
    path = FOLDER / f"{name}.gguf"
    write(path, model, model.seed)
    exact_architectures.compare(name, path, prompts_of(model), run(library, path, model, watch=False)[0])


def main():
    enter_venv()
    import shapes
    import shapes_experts
    import shapes_hybrids
    from llama_cpp import Library
    options = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    names = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    models = shapes.MODELS
    if unknown := set(names) - models.keys():
        raise SystemExit(f"No model is called {', '.join(sorted(unknown))}; there are {', '.join(models)}.")
    if "--exact" in options:
        import exact_architectures
        if unknown := set(names) - set(exact_architectures.NAMES):
            known = ", ".join(exact_architectures.NAMES)
            raise SystemExit(f"There is no float64 form of {', '.join(sorted(unknown))}; there are {known}.")
    library = Library(reference_folder())
    FOLDER.mkdir(parents=True, exist_ok=True)
    make = search if "--search" in options else measure if "--exact" in options else golden
    for name, build in models.items():
        if not names or name in names:
            make(library, name, build())


if __name__ == "__main__":
    main()
