"""Animals: what they are, eat, say, can do; which is bigger; two facts and a chat about pets."""

from ..grammar import capital, plural
from ..tables.animals import NAMES, TABLE, weight
from ..tables.people import PET_NAMES

ABLE = {"walk": "walk", "run": "run fast", "climb": "climb well", "swim": "swim well", "fly": "fly", "hop": "hop", "dig": "dig", "crawl": "crawl", "crow": "crow loudly"}


ON = ("farms", "coasts", "cold coasts", "beaches", "grasslands", "dry land", "warm rocks", "hills")


def _home(row):
    """`on farms`, `in forests`, `near water`."""
    home = row["home"]
    if home.startswith(("everywhere", "near ")):
        return home
    if home.startswith("burrows and cages"):
        return "in " + home
    return ("on " if home.startswith(ON) else "in ") + home


def _sound(row):
    return f"{capital(plural(row['name']))} make hardly any sound." if row["sound"].startswith("makes") else f"{capital('an' if row['name'][0] in 'aeiou' else 'a')} {row['name']} {row['sound']}."


def _about(w, row):
    if row["kind"] == row["name"]:
        return w.say("{f} {m}", f=row["fact"], m=row["more"])
    return w.say("[{A n} is {a k}|The {n} is {a k}]. [{f} {m}|{m} {f}|{f} It eats {e}.]", n=row["name"], k=row["kind"], f=row["fact"], m=row["more"], e=row["food"])


def _turn(w, name, form=None):
    row = TABLE[name]
    form = w.rng.randint(0, 11) if form is None else form
    w.combo("animal", name, form)
    n = {"n": name}
    if form <= 2:
        q = "[what is {a n}|tell me about {s n}|tell me something about {s n}|what do you know about {s n}|describe {a n}|tell me a fact about {s n}|say something about the {n}|what kind of animal is {a n}|talk about {s n}|can you tell me something about the {n}|i want to learn about {s n}|i like {s n}, tell me about them|interesting facts about {s n}]"
        return w.ask(q, **n), _about(w, row)
    if form == 3:
        return w.ask("[what do {s n} eat|what does {a n} eat|what is the food of {s n}|what do i feed {a n}|what do {s n} like to eat]", **n), w.say("[{S n} eat {e}.|{A n} eats {e}.]", e=row["food"], **n)
    if form == 4:
        return w.ask("[where do {s n} live|where does {a n} live|where can i find {s n}|what is the home of {s n}]", **n), w.say("[{S n} live {h}.|You can find {s n} {h}.]", h=_home(row), **n)
    if form == 5:
        return w.ask("[what sound does {a n} make|what noise does {a n} make|how does {a n} sound|what does {a n} say|what do {s n} say]", **n), _sound(row)
    if form == 6:
        return w.ask("[what is a baby {n} called|what do you call a baby {n}|what is the name for a young {n}|how do you call the young of {a n}|what are baby {s n} called]", **n), w.say("A baby {n} is called {a y}.", y=row["young"], **n)
    if form == 7:
        return w.ask("[what color is {a n}|what color are {s n}|which color does {a n} have|what does {a n} look like]", **n), w.say("[{S n} are {c}.|{A n} is {c}.]" if row["color"] != "many colors" else "{S n} come in many colors.", c=row["color"], **n)
    if form == 8:
        legs = row["legs"]
        said = {"0": "no legs", "2": "two legs", "4": "four legs", "6": "six legs", "8": "eight legs", "10": "ten legs"}[legs]
        if name == "octopus":
            return w.ask("how many [legs|arms] does an octopus have"), "An octopus has eight arms."
        return w.ask("[how many legs does {a n} have|how many legs do {s n} have|{a n} has how many legs]", **n), w.say("{A n} has {l}.", l=said, **n)
    if form == 9:
        flies = row["able"] == "fly" or name in ("duck", "stork", "swan", "eagle")
        if name in ("chicken", "rooster"):
            return w.ask("can {a n} fly", **n), w.say("{A n} can flutter a little, but it cannot fly far.", **n)
        return w.ask("[can {a n} fly|can {s n} fly|do {s n} fly|is {a n} able to fly]", **n), w.say("Yes, {s n} can fly." if flies else "No, {s n} cannot fly.", **n)
    if form == 10:
        kind = row["kind"]
        if kind == name or kind.startswith(("slow", "small")):
            return w.ask("[is {a n} an insect|are {s n} insects|do {s n} count as insects]", **n), w.say("No, {a n} is not an insect.", **n)
        if name == "spider" and w.chance(0.5):
            return w.ask("[is a spider an insect|are spiders insects|is a spider an insect or not|why is a spider not an insect|i thought spiders were insects|are spiders really insects|does a spider belong to the insects]"), w.say("No, a spider is not an insect. It is an arachnid with eight legs, and insects have six.")
        guess = kind if w.chance(0.5) else w.pick([k for k in ("mammal", "bird", "fish", "insect", "reptile") if k != kind])
        return w.ask("[is {a n} {a k}|are {s n} {s k}|do {s n} count as {s k}|are {s n} really {s k}|is {a n} considered {a k}|would you say {a n} is {a k}|does {a n} belong to the {s k}|is it true that {s n} are {s k}|i think {s n} are {s k}, is that right|{s n} are {s k}, right|is the {n} {a k} or not]", k=guess, **n), w.say("Yes, {a n} is {a k}." if guess == kind else "No, {a n} is not {a g}. It is {a k}.", k=kind, g=guess, **n)
    return w.ask("[what can {a n} do|what is special about {s n}|why are {s n} special|what are {s n} good at|what is interesting about the {n}]", **n), w.say("[{f} {m}|{m} {f}|{m}|{f}]", f=row["fact"], m=row["more"])


