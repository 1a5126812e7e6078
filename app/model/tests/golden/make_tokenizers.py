"""Trains small vocabularies and tokenizes texts with them, into tokenizers.json.gz: what ../tokenizers.rs is checked with.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 && python make_tokenizers.py

Byte-level BPE comes from Hugging Face's tokenizers with the regexes that the named pre-tokenizers stand for, SentencePiece
from Google's sentencepiece. Both train deterministically on CORPUS.
"""

import gzip
import io
import json
import pathlib
import random

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent

CORPUS = [
    "A potluck is a meal where everyone brings something. The table is round, the soup is hot, and there's bread.",
    "I'll bring 12 plates, you'll bring 345 forks; we've 6789 napkins! It's 7:30, don't be late. THEY'RE HERE.",
    "Everyone brings a GPU. One page, opened on several devices, runs a language model that none could run alone.",
    "def soup(n):\n    if n == 0:\n        return \"empty\"\n\treturn [x**2 for x in range(n)]  # done\n\n\n",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Äpfel, Öl und Übermut.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Числа: ١٢٣ и Ⅷ, ½.",
    "我们一起吃饭,每个人都带一道菜。今天是二〇二六年。 日本語のテキストも少し。",
    "the the the soup soup table table everyone everyone brings brings something something   spaces    here",
] * 3

TEXTS = CORPUS[:8] + [
    "",
    " ",
    "  ",
    "   \n",
    "\n\n\t\n  x",
    "\r\n\r\ny\r z",
    "a\u00a0b\u3000c\u2028d",
    "Hello world",
    "  Hello   World!!  ",
    "I'M you'Re it'S she'D they'LL we'Ve I'ſ 'tis ''s",
    "1234567890 12 3,141.59 ٣٤٥ ²³ Ⅻ 1st",
    "x=1+2<3>4^5~6|7$8 €9 «q» „z“ … — ?!",
    "e\u0301 ǆ ﬁ İ ß \u200d\u200b 👩\u200d👩\u200d👧 🦙🇩🇪",
    "<|im_start|>user\nHi<|im_end|>\n<think>hm</think>",
    "<|im_end|><|im_end|> <think>",
    "▁ _ \u2581the soup",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "thethethethesoupsoupsouptabletabletable" * 4,
    "\u0000\u0001\u007f\u0085",
]

RANDOM = random.Random(20261121)
# Latin, Greek, Cyrillic, Arabic, Hangul, emoji; all assigned for many years.
LETTERS = "aeiou nrst \t\n ABC 0123456789 .,;:!?'/äöüßéñ αβγδ жзий بتث 가나다 🍲🥄👩 ½Ⅷ\u0301\u3000\u200d"
TEXTS += ["".join(RANDOM.choices(LETTERS, k=RANDOM.randint(1, 60))) for _ in range(40)]

MODERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LEAD = r"[^\r\n\p{L}\p{N}]?"
TEKKEN = (
    f"{LEAD}{UPPER}*{LOWER}+|{LEAD}{UPPER}+{LOWER}*"
    + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

PRE = {
    "llama-bpe": [MODERN.replace("DIGITS", "{1,3}")],
    "qwen2": [MODERN.replace("DIGITS", "")],
    "tekken": [TEKKEN],
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
}

# Words that are tokens are taken whole.
WHOLE_WORDS = ["llama-bpe", "tekken"]

SPECIAL = [("<|im_start|>", 3), ("<|im_end|>", 3), ("<think>", 4), ("</think>", 4)]


def byte_level(name, regexes):
    tokenizer = Tokenizer(models.BPE(ignore_merges=name in WHOLE_WORDS))
    splits = [pre_tokenizers.Split(Regex(regex), "isolated") for regex in regexes]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    plain = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text, kind in SPECIAL if kind == 3])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text, kind in SPECIAL if kind == 4])
    vocabulary = tokenizer.get_vocab()
    tokens = sorted(vocabulary, key=vocabulary.get)
    kinds = dict(SPECIAL)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return {
        "name": name,
        "model": "gpt2",
        "regexes": regexes,
        "tokens": tokens,
        "types": [kinds.get(token, 1) for token in tokens],
        "merges": [" ".join(merge) for merge in merges],
        "cases": [
            {
                "text": text,
                "ids": tokenizer.encode(text, add_special_tokens=False).ids,
                # Nothing special at all, not even the user-defined tokens.
                "plain": plain.encode(text, add_special_tokens=False).ids,
            }
            for text in TEXTS
        ],
    }


def sentence_piece(space_prefix):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, model_type="bpe", vocab_size=480, byte_fallback=True,
        character_coverage=0.995, normalization_rule_name="identity", remove_extra_whitespaces=False, num_threads=1,
        add_dummy_prefix=space_prefix, minloglevel=2, allow_whitespace_only_pieces=True, split_digits=True,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = range(processor.get_piece_size())

    def kind(id):
        if processor.is_unknown(id):
            return 2
        return 3 if processor.is_control(id) else 6 if processor.is_byte(id) else 1

    return {
        "name": "spaced" if space_prefix else "unspaced",
        "model": "llama",
        "space_prefix": space_prefix,
        "tokens": [processor.id_to_piece(id) for id in ids],
        "types": [kind(id) for id in ids],
        "scores": [processor.get_score(id) for id in ids],
        "cases": [{"text": text, "ids": processor.encode(text)} for text in TEXTS],
    }


def unigram():
    """SentencePiece unigram; the text normalization of real files is too large to keep."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, model_type="unigram", vocab_size=300, character_coverage=0.98,
        normalization_rule_name="identity", num_threads=1, minloglevel=2, hard_vocab_limit=False,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = range(processor.get_piece_size())

    def kind(id):
        return 2 if processor.is_unknown(id) else 3 if processor.is_control(id) else 1

    return {
        "name": "unigram",
        "model": "t5",
        "space_prefix": True,
        "merge_spaces": True,
        "unknown": processor.unk_id(),
        "tokens": [processor.id_to_piece(id) for id in ids],
        "types": [kind(id) for id in ids],
        "scores": [processor.get_score(id) for id in ids],
        # The Python package takes spaces at the end for none.
        "cases": [{"text": text, "ids": processor.encode(text)} for text in TEXTS],
    }


def raw_text():
    """BPE of lines of raw text with bytes for what is unknown, as Gemma 4 has it."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=False))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n+"), "isolated")
    bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=600, min_frequency=2, special_tokens=[AddedToken(byte, normalized=False) for byte in bytes],
        limit_alphabet=80, show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    definition = json.loads(tokenizer.to_str())
    definition["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(definition))
    vocabulary = definition["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.get)
    return {
        "name": "raw-text",
        "model": "gemma4",
        "tokens": tokens,
        "types": [6 if token in bytes else 1 for token in tokens],
        "merges": [" ".join(merge) for merge in definition["model"]["merges"]],
        "cases": [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in TEXTS],
    }


def main():
    vocabularies = [byte_level(name, regexes) for name, regexes in PRE.items()]
    vocabularies += [sentence_piece(True), sentence_piece(False), unigram(), raw_text()]
    text = ",\n".join(json.dumps(vocabulary, ensure_ascii=False, separators=(",", ":")) for vocabulary in vocabularies)
    (HERE / "tokenizers.json.gz").write_bytes(gzip.compress(f"[{text}]\n".encode(), mtime=0))


main()
