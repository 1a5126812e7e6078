"""Opposites, near words, rhymes, spelling, plurals, meanings."""

from ..grammar import IRREGULAR_PLURALS, article, capital, listing, plural
from ..tables.animals import NAMES
from ..tables.things import THINGS, UNCOUNTED
from ..tables.vocabulary import HINT_WORDS, MEANINGS, NEAR_WORDS, OPPOSITES, RHYMES

_PARTNERS = {}
for _a, _b in OPPOSITES:
    _PARTNERS.setdefault(_a, _b)
    _PARTNERS.setdefault(_b, _a)
_OPPOSED = tuple(_PARTNERS)
_NOUNS = tuple(n for n in tuple(r[0] for r in THINGS) + NAMES if n not in UNCOUNTED and n != "fish")


def opposite(w):
    """The opposite of a word, often with a second one."""
    a = w.pick(_OPPOSED)
    form = w.rng.randint(0, 17)
    w.combo("opposite", a, form)
    q = ("[what is|whats|what's] the opposite of {a}", "opposite of {a}", "tell me the opposite of {a}", "which word is the opposite of {a}", "what is the contrary of {a}", "what's the reverse of {a}", "do you know the opposite of {a}", "give me the opposite of [the word |]{a}", "[what do you call|how do you say|what is] the opposite of [being |]{a}", "what is the [exact|total|complete] opposite of {a}", "if something is not {a}, what is it", "{a} and its opposite", "[i need|i am looking for] the opposite of {a}", "which word means the opposite of {a}", "what would be the opposite of [the word |]{a}", "not {a} but", "the opposite of {a} is", "[could|can] you [find|name|say] the opposite of {a}")[form]
    turns = [(w.ask(q, a=a), w.say("[The opposite of {a} is {b}.|{^b} is the opposite of {a}.]", a=a, b=_PARTNERS[a]))]
    if w.chance(0.35):
        c = w.pick(_OPPOSED)
        w.combo("opposite-next", c)
        turns.append((w.ask("[and of {c}|and {c}|what about {c}|and the opposite of {c}]", c=c), w.say("The opposite of {c} is {d}.", c=c, d=_PARTNERS[c])))
    return turns


def near(w):
    """Another word for."""
    group = w.pick(NEAR_WORDS)
    a = w.pick(group)
    rest = [x for x in group if x != a]
    return [(w.ask("[what is another word for {a}|give me another word for {a}|a synonym for {a}|what is a synonym of {a}|which word means the same as {a}|what can i say instead of {a}|other words for {a}]", a=a), w.say("[Another word for {a} is {b}.|You can say {c} instead of {a}.]", a=a, b=rest[0], c=listing(rest, "or")))]


def rhyme(w):
    """Words that rhyme."""
    group = w.pick(RHYMES)
    a = w.pick(group)
    rest = w.some([x for x in group if x != a], len(group) - 1)
    return [(w.ask("[what rhymes with {a}|which word rhymes with {a}|tell me a rhyme for {a}|find a word that rhymes with {a}|give me words that rhyme with {a}|a rhyme for {a}|i need a rhyme for {a}|what word sounds like {a}|which words sound like {a}|a word that sounds like {a}|i am looking for something that rhymes with {a}|help me rhyme with {a}|rhyme {a}|words rhyming with {a}|i write a poem and need a rhyme for {a}|does anything rhyme with {a}|what could rhyme with {a}|my song needs a word that rhymes with {a}]", a=a), w.say("[{^b} rhymes with {a}.|{^l} rhyme with {a}.]" if len(rest) > 1 else "{^b} rhymes with {a}.", a=a, b=rest[0], l=listing(rest)))]


