"""Judges the tokenizer with everybody else's: `python3 e2e/golden/vocabularies.py`.

Fetches the vocabularies in llama.cpp's source distribution (PyPI `llama-cpp-python`), encodes 10,000 lines of mixed text with
llama.cpp and each of them, and runs app/model/tests/real_vocabularies.rs. Takes some three minutes and 100 MB. With `--golden`
it remakes app/model/tests/golden/rules.json instead: what llama.cpp makes of the same lines with every rule for splitting
text, in a small vocabulary.
"""

import json
import pathlib
import subprocess
import sys
import tarfile

import mixed_text
from make import OUT, ROOT, enter_venv

# Tokens of the small vocabulary.
SMALL = 1500
SOURCE = "llama_cpp_python-0.3.36"
FOLDER = OUT / "vocabularies"
GOLDEN = ROOT / "app" / "model" / "tests" / "golden" / "rules.json"
TABLE = ROOT / "app" / "model" / "src" / "tokenizer" / "rules.rs"


def fetch():
    """Unpacks the vocabularies and their vectors."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    archive = OUT / f"{SOURCE}.tar.gz"
    if not archive.exists():
        package = SOURCE.replace("_python-", "_python==").replace("_", "-")
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
                        "--no-build-isolation", "--dest", str(OUT), package], check=True)
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            name = pathlib.PurePath(member.name).name
            if "/llama.cpp/models/ggml-vocab-" in member.name and not (FOLDER / name).exists():
                (FOLDER / name).write_bytes(tar.extractfile(member).read())


def text_of(ids):
    return " ".join(map(str, ids)) + "\n"


def vocabularies():
    from llama_cpp import Library
    fetch()
    library = Library()
    lines = mixed_text.lines()
    (FOLDER / "mixed.json").write_text(json.dumps(lines))
    for file in sorted(FOLDER.glob("ggml-vocab-*.gguf")):
        name = file.stem.removeprefix("ggml-vocab-")
        with library.load(file, vocab_only=True) as model:
            for ending, parse in [("literal", False), ("parse", True)]:
                ids = (model.tokenize(line, parse_special=parse) for line in lines)
                (FOLDER / f"{name}.{ending}.ids").write_text("".join(map(text_of, ids)))
            (FOLDER / f"{name}.ends").write_text(text_of(model.ends()))
        print(name)
    command = ["cargo", "test", "-p", "potluck-model", "--test", "real_vocabularies", "--", "--ignored"]
    environment = {**__import__("os").environ, "POTLUCK_VOCABULARIES": str(FOLDER)}
    raise SystemExit(subprocess.run(command, cwd=ROOT, env=environment).returncode)


def small_vocabulary(lines):
    """Byte-level BPE whose merges cross all kinds of characters, so that ids tell where a text was split."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=SMALL, min_frequency=2, show_progress=False, max_token_length=12,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(lines, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return tokens, [" ".join(merge) for merge in model["merges"]]


def hashes(ids):
    """A hash (FNV-1a of 32 bits, over ids and line ends) for every hundred lines."""
    found = []
    for first in range(0, len(ids), 100):
        value = 0x811C9DC5
        for line in ids[first:first + 100]:
            for id in [*line, 0xFFFFFFFF]:
                value = (value ^ id) * 0x01000193 % (1 << 32)
        found.append(value)
    return found


def rules():
    import re

    import gguf
    from llama_cpp import Library
    mixed_text.write()
    lines = mixed_text.lines()
    tokens, merges = small_vocabulary(lines)
    table = TABLE.read_text()
    names = [name for group in re.findall(r"names: &\[(.*?)\]", table, re.S) for name in re.findall(r'"(.*?)"', group)]
    library = Library()
    (FOLDER / "rules").mkdir(parents=True, exist_ok=True)
    golden = {}
    for name in names:
        file = FOLDER / "rules" / f"{name}.gguf"
        writer = gguf.GGUFWriter(file, "llama")
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(name)
        writer.add_token_list(tokens)
        writer.add_token_types([gguf.TokenType.NORMAL] * len(tokens))
        writer.add_token_merges(merges)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        try:
            with library.load(file, vocab_only=True) as model:
                ids = [model.tokenize(line, parse_special=False) for line in lines]
        except RuntimeError:
            print(f"{name}: llama.cpp {library.version} does not know it")
            continue
        finally:
            file.unlink()
        # What a failing test compares with, line by line.
        (FOLDER / "rules" / f"{name}.ids").write_text("".join(map(text_of, ids)))
        golden.setdefault(tuple(hashes(ids)), []).append(name)
        print(name)
    groups = [{"names": names, "hashes": hashes} for hashes, names in golden.items()]
    data = {"tokens": tokens, "merges": merges, "groups": groups}
    GOLDEN.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    enter_venv()
    rules() if "--golden" in sys.argv else vocabularies()
