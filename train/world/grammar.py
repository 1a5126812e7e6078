"""Templates with alternatives and slots, and the writer that expands them.

`[a|b|]` picks one alternative (they nest, an empty one is allowed); `{name}` inserts a slot, `{a name}` puts its article
before it, `{^name}` capitalizes it, `{s name}` makes it plural. Slots are inserted as they are and never expanded again.
"""

import random
import re
import zlib
from functools import lru_cache

HELD_OUT_ONE_IN = 40
"""One combination of facts and form in this many is kept out of training, to measure what generalizes."""


def held_out(*parts):
    """Whether a combination is kept for evaluation; the same answer in every process."""
    text = "\x1f".join(str(part) for part in parts)
    return zlib.crc32(text.encode()) % HELD_OUT_ONE_IN == 0

_SPACES = re.compile(" {2,}")
_LOOSE_MARK = re.compile(r" +([.,?!])(?=\s|$)")


@lru_cache(maxsize=None)
def parse(template):
    """A template as a tuple of strings, `("alt", options)` and `("slot", how, name)`."""
    nodes, end = _parse(template, 0, "")
    if end != len(template):
        raise ValueError(f"stray bracket at {end} in {template!r}")
    return nodes


def _parse(text, at, closers):
    nodes, run = [], []

    def flush():
        if run:
            nodes.append("".join(run))
            run.clear()

    while at < len(text) and text[at] not in closers:
        char = text[at]
        if char == "[":
            flush()
            options = []
            while True:
                option, at = _parse(text, at + 1, "|]")
                options.append(option)
                if at >= len(text):
                    raise ValueError(f"unclosed bracket in {text!r}")
                if text[at] == "]":
                    break
            nodes.append(("alt", tuple(options)))
        elif char == "{":
            flush()
            close = text.index("}", at)
            body = text[at + 1 : close]
            how, name = ("^", body[1:]) if body[0] == "^" else tuple(body.split(" ")) if " " in body else ("", body)
            nodes.append(("slot", how, name))
            at = close
        elif char == "]":
            raise ValueError(f"stray bracket at {at} in {text!r}")
        else:
            run.append(char)
        at += 1
    flush()
    return tuple(nodes), at


IRREGULAR_PLURALS = {
    "mouse": "mice", "goose": "geese", "sheep": "sheep", "fish": "fish", "wolf": "wolves", "child": "children",
    "man": "men", "woman": "women", "tooth": "teeth", "foot": "feet", "person": "people", "deer": "deer", "ox": "oxen",
    "leaf": "leaves", "knife": "knives", "loaf": "loaves", "potato": "potatoes", "tomato": "tomatoes", "shelf": "shelves",
    "calf": "calves", "half": "halves", "life": "lives", "wife": "wives", "hero": "heroes", "scarf": "scarves",
    "rice": "rice", "bread": "bread", "cheese": "cheese", "corn": "corn", "pasta": "pasta", "chicken": "chickens",
    "octopus": "octopuses", "mango": "mangoes", "buffalo": "buffaloes", "mosquito": "mosquitoes", "grapes": "grapes",
    "salmon": "salmon", "thief": "thieves", "kangaroo": "kangaroos",
    "goldfish": "goldfish", "jellyfish": "jellyfish", "pants": "pants", "stairs": "stairs", "scissors": "scissors", "glasses": "glasses",
}


def plural(noun):
    """The plural of an English noun of this world."""
    if noun in IRREGULAR_PLURALS:
        return IRREGULAR_PLURALS[noun]
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def article(noun):
    """`a` or `an`."""
    if noun.startswith(("hour", "honest")):
        return "an"
    if noun.startswith(("uni", "use", "one", "eu")):
        return "a"
    return "an" if noun[0].lower() in "aeiou" else "a"


