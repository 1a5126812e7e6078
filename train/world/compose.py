"""Whole documents from topics: conversations of one to several exchanges, and prose."""

import re
import zlib

from .grammar import Writer, listing
from .tables.animals import TABLE
from .tables.explain import NOUNS, QUESTIONS
from .tables.food import DISHES
from .tables.places import COUNTRIES
from .tables.things import THINGS, UNCOUNTED
from .topics import animals, calendar, explaining, feelings, fun, kitchen, lists, manners, numbers, outside, places, potluck, stories, things, words

MODULES = (potluck, manners, numbers, places, calendar, animals, things, words, kitchen, lists, explaining, feelings, fun, stories, outside)
PARTS = {module.__name__.rsplit(".", 1)[1]: module.TOPICS for module in MODULES}
SYSTEM = (
    "You are a helpful assistant.", "You are the small model that comes with Potluck.", "You are a friendly assistant. Answer in simple English.", "You are a kind and honest assistant.", "Be brief.", "You are a helpful and polite assistant.",
    "You are a warm, plain, and honest companion at the table.", "Answer kindly and in short sentences.", "You are Potluck's small model. If you do not know something, say so.", "You are a chat assistant.", "Be friendly and honest.",
)
PROSE_SHARE = 0.13
"""Share of documents that are prose: two thirds generated, one third from the gathered corpus."""


def _flat(parts):
    flat, total = [], 0.0
    for topics in parts:
        for function, weight in topics:
            total += weight
            flat.append((total, function))
    return flat, total


_ALL, _SUM = _flat(PARTS.values())


def _choose(w, table, total):
    at = w.rng.random() * total
    for limit, function in table:
        if at < limit:
            return function
    return table[-1][1]


class Composer:
    """Writes documents by number; the same number gives the same document."""

    def __init__(self, season, forbidden=()):
        self.questions, self.strange = _split(season["questions"])
        self.prose, self.unread = _split(season["prose"])
        self.guard = Guard(forbidden)

    def document(self, seed, part=None):
        """One document as `(part, system, turns)` or `("prose", None, text)`; part picks a topic group for evaluation.

        Returns None for a document that must not be trained on: see `train_document`."""
        w = Writer(seed)
        if part == "prose" or (part is None and w.chance(PROSE_SHARE)):
            return w, "prose", None, self._prose(w)
        system = w.pick(SYSTEM) if w.chance(0.12) else None
        if part is not None:
            table, total = _flat([PARTS[part]])
            return w, part, system, _choose(w, table, total)(w)
        count = w.pick((1, 1, 1, 1, 1, 2, 2, 2, 3, 4))
        turns, name = [], None
        if w.chance(0.06):
            first, name = manners.my_name(w)
            turns += first
        for _ in range(count):
            turns += self._exchange(w)
        if name and w.chance(0.85):
            turns.append(name)
        if w.chance(0.08):
            turns += manners.goodbye(w)
        return w, "chat", system, turns

    def _exchange(self, w):
        if self.questions and w.chance(0.06):
            text, source = w.pick(self.questions)
            if source == "gsm8k" and w.chance(0.6):
                text, source = w.pick(self.questions)
            kind = "sum" if source == "gsm8k" and w.chance(0.3) else "know"
            return [(_loosen(w, text), outside.answer(w, kind))]
        return _choose(w, _ALL, _SUM)(w)

    def train_document(self, seed):
        """A document for training, or None when it holds a held-out combination or an evaluation prompt."""
        w, kind, system, body = self.document(seed)
        if w.is_held_out():
            return None
        if kind == "prose":
            return None if self.guard.catches(body) else (kind, system, body)
        if any(self.guard.catches(user) for user, _ in body):
            return None
        return kind, system, body

    def held_out_document(self, seed, part):
        """A document of a part with at least one held-out combination, or None.

        Parts `prose` and `strangers` are corpus text and corpus questions that training never saw."""
        if part in ("prose", "strangers"):
            w = Writer(seed)
            if part == "prose":
                return "prose", None, w.pick(self.unread)[:3500]
            return part, None, [(_loosen(w, w.pick(self.strange)[0]), outside.answer(w))]
        w, kind, system, body = self.document(seed, part)
        return (kind, system, body) if w.is_held_out() else None

    def _prose(self, w):
        if self.prose and w.chance(0.33):
            text = w.pick(self.prose)
            if len(text) > 3500:
                starts = [m.end() for m in re.finditer(r"\n", text[:-2500])] or [0]
                at = w.pick(starts)
                text = text[at : at + 3500]
                text = text[: text.rfind(".") + 1] or text
            return text
        form = w.rng.randint(0, 9)
        if form <= 4:
            s = stories.Story(w)
            title = w.fill("[The {h} and {it}|{^t}|A story of {n} the {h}|{n} and {m}|The {h} and the {k}]", t=s.theme, **{k: v for k, v in s.slots().items() if k != "t"})
            return f"{title}\n\n{s.text()}" if w.chance(0.7) else s.text()
        return "\n".join(_paragraph(w) for _ in range(w.rng.randint(1, 4)))