def animal(w):
    """One or two questions about an animal, then 'and …?' for another."""
    name = w.pick(NAMES)
    turns = [_turn(w, name)]
    if w.chance(0.3):
        turns.append(_follow(w, name))
    elif w.chance(0.2):
        other = w.pick(NAMES)
        w.combo("animal-next", other)
        turns.append((w.ask("[and {s n}|what about {s n}|and what about {a n}|and {a n}|tell me about {s n} too]", n=other), _about(w, TABLE[other])))
    return turns


def _follow(w, name):
    row = TABLE[name]
    form = w.rng.randint(0, 4)
    if form == 0:
        return w.ask("[and what do they eat|what do they eat|and what does it eat|what is their food]"), w.say("[{S n} eat {e}.|They eat {e}.]", n=name, e=row["food"])
    if form == 1:
        return w.ask("[what sound do they make|and what sound does it make|what do they say]"), _sound(row)
    if form == 2:
        return w.ask("[and what are their babies called|what is the baby called|and the young ones]"), w.say("A baby {n} is called {a y}.", n=name, y=row["young"])
    if form == 3:
        return w.ask("[tell me more|more please|anything else|something else about them|what else|go on|interesting, tell me more]"), w.say("[{m}|{f}] [A baby {n} is called {a y}.|They eat {e}.]", m=row["more"], f=row["fact"], n=name, y=row["young"], e=row["food"])
    return w.ask("[where do they live|and where do they live|where can i see them|where can i find them]"), w.say("[You can find {s n} {h}.|{S n} live {h}.]", n=name, h=_home(row))


ASPECTS = (
    (("what {s n} eat", "what do {s n} eat", "what they eat", "what do they eat"), "eat {e}"), (("where {s n} live", "where do {s n} live", "where they live", "where do they live"), "live {h}"), (("what their babies are called", "what are their babies called", "what their young are called", "what are baby {s n} called"), "have babies called {y}"),
    (("what color they are", "what color are {s n}", "what color they have", "what color are they"), "are {c}"),
)


def two_things(w):
    """A question about two things at once."""
    name = w.pick([n for n in NAMES if TABLE[n]["color"] != "many colors"])
    row = TABLE[name]
    (qa, a), (qb, b) = w.some(ASPECTS, 2)
    w.combo("two", name, a, b)
    slots = dict(n=name, e=row["food"], h=_home(row), y=plural(row["young"]), c=row["color"])
    first = qa[1] if "{s n}" in qa[1] else qa[1].replace("they", "{s n}").replace("their babies", "baby {s n}")
    text = w.fill(first + " and " + qb[3], **slots) if w.chance(0.6) else w.fill("[tell me|i wonder|i want to know|do you know|explain] " + (qa[0] if "{s n}" in qa[0] else "about {s n}, " + qa[0]) + " and " + qb[2], **slots)
    return [(w.style(text), w.say("{S n} " + a + ". They " + b + ".", **slots))]