def capital(text):
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def listing(items, joiner="and"):
    """`a`, `a and b`, `a, b, and c`."""
    items = list(items)
    if len(items) < 3:
        return f" {joiner} ".join(items)
    return ", ".join(items[:-1]) + f", {joiner} " + items[-1]


class Writer:
    """One document in the making: a seeded source of choices that remembers the combinations used."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.keys = []

    def combo(self, *parts):
        """Notes a combination; a document with a held-out one never reaches training."""
        self.keys.append(parts)

    def is_held_out(self):
        """Whether any combination used so far is kept for evaluation."""
        return any(held_out(*key) for key in self.keys)

    def pick(self, options):
        """One of them."""
        return options[int(self.rng.random() * len(options))]

    def some(self, options, count):
        """`count` different ones in random order."""
        return self.rng.sample(list(options), count)

    def chance(self, probability):
        """True that often."""
        return self.rng.random() < probability

    def say(self, template, **slots):
        """The template expanded, first letter capitalized: an assistant's sentence."""
        return capital(self.fill(template, **slots))

    def ask(self, template, **slots):
        """The template expanded as a person types it: see `style`."""
        return self.style(self.fill(template, **slots))

    def casual(self, template, **slots):
        """Like `ask`, but a remark that no opener fits."""
        return self.style(self.fill(template, **slots), openers=False)

    def fill(self, template, **slots):
        """The template expanded."""
        out = []
        self._expand(parse(template), slots, out)
        text = "".join(out)
        return _LOOSE_MARK.sub(r"\1", _SPACES.sub(" ", text)).replace("D.C..", "D.C.").strip()

    def _expand(self, nodes, slots, out):
        for node in nodes:
            if isinstance(node, str):
                out.append(node)
            elif node[0] == "alt":
                self._expand(self.pick(node[1]), slots, out)
            else:
                value = str(slots[node[2]])
                how = node[1]
                if how == "a":
                    value = f"{article(value)} {value}"
                elif how == "A":
                    value = f"{article(value).capitalize()} {value}"
                elif how == "s":
                    value = plural(value)
                elif how == "S":
                    value = capital(plural(value))
                elif how == "^":
                    value = capital(value)
                out.append(value)

    OPENERS = (
        "hey, ", "hi, ", "hello, ", "ok, ", "okay, ", "so ", "so, ", "hmm, ", "um, ", "well, ", "quick question: ", "question: ",
        "I have a question. ", "just wondering, ", "I was wondering, ", "please tell me, ", "tell me, ", "hey there, ", "oh, ",
        "one more thing, ", "now, ", "and ", "my son asks: ", "my daughter wants to know: ", "my kids are asking, ",
        "we are talking about this at the table: ", "help me out, ", "I forgot, ", "sorry, ", "hi there! ", "Hello! ", "Hi! ",
        "good morning, ", "good evening! ", "I am curious, ", "I'm curious: ", "let me ask you something. ", "for my homework: ",
        "alright, ", "say, ", "next question: ", "here is one for you: ", "please, ", "can I ask you something? ",
        "I always wanted to know, ", "maybe you know this: ", "dear model, ", "friend, ", "excuse me, ",
    )
    CLOSERS = (
        " please", ", please", " thanks", ", thanks", " thank you", ", do you know", " for me", ", just curious",
        ", I forgot", ", my friend", " again", ", can you tell me", ", any idea",
    )

    def style(self, text, openers=True):
        """As people type: an opener or a frame now and then, other words for the same, any case, with or without marks."""
        r = self.rng.random
        first = text.split(" ", 1)[0].lower().strip(",.!?")
        question = first in QUESTION_WORDS
        short = len(text) < 90 and "\n" not in text and ". " not in text
        if r() < 0.45:
            text = self._swap(text)
        if r() < 0.2:
            text = self._loosen(text)
        framed = False
        if openers and short:
            roll = r()
            if roll < 0.13:
                text = self.pick(self.OPENERS) + text
            elif roll < 0.16:
                text = text if text.endswith(("?", "!", ".")) else text + self.pick(self.CLOSERS)
            elif roll < 0.31:
                framed = True
                if r() < 0.55:
                    text = self.fill(self.pick(BEFORE), kin=self.pick(KIN)) + " " + (capital(text) if r() < 0.3 else text)
                else:
                    mark = self.pick(("? ", "? ", ", ", ". ")) if question else self.pick((". ", "! ", ", "))
                    after = self.fill(self.pick(AFTER), kin=self.pick(KIN))
                    text = text.rstrip("?.!") + mark + (capital(after) if mark != ", " and r() < 0.8 else after)
                    question = False
        if not text.endswith(("?", "!", ".", "\n")):
            mark = r()
            if question:
                text += "?" if mark < 0.6 else "" if mark < 0.95 else "??"
            else:
                text += "." if mark < 0.35 else "" if mark < 0.92 else "!"
        elif r() < 0.25 and not framed:
            text = text.rstrip("?.!")
        case = r()
        if case < 0.55:
            text = capital(text)
            if r() < 0.5:
                text = _LONE_I.sub("I", text)
        elif case < 0.88:
            text = text.lower()
        elif case < 0.9 and len(text) < 60:
            text = text.upper()
        if "'" in text and r() < 0.3:
            text = text.replace("'", "")
        if r() < 0.03 and len(text) > 12:
            text = self._slip(text)
        return text

    def _swap(self, text):
        """Some words replaced by others that mean the same."""
        for pattern, others in SWAPS:
            if pattern.search(text) and self.rng.random() < 0.5:
                text = pattern.sub(self.pick(others), text, count=1)
        return text

    def _loosen(self, text):
        """A filler word put in, or a small word left out."""
        parts = text.split(" ")
        if len(parts) < 4:
            return text
        if self.rng.random() < 0.6:
            parts.insert(self.rng.randrange(1, len(parts)), self.pick(FILLERS))
        else:
            small = [i for i, part in enumerate(parts) if part in DROPPABLE]
            if small:
                del parts[self.pick(small)]
        return " ".join(parts)

    def _slip(self, text):
        """One slip of the finger: two letters swapped, one left out, or one doubled."""
        at = self.rng.randrange(1, len(text) - 2)
        if not (text[at].isalpha() and text[at + 1].isalpha()):
            return text
        kind = self.rng.randrange(3)
        if kind == 0:
            return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        return text[:at] + text[at + 1 :] if kind == 1 else text[:at] + text[at] + text[at:]


