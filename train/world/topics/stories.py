"""Stories on demand that keep to the hero and theme asked for, and questions about them."""

import zlib

from ..grammar import article, capital
from ..tables import plots as P

OPENINGS = ("Once upon a time, there was {a d} {h} named {n} who lived {p}.", "There once was {a d} {h} called {n}. {^he} lived {p}.", "{p2}, there lived {a d} {h} named {n}.", "Long ago, {a d} {h} named {n} lived {p}.", "Once there was {a d} {h}. {^his} name was {n}, and {he} lived {p}.")
PAIR_OPENING = ("Once upon a time, {a d} {h} named {n} lived {p}.", "{p2}, there lived {a d} {h} named {n}.")
ENDINGS = ("", "", "", "The end.", "And that is the end of the story.", "And they lived happily for a long time.")
ASKS = (
    "tell me a story about {x}", "tell me a [short|little|nice|bedtime|funny|new] story about {x}", "a story about {x} please", "can you tell [me|us] a story about {x}", "write a story about {x}", "i want [a story|to hear a story] about {x}", "do you know a story about {x}",
    "story about {x}", "please tell a story about {x}", "could you write a short story about {x}", "make up a story about {x}", "my [son|daughter] wants a story about {x}", "a bedtime story about {x}, please", "i would like a story with {x}", "tell the kids a story about {x}",
    "invent a story with {x}", "write me a [short|little|] tale about {x}", "tell me about the adventure of {x}", "can i have a story about {x}", "read me a story about {x}", "let me hear a story about {x}", "a [short|little] tale about {x}", "i need a goodnight story with {x} in it",
)
ASKS += (
    "story [please|pls|plz|] [with|about] {x}", "my {k} would [love|like] to hear [something|a story|a little story] about {x}", "tell us something about the adventures of {x}", "can we have a story [with|about] {x}", "we want [a story|to hear] about {x}", "something about {x} for bedtime", "how about a story with {x}",
    "i wish for a story [about|with] {x}", "let's have a story about {x}", "come up with a story about {x}", "think of a story about {x}", "my {k} cannot sleep, tell a story about {x}", "for my {k}: a story about {x}", "it is bedtime. tell a story about {x}", "once upon a time there was {x}, please go on", "tell a tale [of|about] {x}",
    "would you tell [me|us] [a story|a bedtime story|a short story] about {x}", "i'd love a story about {x}", "give me a story about {x}", "a story with {x}!", "could you tell a story [in which there is|where there is|that has] {x}", "the story of {x}", "make me a story about {x}", "could we get a bedtime story about {x}", "one story about {x}",
)
KIN = ("son", "daughter", "little girl", "little boy", "child", "kids", "grandson", "niece", "nephew", "sister", "brother", "baby")
OPEN_ASKS = ("tell me a story", "can you tell me a [short|little|bedtime|] story", "a story please", "i want to hear a story", "tell me a bedtime story", "do you know a story", "please tell me a story", "write a short story", "story time", "tell us a story", "read me something before i sleep", "make up a story", "another story please", "i would like to hear a tale")

PLOTS = {"thing": P.THING_PLOTS, "food": P.FOOD_PLOTS, "weather": P.WEATHER_PLOTS, "place": P.PLACE_PLOTS}
VERBS = {
    "thing": ("[who loses {x}|who lost {x}|who looks for {x}|looking for {x}|who cannot find {x}]", "[who finds {x}|that finds {x}|who discovers {x}|finding {x}|who found {x}]", "[who wants {x}|who makes {x}|who wishes for {x}|who builds {x}|who dreams of {x}]", "[with {x}|who has {x}|who broke {x}|and {x}|who does not share {x}]"),
    "food": ("[who wants {x}|who is hungry for {x}|who dreams of {x}|and {x}|who would like {x}]", "[who makes {x}|who bakes {x}|who cooks {x}|that makes {x}|making {x}]", "[who finds {x}|who shares {x}|with {x}|who has {x}|who gets {x}]"),
    "weather": ("[who gets caught in {x}|in {x}|and {x}|lost in {x}|looking for shelter from {x}]", "[who does not like {x}|who is afraid of {x}|who plays in {x}|who hates {x}|and {x}]"),
    "place": ("[who goes to {x}|who visits {x}|who wants to see {x}|who gets lost on the way to {x}|who travels to {x}|who has never seen {x}]", "[in {x}|at {x}|who makes a feast at {x}|who lives near {x}]"),
}


