"""Remakes real/NAME.json, llama.cpp's answers on published models:
`python3 e2e/golden/real.py [--windows N] [--threads N] [NAME ...]`.

It takes the files that `cargo xtask models` has fetched, turns every tensor into F32 with PyPI `gguf`, and lets llama.cpp answer eight
prompts greedily with an f32 KV cache; then it measures how likely llama.cpp finds real/text.txt.gz, with the weights in F32 and with
the file as it is, whose products llama.cpp computes with activations rounded to 8 bits. README.md says what is kept.
"""

import gzip
import hashlib
import json
import math
import pathlib
import subprocess
import sys
import zlib

from make import GGUF_VERSION, HERE, OUT, ROOT, compact, enter_venv, to_f32

DATA = HERE / "real"
FOLDER = ROOT / ".run" / "models"
ANSWER = 28
# Tokens of a window, the windows of a table, and how far into the first one the tests go.
WINDOW, WINDOWS, SHORT = 2000, 10, 512
BATCH = 256
# On a machine that does other things two threads would mostly wait for each other.
THREADS = 1
# In logits. Gemma's is larger: llama.cpp looks GELU up in a table of half precision (README.md, architectures).
TOLERANCE = {"gemma3-270m": 0.05}
USUAL_TOLERANCE = 0.005

QUESTIONS = [
    "What is the capital of France?",
    "Write a short poem about the sea.",
    "Explain in one paragraph why the sky is blue.",
    "Write a Python function that reverses a string.",
    "List three uses of a paper clip.",
    "Translate into German: The weather is nice today, and we are going for a walk.",
    "A farmer has 17 sheep and buys 5 more. Then 3 run away. How many are left? Explain each step.",
    "Wer hat \"Faust\" geschrieben, und worum geht es?",
]
# For a model without a chat template.
BEGINNINGS = [
    "The capital of France is",
    "Once upon a time there was a little girl who",
    "The sky is blue because",
    "def reverse(text):\n    \"\"\"Reverses a string.\"\"\"\n",
    "Three uses of a paper clip are:\n1.",
    "English: The weather is nice today.\nGerman:",
    "Question: A farmer has 17 sheep and buys 5 more. Then 3 run away. How many are left?\nAnswer:",
    "Die Hauptstadt von Deutschland ist",
]


def rendered(template, question):
    """A conversation of one question as Transformers renders it."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    jinja = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    jinja.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    messages = [{"role": "user", "content": question}]
    return jinja.from_string(template).render(messages=messages, add_generation_prompt=True, bos_token="", eos_token="")


def answers(model, template, ends, threads):
    """The prompts with greedy answers."""
    context = model.context(length=512, cache="f32", batch=BATCH, threads=threads)
    for text in QUESTIONS if template else BEGINNINGS:
        whole = rendered(template, text) if template else text
        prompt = model.tokenize(whole, add_special=True)
        context.clear()
        ids, margins, row = [], [], context.logits(prompt)[-1]
        while True:
            second, best = row.argpartition(-2)[-2:]
            best, second = (best, second) if row[best] >= row[second] else (second, best)
            ids.append(int(best))
            margins.append(round(float(row[best]) - float(row[second]), 4))
            if len(ids) == ANSWER or int(best) in ends:
                break
            row = context.logits([int(best)])[-1]
        yield {"text": text, "answer": model.detokenize([id for id in ids if id not in ends]), "prompt": prompt, "ids": ids, "margin": margins}
    context.close()


def windows(model, text, count):
    """The text's tokens in windows, each with what begins every text of this model."""
    ids, start = model.tokenize(text, parse_special=False), model.tokenize("", add_special=True)
    assert len(ids) >= WINDOW * WINDOWS, f"the text has {len(ids)} tokens"
    return [start + ids[at * WINDOW:(at + 1) * WINDOW] for at in range(count)]