def _split(items):
    """What training reads, and the one in fifty that it never sees."""
    aside = [zlib.crc32(repr(x).encode()) % 50 == 0 for x in items]
    return [x for x, a in zip(items, aside) if not a], [x for x, a in zip(items, aside) if a]


def _loosen(w, text):
    if w.chance(0.5):
        return w.style(text[0].lower() + text[1:] if w.chance(0.3) else text)
    if w.chance(0.3):
        text = text.lower()
    if w.chance(0.2):
        text = text.rstrip("?.! ")
    return text


def _paragraph(w):
    """A few sentences of facts."""
    form = w.rng.randint(0, 6)
    if form == 0:
        row = TABLE[w.pick(tuple(TABLE))]
        return w.say("{S n} [eat {e}|like to eat {e}]. {f} {m} A baby {n} is called {a y}.", n=row["name"], e=row["food"], f=row["fact"], m=row["more"], y=row["young"])
    if form == 1:
        return w.say(NOUNS[w.pick(tuple(NOUNS))])
    if form == 2:
        c = w.some(COUNTRIES, 3)
        return " ".join(w.say("[The capital of {c} is {k}.|{k} is the capital of {c}.|{^c} is in {t}, and its capital is {k}.|In {c} people speak {l}.]", c=x[0], k=x[1], t=x[2], l=x[3]) for x in c)
    if form == 3:
        name, needs, how, _ = w.pick(DISHES)
        return w.say("{^d}\nYou need {i}. {h}", d=name, i=needs, h=how)
    if form == 4:
        rows = [r for r in w.some(THINGS, 4) if r[0] not in UNCOUNTED]
        return " ".join(w.say("[{A n} is for {u}.|You find {a n} {p}.|{A n} is made of {m}.]", n=r[0], u=r[2], p=r[3], m=r[4]) for r in rows)
    if form == 5:
        return w.say(w.pick(QUESTIONS)[1])
    items = w.pick(tuple(lists.CATEGORIES.items()))
    return w.say("[Some {x} are {l}.|{^l} are {x}.|There are many {x}: {l}.]", x=items[0][1], l=listing(w.some(items[1], min(4, len(items[1])))))


class Guard:
    """Keeps the evaluation prompts out of training: whole prompts, and any 13 words in a row."""

    SPAN = 13

    def __init__(self, prompts):
        self.whole = frozenset(normalize(p) for p in prompts)
        self.long = tuple(p for p in self.whole if p.count(" ") >= 5)
        self.grams = frozenset(gram for p in self.whole for gram in grams(p, self.SPAN))

    def catches(self, text):
        """Whether the text repeats a prompt."""
        if not self.whole:
            return False
        text = normalize(text)
        if text in self.whole or any(p in text for p in self.long):
            return True
        return bool(self.grams) and text.count(" ") >= self.SPAN - 1 and any(g in self.grams for g in grams(text, self.SPAN))


_WORD = re.compile(r"[^a-z0-9 ]+")


def normalize(text):
    """Lower case words with single spaces, no marks."""
    return " ".join(_WORD.sub(" ", text.lower().replace("'", "")).split())


def grams(text, span):
    """Every run of `span` words."""
    parts = text.split(" ")
    return (" ".join(parts[i : i + span]) for i in range(len(parts) - span + 1))



