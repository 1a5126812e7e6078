"""The tokenizer: byte-level BPE of 8,192 pieces with Qwen2's pre-tokenizer, trained on the small world.

    python tokens.py --season out/season.json.xz --out out/tokenizer.json
    python tokens.py --model ../public/models/potluck-small-Q4_K_M.gguf --out out/tokenizer.json     # the one of a model
"""

import argparse
import os

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from world import seasoning
from world.compose import Composer

VOCABULARY = 8192
END_OF_TEXT, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = (END_OF_TEXT, START, END)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LEARN = 0x8000
"""Set on a stored token id whose prediction is trained in chat tuning: what the assistant says."""


def blank():
    """An untrained tokenizer that cuts text as llama.cpp's `qwen2` does."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN2), behavior="isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def text_of(kind, system, body):
    """A document's plain text, for the tokenizer's statistics."""
    return body if kind == "prose" else "\n".join([system or ""] + [f"{user}\n{answer}" for user, answer in body])


def train(season, documents, vocabulary=VOCABULARY, seed=1 << 40):
    """Learns the merges from generated documents; questions and prose of the season come in with them."""
    composer = Composer(season)
    texts = (text_of(*doc) for doc in (composer.train_document(seed + i) for i in range(documents)) if doc)
    tokenizer = blank()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=[AddedToken(t, special=True, normalized=False) for t in SPECIAL],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def of_model(path):
    """The tokenizer in a GGUF file that `export.py` wrote."""
    import gguf

    fields = gguf.GGUFReader(path).fields
    pieces = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = blank()
    tokenizer.model = models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=merges)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    return tokenizer


def encode(tokenizer, documents):
    """Each document as a list of stored ids: roles in ChatML, assistant's tokens and prose marked `LEARN`."""
    start, end = tokenizer.token_to_id(START), tokenizer.token_to_id(END)
    pieces, shape = [], []
    for kind, system, body in documents:
        if kind == "prose":
            shape.append(None)
            pieces.append(body)
            continue
        if system:
            pieces.append("system\n" + system)
        shape.append((bool(system), len(body)))
        for user, answer in body:
            pieces += ("user\n" + user, answer)
    coded = iter([e.ids for e in tokenizer.encode_batch(pieces, add_special_tokens=False)])
    newline = tokenizer.encode("\n").ids
    opening = tokenizer.encode("assistant\n").ids
    out = []
    for form in shape:
        if form is None:
            out.append([i | LEARN for i in next(coded)])
            continue
        ids = []
        if form[0]:
            ids += [start, *next(coded), end, *newline]
        for _ in range(form[1]):
            ids += [start, *next(coded), end, *newline, start, *opening]
            ids += [i | LEARN for i in next(coded)]
            ids += [end | LEARN, *newline]
        out.append(ids)
    return out


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--season", help="file written by corpus.py")
    parser.add_argument("--documents", type=int, default=60_000)
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY)
    parser.add_argument("--model", help="GGUF file whose tokenizer to take instead")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    tokenizer = of_model(args.model) if args.model else train(seasoning.load(args.season), args.documents, args.vocabulary)
    tokenizer.save(args.out)
    print(f"{tokenizer.get_vocab_size()} pieces in {args.out}")


if __name__ == "__main__":
    main()
