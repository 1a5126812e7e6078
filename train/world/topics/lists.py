"""Lists of a number of things, odd ones out, and is-it-a questions."""

from ..grammar import listing
from ..tables.lists import CATEGORIES

NUMBERS = "zero one two three four five six seven eight nine ten".split()


def _items(w, items, n):
    chosen = w.some(items, n)
    form = w.rng.randint(0, 3)
    if form == 0:
        return "\n".join(f"{i}. {x[0].upper() + x[1:]}" for i, x in enumerate(chosen, 1)), chosen
    if form == 1 and n > 1:
        return w.say("[Here are {k}|Sure, here are {k}|Here you go]: {l}.", k=NUMBERS[n], l=listing(chosen)), chosen
    return w.say("{^l}.", l=listing(chosen)), chosen


def name_some(w):
    """Name five fruits, then three more."""
    one, many = w.pick(tuple(CATEGORIES))
    items = CATEGORIES[one, many]
    top = min(10 if w.chance(0.2) else 6, len(items))
    n = w.rng.randint(1 if w.chance(0.2) else 2, top)
    w.combo("list", many, n)
    said = NUMBERS[n] if w.chance(0.7) else str(n)
    noun = one if n == 1 else many
    q = w.ask("[name {n} {x}|list {n} {x}|tell me {n} {x}|give me {n} {x}|can you name {n} {x}|can you list {n} {x}|i need {n} {x}|write down {n} {x}|say {n} {x}|{n} {x}|what are {n} {x}|could you name {n} {x} [for me|]|please name {n} {x}|think of {n} {x}|can you give me {n} {x}|make a list of {n} {x}|i need a list of {n} {x}|i want to know {n} {x}|do you know {n} {x}|write a list with {n} {x}|show me {n} {x}|help me think of {n} {x}|mention {n} {x}|write down {n} {x} for my [list|shopping list|homework|notes]|i have to name {n} {x} for school|which {n} {x} come to your mind|my {k} needs {n} {x}|any {n} {x}|{n} {x} please|could i have {n} {x}|i can only think of one, give me {n} {x}|give me the names of {n} {x}|tell my {k} {n} {x}|i am looking for {n} {x}|let's name {n} {x}|would you list {n} {x}|just {n} {x}|we need {n} {x} for a game|quick, {n} {x}]", n=said, x=noun, k=w.pick(("son", "daughter", "sister", "friend", "child")))
    text, chosen = _items(w, items, n)
    turns = [(q, text)]
    rest = [x for x in items if x not in chosen]
    if len(rest) >= 1 and w.chance(0.3):
        m = w.rng.randint(1, min(4, len(rest)))
        w.combo("list-more", many, m)
        more = w.some(rest, m)
        q = "[one more|another one|and one more please|can you name one more]" if m == 1 else "[{m} more|{m} more please|and {m} more|name {m} more|can you give me {m} more]"
        turns.append((w.ask(q, m=NUMBERS[m]), w.say("{^l}.", l=listing(more))))
        chosen = chosen + more
    if w.chance(0.15) and len(chosen) > 1:
        k = w.rng.randrange(min(3, len(chosen)))
        turns.append((w.ask(f"[which one was the {('first', 'second', 'third')[k]}|what was the {('first', 'second', 'third')[k]} one]"), w.say("The {k} one was {x}.", k=("first", "second", "third")[k], x=chosen[k])))
    return turns


def some(w):
    """A list without a number."""
    one, many = w.pick(tuple(CATEGORIES))
    items = CATEGORIES[one, many]
    n = min(w.rng.randint(3, 5), len(items))
    w.combo("some", many)
    chosen = w.some(items, n)
    q = w.ask("[name some {x}|tell me some {x}|which {x} do you know|what {x} are there|give me some {x}|do you know any {x}|give me examples of {x}|what are some {x}|list a few {x}|can you name a few {x}|examples of {x}|what kinds of {x} are there|tell me a few {x}|some {x} please]", x=many)
    return [(q, w.say("[Some {x} are {l}.|{^l}.|For example {l}.|There are, for example, {l}.]", x=many, l=listing(chosen)))]


KINDS = (("fruit", "a fruit"), ("vegetable", "a vegetable"), ("color", "a color"), ("bird", "a bird"), ("insect", "an insect"), ("tool", "a tool"), ("vehicle", "a vehicle"), ("musical instrument", "a musical instrument"), ("piece of furniture", "a piece of furniture"), ("planet", "a planet"), ("month", "a month"), ("day of the week", "a day of the week"), ("flower", "a flower"), ("drink", "a drink"), ("sport", "a sport"), ("shape", "a shape"), ("piece of clothing", "a piece of clothing"))
_BY = {one: (many, items) for (one, many), items in CATEGORIES.items()}


def odd_one_out(w):
    """Which does not belong."""
    a, b = w.some(KINDS, 2)
    group = w.some(_BY[a[0]][1], 3)
    odd = w.pick([x for x in _BY[b[0]][1] if x not in _BY[a[0]][1]])
    shown = group + [odd]
    w.rng.shuffle(shown)
    w.combo("odd", a[0], b[0], odd)
    return [(w.ask("[which one does not belong: {l}|which is the odd one out: {l}|what does not fit: {l}|find the odd one: {l}|which word does not fit, {l}]", l=", ".join(shown)), w.say("{^o} does not belong, because it is {b} and the others are {a}.", o=odd, b=b[1], a=_BY[a[0]][0]))]


def is_it(w):
    """Is a rose a flower?"""
    a = w.pick(KINDS)
    item = w.pick(_BY[a[0]][1])
    claim = a if w.chance(0.5) else w.pick([k for k in KINDS if item not in _BY[k[0]][1]])
    w.combo("is it", item, claim[0])
    right = item in _BY[claim[0]][1]
    plural_form = item.endswith("s") and a[0] in ("fruit", "vegetable")
    bare = a[0] in ("color", "planet", "month", "day of the week", "drink", "sport") or plural_form or item in ("spinach", "cabbage", "broccoli", "lettuce", "corn", "zucchini", "scissors", "pants")
    name = item if bare else (("an " if item[0] in "aeiou" else "a ") + item)
    if plural_form:
        return [(w.ask("[are {n} {k}|do {n} count as {k}|are {n} really {k}|would you call {n} {k}|is it true that {n} are {k}|{n} are {k}, right]", n=item, k=_BY[claim[0]][0]), w.say("[Yes, {n} are {k}.|Yes.]" if right else "No, {n} are {r}.", n=item, k=_BY[claim[0]][0], r=_BY[a[0]][0]))]
    return [(w.ask("[is {n} {k}|does {n} count as {k}|would you call {n} {k}|is {n} really {k}|is it true that {n} is {k}|can you say that {n} is {k}|{n} is {k}, right|is {n} {k} or not|do you think {n} is {k}|i think {n} is {k}, am i right]", n=name, k=claim[1]), w.say("Yes, {n} is {k}." if right else "No, {n} is not {k}. It is {r}.", n=name, k=claim[1], r=a[1]))]


TOPICS = ((name_some, 9.0), (some, 3.0), (odd_one_out, 2.0), (is_it, 2.0))