FILLERS = ("just", "actually", "maybe", "really", "like", "you know", "basically", "kind of", "perhaps", "please", "then", "again", "exactly", "now", "also", "even", "still", "simply", "usually", "normally", "so", "well", "honestly", "anyway", "quickly")
DROPPABLE = frozenset("the a an is are do does of to me you it that".split())
KIN = tuple("mother father sister brother grandmother grandfather aunt uncle cousin son daughter wife husband friend neighbor teacher boss mom dad grandma colleague roommate".split())
BEFORE = (
    "[we were|I was|my {kin} and I were|the kids and I were] [sitting at the table|cooking|talking|having dinner|drinking tea|playing a game|on our way home|in the garden|reading] [and wondered:|and somebody asked:|and a question came up:|and I thought of this:|, so tell us:]",
    "my {kin} [asked me|wants to know|keeps asking|is curious|would like to know|says you know]: ",
    "[I have a little question for you|one little thing|here is something I want to know|something simple|I need your help|maybe you can help me|a question from my {kin}][:|.]",
    "[I am making a quiz|we are playing a quiz|I am learning English|I have homework|I am writing a card|it is for school|I am bored at home|I just woke up|it is late and I cannot sleep][.|:|, so]",
    "[I hope you are well|nice to see you|how lovely that you are here|it is a rainy day here|what a day|thanks for being here|good to have you]. ",
    "[do you happen to know|would you happen to know|can you perhaps tell me|any chance you know this]: ",
    "[my {kin} does not believe me|my {kin} and I have a bet|I told my {kin} I would find out|I forgot what my {kin} said]: ",
    "[hey you|dear little model|my friend|hello potluck|hi little one], ",
)
AFTER = (
    "[I always forget that|I keep forgetting|I never know|I always mix that up|I am not sure]", "[my {kin} wants to know|my {kin} asked me|my {kin} could not tell me|it is for my {kin}|asking for my {kin}]", "[thanks in advance|thank you in advance|thanks a lot|that would be nice|that would help me|I would be glad]",
    "[I need it for a quiz|it is for my homework|I need it for school|it is for a card|I am curious|just wondering|we have a bet]", "[no hurry|take your time|if you can|if you know it|in simple words please|a short answer is fine|just a short answer|keep it short please]", "[I would love to know|please help me|can you help|what do you say|what do you think|tell me please]",
)
_LONE_I = re.compile(r"\bi\b")