class Story:
    """A chosen cast, theme and plot, and its text."""

    def __init__(self, w):
        self.w = w
        self.hero = w.pick(P.HEROES) if w.chance(0.75) else w.pick(("fox", "cat", "dog", "mouse", "bear", "rabbit", "girl", "boy", "owl", "frog"))
        self.helper = self._leaning([h for h in P.HEROES if h != self.hero], self.hero, 3, 0.4)
        self.he, self.his, self.him, names = self._gender(self.hero)
        self.name = self._leaning(names[::2], self.hero, 3, 0.85)
        self.she, self.her, _, other_names = self._gender(self.helper)
        self.helper_name = self._leaning(other_names[1::2], self.helper, 3, 0.85)
        self.trait = self._leaning(P.TRAITS, self.hero, 3, 0.6)
        sea = self.hero in P.SEA_HEROES
        self.place = self._leaning(P.WATER_PLACES if sea else P.PLACES, self.hero, 3, 0.6)
        self._theme()
        w.combo("story", self.hero, self.theme)

    def _leaning(self, options, about, few, often):
        """Mostly one of a few options that go with what it is about, so that greedy answers differ from story to story."""
        if not self.w.chance(often):
            return self.w.pick(options)
        at = zlib.crc32(about.encode())
        return options[(at + (0, 0, 0, 7, 7, 13)[self.w.rng.randrange(2 * few)]) % len(options)]

    def _gender(self, kind):
        fixed = "he" if zlib.crc32(kind.encode()) % 2 else "she"
        pronoun = P.PEOPLE.get(kind, "") or (fixed if self.w.chance(0.8) else self.w.pick(("he", "she")))
        return ("she", "her", "her", P.SHE) if pronoun == "she" else ("he", "his", "him", P.HE)

    def _theme(self):
        w = self.w
        kind = w.pick(("thing", "thing", "thing", "food", "food", "weather", "weather", "sky", "place", "place", "idea", "idea"))
        self.it_def = ""
        if kind == "thing":
            self.theme = w.pick(w.pick((P.THEME_THINGS, P.THEME_EXTRA, P.MORE_THINGS, P.MORE_THINGS)))
            if " " not in self.theme and w.chance(0.3):
                self.theme = f"{w.pick(P.MODIFIERS)} {self.theme}"
            self.it, plots = f"{article(self.theme)} {self.theme}", P.THING_PLOTS
            self.asked = self.it
        elif kind == "food":
            self.theme = w.pick(P.THEME_FOOD if w.chance(0.6) else P.EXTRA_FOOD)
            mass = self.theme in P.FOOD_MASS
            if " " not in self.theme and w.chance(0.35):
                self.theme = f"{w.pick(P.FOOD_MODIFIERS)} {self.theme}"
            self.it = self.theme if mass else f"{article(self.theme)} {self.theme}"
            plots, self.asked = P.FOOD_PLOTS, self.it
        else:
            table, plots = {"weather": (P.THEME_WEATHER, P.WEATHER_PLOTS), "sky": (P.THEME_SKY, P.SKY_PLOTS), "place": (P.THEME_PLACE, P.PLACE_PLOTS), "idea": (P.THEME_IDEA, P.IDEA_GENERAL)}[kind]
            self.theme = w.pick(tuple(table))
            self.it = self.asked = table[self.theme]
            if kind == "idea":
                plots = P.IDEA_PLOTS.get(self.theme, P.IDEA_GENERAL)
                self.it = "an old book" if plots is P.THING_PLOTS[1:2] else self.it
            if kind == "weather" and w.chance(0.5):
                self.asked = self.theme
            if kind == "sky" and self.theme in ("sun", "rainbow", "cloud"):
                plots = plots[:1]
        self.kind = kind
        self.plot = self._leaning(plots, self.hero + self.theme, 3, 0.5)
        noun = self.theme
        if kind == "idea":
            noun = {"sharing": "bread", "patience": "soup", "honesty": "wallet", "a potluck": "soup", "helping": "key", "courage": "night", "sleep": "night"}.get(self.theme, self.theme)
            self.it = {"honesty": "a wallet", "helping": "a key", "courage": "the night", "sleep": "the night"}.get(self.theme, self.it)
        self.noun = noun
        self.food = noun if noun in P.FOOD_MASS or noun.rsplit(" ", 1)[-1] in P.FOOD_MASS else f"{article(noun)} {noun}"
        self.it_def = "the " + noun if not self.it.startswith("the ") else self.it

    def slots(self):
        return dict(
            h=self.hero, n=self.name, k=self.helper, m=self.helper_name, t=self.noun, it=self.it, it_def=self.it_def, p=self.place, p2=capital(self.place), d=self.trait,
            he=self.he, his=self.his, him=self.him, she=self.she, her=self.her, food=self.food, a_k=f"{article(self.helper)} {self.helper}",
        )

    def text(self):
        w, slots = self.w, self.slots()
        beats = [b for b in self.plot if not b.startswith(("wish:", "end:"))]
        sentences = [w.say(w.pick(OPENINGS), **slots)]
        sentences += [w.say(b, **slots) for b in beats]
        ending = w.pick(ENDINGS)
        if ending:
            sentences.append(ending)
        if len(sentences) > 8 and w.chance(0.6):
            cut = 1 + w.rng.randint(2, 3)
            later = cut + w.rng.randint(3, 4)
            return "\n\n".join(" ".join(part) for part in (sentences[:cut], sentences[cut:later], sentences[later:]) if part)
        return " ".join(sentences)

    def part(self, label):
        line = next(b for b in self.plot if b.startswith(label + ":"))
        return self.w.fill(line[len(label) + 1 :], **self.slots())

    def request(self):
        """What the asker names: hero and theme, hero alone, theme alone, or hero and helper."""
        w = self.w
        if w.chance(0.22) and self.kind in ("thing", "food", "weather", "place"):
            who = w.pick((self.hero, self.hero, f"{self.trait} {self.hero}"))
            verbs = VERBS[self.kind][PLOTS[self.kind].index(self.plot)]
            return f"{article(who)} {who} " + w.fill(verbs, x=self.asked)
        hero, helper = f"{article(self.hero)} {self.hero}", f"{article(self.helper)} {self.helper}"
        form = w.rng.randint(0, 9)
        if form <= 3:
            return w.pick((f"{hero} and {self.asked}", f"{hero} and {self.asked}", f"the {self.hero} and {self.asked}", f"{hero} with {self.asked}" if self.kind in ("thing", "food") else f"{hero} and {self.asked}"))
        if form <= 5:
            return w.pick((hero, hero, f"{hero} named {self.name}", f"{hero} called {self.name}", f"{article(self.trait)} {self.trait} {self.hero}", f"{article(self.trait)} {self.trait} {self.hero} named {self.name}"))
        if form == 6:
            return self.asked
        if form == 7:
            return w.pick((f"{hero} named {self.name} and {self.asked}", f"{hero} called {self.name} and {helper}"))
        return w.pick((f"{hero} and {helper}", f"{hero} and {helper}", f"{hero}, {helper}, and {self.asked}", f"the {self.hero} and the {self.helper}"))


