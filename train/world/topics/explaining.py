"""Simple explanations, with 'why' and 'tell me more' after them."""

from ..tables.explain import NOUNS, QUESTIONS


def noun(w):
    """What is rain?"""
    name = w.pick(tuple(NOUNS))
    bare = name.removeprefix("a ").removeprefix("an ").removeprefix("the ")
    form = w.rng.randint(0, 22)
    w.combo("noun", name, form)
    q = ("what is {n}", "what's {n}", "explain {n}", "explain what {n} is", "can you explain {n}", "tell me about {n}", "what exactly is {n}", "tell me what {n} is", "how would you explain {n} to a child", "{b}, what is that", "please explain {n} to me", "[describe|define] {n}", "what do you know about {n}", "[i don't understand|i never understood|nobody could tell me|please help me understand] what {n} is",
        "[in simple words|in easy words|for a child|for a [five|six|seven] year old|for my [son|daughter|little brother]|short and simple|for beginners][:|, please:|,] [what is {n}|explain {n}|what {n} is]", "explain {n} [in simple words|to a child|to my [son|daughter]|simply|like i am five|in one or two sentences]", "what [does one mean by|do people mean by|do we call] {n}", "[how would you|how can i|could you] [describe|explain] {n} [to a child|in simple words|to my [son|daughter]|]",
        "my [son|daughter|little sister|nephew] asked [me|] what {n} is", "what [do i need to|should i|should a child] know about {n}", "say [something|a few words] about {n}", "{b}?", "give me a [short|simple] explanation of {n}")[form]
    turns = [(w.ask(q, n=name, b=bare), w.say(NOUNS[name]))]
    if name == "a story" and turns[0][1].endswith("hear one."):
        turns[0] = (turns[0][0], turns[0][1][:-1] + "?")
    if w.chance(0.12):
        other = w.pick(tuple(NOUNS))
        turns.append((w.ask("[and {n}|and what is {n}|what about {n}]", n=other), w.say(NOUNS[other])))
    return turns


def why(w):
    """Why is the sky blue?"""
    question, answer = w.pick(QUESTIONS)
    text = w.fill(question)
    if first_is_why(text) and w.chance(0.3):
        return [(w.ask("[how come {x}|what is the reason that {x}|what makes it so that {x}|can you tell me the reason why {x}|for what reason {y}|i wonder why {x}|nobody could tell me why {x}|explain why {x}|do you know why {x}|i do not understand why {x}|my {k} asks why {x}|tell me why {x}|please explain why {x}|is there a reason why {x}]", x=_statement(text), y=text[4:], k=w.pick(("son", "daughter", "kids", "brother", "child"))), w.say(answer))]
    first, rest = text.split(" ", 1) if " " in text else (text, "")
    if first in ("why", "how", "where", "what") and w.chance(0.25):
        text = w.fill("[can you explain|do you know|tell me|explain to me|i want to know|i wonder|explain|please explain] {t}", t=_indirect(text))
    return [(w.style(text), w.say(answer))]


def first_is_why(text):
    """Whether it is a why-question that `_statement` can turn round."""
    return text.startswith("why ") and _statement(text) is not None


def _statement(question):
    """`why do cats purr` as `cats purr`, `why is the sky blue` as `the sky is blue`; None for other shapes."""
    words = question.split(" ")
    if words[1] == "do":
        return " ".join(words[2:])
    if words[1] == "does":
        for at in range(3, len(words)):
            if words[at] in ("float", "melt", "rise", "pop", "change", "taste", "swim"):
                return " ".join(words[2:at] + [words[at] + "s"] + words[at + 1 :])
        return None
    if words[1] in ("is", "are") and words[2] in ("the", "ice", "water", "sea", "it", "winter", "summer"):
        at = 4 if words[2] == "the" or words[2] == "sea" else 3
        if len(words) <= at:
            return None
        return " ".join(words[2:at] + [words[1]] + words[at:])
    return None


CAUSES = {
    "rain": ("rain", "the rain", "all that rain"), "snow": ("snow", "the snow"), "wind": ("wind", "the wind"), "thunder": ("thunder", "the thunder", "the loud thunder in a storm"), "lightning": ("lightning", "a flash of lightning"), "fog": ("fog", "the fog"), "a rainbow": ("a rainbow", "rainbows"), "a cloud": ("clouds", "a cloud"), "frost": ("frost",),
    "an echo": ("an echo", "the echo"), "a shadow": ("a shadow", "shadows"), "steam": ("steam",), "ice": ("ice",), "a storm": ("storms", "a storm"), "an earthquake": ("earthquakes", "an earthquake"), "a volcano": ("volcanoes",),
}


def cause(w):
    """Where does the rain come from, what makes thunder, why is there fog?"""
    name = w.pick(tuple(CAUSES))
    said = w.pick(CAUSES[name])
    form = w.rng.randint(0, 9)
    w.combo("cause", said, form)
    many = said.endswith("s") and not said.endswith("ss")
    q = (
        "what [makes|causes|brings] {s}", "[where does {s} come from|how does {s} come about|where does [all|] the {b} come from|from where does {s} come]" if not many else "where do {s} come from", "why is there {s}" if not many else "why are there {s}", "how is {s} made" if not many else "how are {s} made", "how does {s} [form|happen|start|begin|work]" if not many else "how do {s} [form|happen|start|work]",
        "how do we get {s}", "what is {s} made of" if not many else "what are {s} made of", "why do we have {s}", "when does {s} [happen|come|form]" if not many else "when do {s} [happen|form]", "[what happens|what is going on] when there is {s}" if not many else "what happens when there are {s}",
    )[form]
    return [(w.ask(q, s=said, b=said.removeprefix('the ').removeprefix('all that ')), w.say(NOUNS[name]))]


def _indirect(question):
    """`why is the sky blue` as `why the sky is blue`."""
    words = question.split(" ")
    for helper in ("is", "are", "does", "do"):
        if len(words) > 3 and words[1] == helper:
            if helper == "do":
                return " ".join([words[0]] + words[2:])
            if words[0] == "why" and words[2] == "the" and len(words) == 5:
                return f"{words[0]} the {words[3]} {helper} {words[4]}"
            break
    return question


TOPICS = ((noun, 7.0), (why, 8.0), (cause, 3.0))