def spell(w):
    """Letters of a word."""
    a = w.pick(HINT_WORDS)
    form = w.rng.randint(0, 4)
    w.combo("spell", a, form)
    if form == 0:
        return [(w.ask("[how do you spell {a}|spell {a}|can you spell the word {a}|please spell {a}|how is {a} spelled]", a=a), w.say("{^a} is spelled {l}.", a=a, l="-".join(a.upper())))]
    if form == 1:
        return [(w.ask("[what is the first letter of {a}|which letter does {a} start with|with which letter does {a} begin|what letter does {a} start with]", a=a), w.say("{^a} starts with {l}.", a=a, l=a[0].upper()))]
    if form == 2:
        return [(w.ask("[what is the last letter of {a}|which letter does {a} end with|with which letter does {a} end]", a=a), w.say("{^a} ends with {l}.", a=a, l=a[-1].upper()))]
    if form == 3:
        return [(w.ask("[how many letters does {a} have|how many letters are in {a}|how many letters are in the word {a}]", a=a), w.say("{^a} has {n} letters: {l}.", a=a, n=len(a), l="-".join(a.upper())))]
    letter = w.pick("abcdefghlmoprstw")
    found = [x for x in HINT_WORDS + NAMES if x[0] == letter]
    return [(w.ask("[name a word that starts with {l}|tell me a word with {l}|which word begins with {l}|give me a word that starts with the letter {l}]", l=letter.upper()), w.say("{^a} starts with {l}.", a=w.pick(found), l=letter.upper()))] if found else opposite(w)


def plurals(w):
    """One and many."""
    a = w.pick(tuple(IRREGULAR_PLURALS)[:16]) if w.chance(0.4) else w.pick(_NOUNS)
    w.combo("plural", a)
    return [(w.ask("[what is the plural of {a}|plural of {a}|how do you say more than one {a}|one {a}, two what|what do you call many of them: {a}]", a=a), w.say("The plural of {a} is {b}.", a=a, b=plural(a)))]


def meaning(w):
    """What a word means."""
    a, text = w.pick(MEANINGS)
    person = text.startswith(("A ", "An ")) and text.split(" ")[1] == a
    noun = (article(a) + " ") if person else ""
    q = "[what does {a} mean|what is the meaning of {a}|explain the word {a}|what does the word {a} mean|can you explain {a}|what do people mean by {a}|i do not know the word {a}|define {a}|meaning of {a}|what is meant by {a}|when is someone called {a}|what do you understand by {a}|i read the word {a}, what is it|what does it mean to be {a}|in simple words, what is {a}" + ("|what is {o}{a}" if person and a in text.split(" person")[0] and "person" not in text[:25] else "") + "]"
    return [(w.ask(q, a=a.removeprefix("a "), o=noun), text)]


SENTENCES = (
    "The {n} is right here.", "I saw a {n} this morning.", "We found an old {n} in the attic.", "My grandmother gave me a {n}.", "Look, there is a {n} behind the house!", "She drew a {n} with a pencil.", "Nobody knew where the {n} was.", "The children laughed about the {n}.",
)


def sentence(w):
    """A word in a sentence."""
    a = w.pick(_NOUNS)
    w.combo("sentence", a)
    s = w.pick(SENTENCES).replace("{n}", a)
    if a[0] in "aeiou":
        s = s.replace(" a " + a, " an " + a)
    return [(w.ask("[make a sentence with {n}|use {n} in a sentence|use the word {n} in a sentence|write a sentence with the word {n}|say a sentence about {a n}|a sentence with {n}]", n=a), s)]


def repeat(w):
    """Say it after me."""
    text = w.pick(("hello world", "the sun is shining", "I like soup", "good morning everyone", "peace and cake", "one two three", "the cat sleeps on the sofa", "we are all friends", "rain, rain, go away", "bring a dish and share it", "roses are red", "dinner is ready"))
    if w.chance(0.6):
        text = w.fill("[the|my|our] {a} [likes|sees|finds] the {b}", a=w.pick(_NOUNS), b=w.pick(_NOUNS))
    return [(w.fill("[repeat after me: |say: |please say: |repeat: |say after me: |can you repeat this: ]{t}", t=text), capital(text) + ".")]


TOPICS = ((opposite, 4.0), (near, 1.5), (rhyme, 1.5), (spell, 2.0), (plurals, 1.0), (meaning, 2.5), (sentence, 1.2), (repeat, 0.8))