def story(w):
    """A story, then maybe questions about it or another one."""
    s = Story(w)
    if w.chance(0.12):
        request = w.ask(w.pick(OPEN_ASKS))
    else:
        question = w.fill(w.pick(ASKS), x="\x00", k=w.pick(KIN)).replace("\x00", s.request())
        request = w.style(question)
    turns = [(request, s.text())]
    for _ in range(w.pick((0, 0, 1, 1, 2))):
        turns.append(_question(w, s))
    if w.chance(0.08):
        other = Story(w)
        turns.append((w.style(w.fill("[another one about {x}|now one about {x}|and now a story about {x}|one more, about {x}]", x=other.request())), other.text()))
    return turns


def _question(w, s):
    slots = s.slots()
    form = w.rng.randint(0, 7)
    if form == 0:
        return w.ask("[what was the name of the {h}|what was the {h} called|what is the name of the {h}|whats the {h}'s name|how was the {h} called]", **slots), w.say("[The {h} was called {n}.|The name of the {h} was {n}.]", **slots)
    if form == 1:
        return w.ask("[who helped {n}|who helped the {h}|who was the friend|who was {m}|who did {n} meet|and who is {m}]", **slots), w.say("[It was {m}, the {k}.|{m} was the {k} who came along.|{n} met {m}, the {k}.]", **slots)
    if form == 2:
        return w.ask("[where did {n} live|where did the {h} live|where does the story take place]", **slots), w.say("{n} lived {p}.", **slots)
    if form == 3:
        return w.ask("[how did it end|what happened at the end|how does the story end|what was the end]"), w.say("[In the end, {e}.|At the end, {e}.]", e=s.part("end"))
    if form == 4:
        return w.ask("[what did {n} want|what did the {h} want|what was the wish of {n}|what did the {h} wish for]", **slots), w.say("{n} wanted {x}.", x=s.part("wish"), **slots) if not s.part("wish").startswith(("that", "not")) else w.say("{n} wished {x}.", x=s.part("wish"), **slots)
    if form == 5:
        return w.ask("[what kind of animal was {m}|was {m} a {h}|what was {m}|who is {m} again]" if s.helper != s.hero else "who was {m}", **slots), w.say("{m} was {a k}.", **slots)
    if form == 6:
        return w.ask("[what was the story about|what is the moral|can you sum it up|tell it in one sentence|what was it about]"), w.say("It was about {n} the {h}, who wanted {x}. In the end, {e}." if not s.part("wish").startswith(("that", "not")) else "It was about {n} the {h}. In the end, {e}.", x=s.part("wish"), e=s.part("end"), **slots)
    return w.ask("[thank you for the story|that was a nice story|i like {n}|what a nice story|good story]", **slots), w.say("[I am glad you liked it|Thank you]! [Would you like another one|Shall I tell you another one]?")


TOPICS = ((story, 20.0),)