def _swaps():
    table = (
        (r"\bwhat is\b", ("what's", "whats", "what exactly is", "what would be")), (r"\bcan you\b", ("could you", "would you", "will you", "can u")), (r"\btell me\b", ("let me know", "please tell me", "tell us", "could you tell me")), (r"\bi am\b", ("i'm", "im")),
        (r"\bpeople\b", ("folks", "humans")), (r"\bchildren\b", ("kids", "little ones")), (r"\bhow do i\b", ("how would i", "how can i", "how does one", "how do you", "what is the best way to", "how should i")), (r"\bwhat can i\b", ("what could i", "what might i", "what shall i", "what may i")),
        (r"\bplease\b", ("pls", "plz", "kindly")), (r"\bwhich\b", ("what",)), (r"\bfavorite\b", ("favourite",)), (r"\bcolor\b", ("colour",)), (r"\bcolors\b", ("colours",)), (r"\bneighbor\b", ("neighbour",)), (r"\bmom\b", ("mum", "mommy")), (r"\bdad\b", ("daddy", "papa")),
        (r"\bi want\b", ("i would like", "i'd like", "i need", "i'd love")), (r"\bdo you know\b", ("do you happen to know", "can you tell me", "have you heard", "any idea")), (r"\bis called\b", ("is named",)), (r"\bmake\b", ("prepare", "make")), (r"\bgive me\b", ("could i have", "let me have", "give us")), (r"\bwrite\b", ("compose", "make", "write")),
        (r"\bstory\b", ("tale", "little story", "story")), (r"\bcan i\b", ("could i", "may i")), (r"\bwhat do\b", ("what exactly do", "what do")), (r"\bname\b(?! is)", ("list", "tell me", "name")), (r"\bgrandmother\b", ("grandma", "granny", "nan")), (r"\bgrandfather\b", ("grandpa", "granddad")), (r"\bdo you\b", ("do u", "do you")),
        (r"\bsay\b", ("tell", "say")), (r"\bshould\b", ("shall", "should")), (r"\ba lot of\b", ("lots of", "plenty of", "many")), (r"\bsome\b", ("a few", "a couple of", "some")), (r"\bexplain\b", ("describe", "explain", "tell me about")), (r"\bvery\b", ("really", "so", "super")), (r"\bhow are you\b", ("how are you", "how r u", "how are u")),
        (r"\bmean\b", ("stand for", "mean")), (r"\banother\b", ("one more", "another")), (r"\bdish\b", ("meal", "dish")), (r"\bhow does\b", ("how exactly does", "how does", "in what way does")), (r"\bwhy\b", ("why", "why exactly")),
    )
    return tuple((re.compile(pattern), others) for pattern, others in table)


SWAPS = _swaps()

QUESTION_WORDS = frozenset(
    "what whats what's who whos who's where wheres where's when why how hows how's which is are am do does did can could would "
    "will should has have may was were any".split()
)