def surprise(context, ids):
    """The negative log-likelihood of each token after the first."""
    import numpy as np
    context.clear()
    each, before = [], None
    for at in range(0, len(ids), BATCH):
        chunk = ids[at:at + BATCH]
        rows = context.logits(chunk)
        rows = rows if before is None else np.concatenate([before[None], rows])
        before, targets = rows[-1], ids[max(at, 1):at + len(chunk)]
        rows = rows[:-1].astype(np.float64)
        top = rows.max(-1)
        each += (np.log(np.exp(rows - top[:, None]).sum(-1)) + top - rows[np.arange(len(targets)), targets]).tolist()
    assert len(each) == len(ids) - 1
    return each


def measure(model, texts, threads):
    """Sums of negative log-likelihoods: of the first window's beginning, and of each window."""
    context = model.context(length=WINDOW + 16, cache="f32", batch=BATCH, threads=threads)
    short, sums = 0.0, []
    for number, ids in enumerate(texts):
        each = surprise(context, ids)
        if number == 0:
            # The token that begins every text is none of the text's.
            short = sum(each[:SHORT - 1 + len(ids) - WINDOW])
        sums.append(round(sum(each), 4))
        print(f"  window {number}: perplexity {math.exp(sums[-1] / len(each)):.4f}", flush=True)
    context.close()
    return {"short": round(short, 4), "windows": sums}


def remake(library, name, model, count, threads):
    import gguf
    path = FOLDER / model["name"]
    if not path.exists():
        raise SystemExit(f"{path} is missing: run `cargo xtask models {name}`.")
    template = gguf.GGUFReader(path).fields.get("tokenizer.chat_template")
    text = gzip.decompress((DATA / "text.txt.gz").read_bytes())
    plain = OUT / "models" / f"{name}.f32.gguf"
    plain.parent.mkdir(parents=True, exist_ok=True)
    if not plain.exists():
        half = plain.with_suffix(".half")
        to_f32(path, half)
        half.rename(plain)
    print(name, flush=True)
    with library.load(plain, repack=False) as open_model:
        prompts = list(answers(open_model, template and template.contents(), open_model.ends(), threads))
        for prompt in prompts:
            print(f"  {min(prompt['margin']):.4f} {prompt['answer']!r}", flush=True)
        texts = windows(open_model, text.decode(), count)
        crc = zlib.crc32(b"".join(id.to_bytes(4, "little") for ids in texts for id in ids))
        exact = measure(open_model, texts, threads)
    with library.load(path) as open_model:
        quantized = measure(open_model, texts, threads)
    plain.unlink()
    result = {
        "name": name,
        "file": {"name": model["name"], "bytes": model["bytes"], "sha256": model["sha256"]},
        "reference": {"llama.cpp": library.version, "gguf": GGUF_VERSION, "weights": "F32", "cache": "f32"},
        "tolerance": TOLERANCE.get(name, USUAL_TOLERANCE),
        "text": {"sha256": hashlib.sha256(text).hexdigest(), "window": WINDOW, "short": SHORT, "ids_crc32": crc},
        "surprise": {"f32": exact, "quantized": quantized},
        "prompts": prompts,
    }
    (DATA / f"{name}.json").write_text(compact(result) + "\n")


def option(arguments, name, usual):
    """Takes `name N` out of the arguments."""
    if name not in arguments:
        return usual
    at = arguments.index(name)
    value = int(arguments[at + 1])
    del arguments[at:at + 2]
    return value


def main():
    enter_venv()
    try:
        import jinja2  # noqa: F401
    except ImportError:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "jinja2"], check=True)
    from llama_cpp import Library
    arguments = sys.argv[1:]
    count, threads = option(arguments, "--windows", WINDOWS), option(arguments, "--threads", THREADS)
    models = json.loads((DATA / "manifest.json").read_text())
    library = Library()
    for name in arguments or models:
        remake(library, name, models[name], count, threads)


if __name__ == "__main__":
    main()
