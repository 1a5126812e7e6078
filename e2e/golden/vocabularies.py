"""Judges the tokenizer with everybody else's: `python3 e2e/golden/vocabularies.py`.

Fetches the vocabularies in llama.cpp's source distribution (PyPI `llama-cpp-python`), encodes 10,000 lines of mixed text with
llama.cpp and each of them, and runs app/model/tests/real_vocabularies.rs. Takes some three minutes and 100 MB. With `--golden`
it remakes app/model/tests/golden/rules.json.gz instead: what llama.cpp makes of the same lines with every rule for splitting
text, in a small vocabulary.
"""

import gzip
import json
import os
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
GOLDEN = ROOT / "app" / "model" / "tests" / "golden" / "rules.json.gz"
TABLE = ROOT / "app" / "model" / "src" / "tokenizer" / "rules.rs"


LEAD = r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = f"{LEAD}{UPPER}*{LOWER}+{ENDING}|{LEAD}{UPPER}+{LOWER}*{ENDING}"
NOT_HAN = r"&&[^\p{Han}]]"
# Rules that llama.cpp only approximates: its engine knows neither the case of letters outside ASCII nor marks among them,
# takes all white space for one character, and groups digits by hand. These are the models' own, in Hugging Face's tokenizers.
OWN = {
    "tekken": [f"{LEAD}{UPPER}*{LOWER}+|{LEAD}{UPPER}+{LOWER}*|" + r"\p{N}" + REST],
    "gpt-4o": [O200K + r"|\p{N}{1,3}" + REST],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", O200K + r"|\p{N}{1,3}" + REST],
    "youtu": [
        r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
        O200K + r"|\p{N}" + REST,
    ],
    "kimi-k2": [
        r"[\p{Han}]+|" + O200K.replace(UPPER, UPPER[:-1] + NOT_HAN).replace(LOWER, LOWER[:-1] + NOT_HAN)
        + r"|\p{N}{1,3}" + REST.replace("/", "")
    ],
    "afmoe": [
        r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
        r"[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
        r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "deepseek-llm": [
        r"[\r\n]",
        r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+",
        r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
        r"\s+$",
        r"[一-龥ࠀ-一가-퟿]+",
        r"\p{N}+",
    ],
    "deepseek-coder": [
        r"[\r\n]",
        r"\s?\p{L}+",
        r"\s?\p{P}+",
        r"[一-龥ࠀ-一가-퟿]+",
        r"\p{N}",
    ],
}
for alias, name in [("llama4", "gpt-4o"), ("minimax-m2", "gpt-4o"), ("kanana2", "gpt-4o"), ("talkie", "gpt-4o"),
                    ("cohere2moe", "tiny_aya")]:
    OWN[alias] = OWN[name]
WHOLE_WORDS = ["tekken", "youtu"]


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
    environment = {**os.environ, "POTLUCK_VOCABULARIES": str(FOLDER)}
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


def own_tokenizer(regexes, tokens, merges, whole_words):
    """The small vocabulary in Hugging Face's tokenizers."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    vocabulary = {token: id for id, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs, ignore_merges=whole_words))
    splits = [pre_tokenizers.Split(Regex(regex), "isolated") for regex in regexes]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    return tokenizer


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


def llama_ids(library, name, tokens, merges, lines):
    """The ids of llama.cpp with the small vocabulary; None if it does not know the rule."""
    import gguf
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
            return [model.tokenize(line, parse_special=False) for line in lines]
    except RuntimeError:
        return None
    finally:
        file.unlink()


def rules():
    import re

    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "tokenizers==0.23.3"], check=True)
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
        if name in OWN:
            tokenizer = own_tokenizer(OWN[name], tokens, merges, name in WHOLE_WORDS)
            ids = [encoding.ids for encoding in tokenizer.encode_batch(lines, add_special_tokens=False)]
        else:
            ids = llama_ids(library, name, tokens, merges, lines)
        if ids is None:
            print(f"{name}: llama.cpp {library.version} does not know it")
            continue
        # What a failing test compares with, line by line.
        (FOLDER / "rules" / f"{name}.ids").write_text("".join(map(text_of, ids)))
        golden.setdefault(tuple(hashes(ids)), []).append(name)
        print(name)
    groups = [{"names": names, "by": "tokenizers" if names[0] in OWN else "llama.cpp", "hashes": hashes}
              for hashes, names in golden.items()]
    data = {"tokens": tokens, "merges": merges, "groups": groups}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"
    GOLDEN.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    enter_venv()
    rules() if "--golden" in sys.argv else vocabularies()