def compare(w):
    """Bigger, smaller, heavier, more legs."""
    a, b = w.some(NAMES, 2)
    x, y = weight(a), weight(b)
    if max(x, y) / min(x, y) < 1.6:
        b = "elephant" if x < 400 else "mouse"
        y = weight(b)
    pair = sorted((a, b))
    w.combo("compare", *pair)
    word = w.pick(("bigger", "bigger", "heavier", "larger", "smaller", "smaller", "lighter"))
    big = word in ("bigger", "heavier", "larger")
    best, rest = (a, b) if (x > y) == big else (b, a)
    form = w.rng.randint(0, 3)
    if form == 0:
        yes = w.chance(0.5)
        first, second = (best, rest) if yes else (rest, best)
        return [(w.ask("[is {a x} {w} than {a y}|are {s x} {w} than {s y}]", x=first, y=second, w=word), w.say("Yes, {a x} is {w} than {a y}." if yes else "No, {a y} is {w} than {a x}.", x=first, y=second, w=word))]
    q = w.ask("[which is {w}, {a x} or {a y}|what is {w}, {a x} or {a y}|who is {w}, {a x} or {a y}|which animal is {w}: {a x} or {a y}|which one is {w}, the {x} or the {y}|{a x} or {a y}, which is {w}|which is {w}: {x} or {y}|tell me which is {w}, {a x} or {a y}|would {a x} be {w} than {a y}, or the other way round|{x} vs {y}, which is {w}|if you compare {a x} and {a y}, which is {w}|between {a x} and {a y}, which one is {w}|what do you think is {w}, {a x} or {a y}|is {a x} or {a y} {w}]", w=word, x=a, y=b)
    if w.chance(0.15):
        q = w.ask("[which weighs|what weighs|who weighs|which animal weighs] {v}, {a x} or {a y}", v="more" if big else "less", x=a, y=b)
        word = "heavier" if big else "lighter"
    turns = [(q, w.say("[{A x} is {w} than {a y}.|The {x} is {w} than the {y}.|The {x} is {w}.]", x=best, y=rest, w=word))]
    if w.chance(0.2):
        c = w.pick(NAMES)
        if c not in (a, b) and max(weight(c), weight(best)) / min(weight(c), weight(best)) > 1.6:
            winner = c if (weight(c) > weight(best)) == big else best
            loser = best if winner == c else c
            turns.append((w.ask("[and {a c}|what about {a c}|and compared to {a c}|is {a c} even {w}]", c=c, w=word), w.say("{A x} is {w} than {a y}.", x=winner, y=loser, w=word)))
    return turns


def kind_of(w):
    """Is it a bird, and to which kind does it belong?"""
    return [_turn(w, w.pick(("spider", "whale", "dolphin", "bat", "penguin", "frog", "octopus", "turtle", "shark", "ostrich") if w.chance(0.3) else NAMES), form=10)]


def pet(w):
    """Someone has a pet with a name, and asks for the name later."""
    kind = w.pick(("dog", "cat", "rabbit", "hamster", "horse", "parrot", "turtle", "goldfish", "goat", "duck"))
    name = w.pick(PET_NAMES)
    w.combo("pet", kind, name)
    told = w.ask("[i have {a k}. [her|his] name is {n}|i have {a k} called {n}|my {k} is called {n}|this is my {k} {n}|we have {a k} named {n}|my {k}'s name is {n}|i got a new {k}, [she|he] is called {n}]", k=kind, n=name)
    turns = [(told, w.say("[How lovely! {n} is a nice name for {a k}.|{n} is a lovely name! I like {s k}.|Say hello to {n} from me!|A {k} named {n}, how nice!] [What does {n} like to do|How old is {n}|What does {n} like to eat]?".replace("A {k}", "{A k}"), k=kind, n=name))]
    if w.chance(0.6):
        turns.append((w.ask("[{x} likes to [sleep|play|eat|run around|cuddle] [all day|in the garden|on the sofa|]|{n} is [two|three|five|seven] years old|{n} loves [carrots|fish|cheese|apples|sleeping]|oh, {n} just sleeps all day]", n=name, x=name), w.say("[That sounds sweet|How nice|That is lovely]! {n} [must be a good friend|is lucky to have you|sounds like a dear {k}].", n=name, k=kind)))
    if w.chance(0.6):
        turns.append((w.ask("[what is my {k} called|what is the name of my {k}|do you remember the name of my {k}|what was my {k}'s name [again|]|whats my {k}s name]", k=kind), w.say("Your {k} is called {n}.", k=kind, n=name)))
    return turns


TOPICS = ((animal, 8.0), (two_things, 2.0), (kind_of, 2.5), (compare, 4.0), (pet, 2.0))
