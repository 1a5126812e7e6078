"""Countries, capitals, continents, languages, foreign hellos and what places are for."""

from ..grammar import listing
from ..tables.places import ALIASES, BUILDINGS, CONTINENTS, COUNTRIES, HELLO, PHRASES

BY_CAPITAL = {row[1]: row for row in COUNTRIES}


def _spoken(w, country):
    aliases = ALIASES.get(country)
    name = w.pick(aliases) if aliases and w.chance(0.5) else country
    return name[4:] if name.startswith("the ") and w.chance(0.25) else name


def _capital(w, row):
    c = _spoken(w, row[0])
    form = w.rng.randint(0, 13)
    w.combo("capital", row[0], form)
    q = (
        "[what is|what's|whats] the capital of {c}", "[do you know|can you tell me|tell me] the capital of {c}", "[do you know|can you tell me|tell me|i want to know] what the capital of {c} is",
        "what is the capital city of {c}", "capital of {c}", "which city is the capital of {c}", "name the capital of {c}", "the capital of {c} is", "what city is the capital of {c}",
        "which city is {c}'s capital", "what's {c}'s capital", "[{c}, what is the capital there|in {c}, which city is the capital|where is the government of {c}|which city do people call the capital in {c}|what is the main city of {c}|what town is the capital of {c}|over in {c}, what is the capital]", "[remind me, |]what is the capital of {c} [again|called]", "what do you call the capital of {c}",
    )[form]
    return w.ask(q, c=c), w.say("[The capital of {c} is {k}.|The capital of {c} is {k}.|{k} is the capital of {c}.|{k} is the capital of {c}. The country is in {t}.|It is {k}.]", c=row[0], k=row[1], t=row[2])


def capitals(w):
    """A capital, often with 'and of …?' after it."""
    row = w.pick(COUNTRIES)
    turns = [_capital(w, row)]
    if w.chance(0.35):
        other = w.pick(COUNTRIES)
        turns.append((w.ask("[and of {c}|and {c}|what about {c}|and the capital of {c}|how about {c}|and for {c}]", c=_spoken(w, other[0])), w.say("[The capital of {c} is {k}.|{k} is the capital of {c}.|In {c} it is {k}.]", c=other[0], k=other[1])))
    if w.chance(0.2):
        last = row if len(turns) == 1 else other
        turns.append((w.ask("[which continent is that [country|] on|where is that [country|]|on which continent is it|in which part of the world is that|what language do they speak there|which language do people speak there]"), None))
        user = turns[-1][0].lower()
        turns[-1] = (turns[-1][0], _language(w, last) if "language" in user else w.say("{^c} is in {t}.", c=last[0], t=last[2]))
    return turns


def _language(w, row):
    return w.say("[People in {c} speak {l}.|In {c} people mostly speak {l}.|They speak {l} in {c}.]", c=row[0], l=row[3])


def countries(w):
    """Continents, languages, and capitals the other way round."""
    row = w.pick(COUNTRIES)
    c = _spoken(w, row[0])
    form = w.rng.randint(0, 4)
    w.combo("country", row[0], form)
    if form == 0:
        return [(w.ask("[on which continent is {c}|which continent is {c} [in|on]|where is {c}|what continent is {c} in|in which part of the world is {c}|where can i find {c} on the map]", c=c), w.say("{^c} is in {t}.", c=row[0], t=row[2]))]
    if form == 1:
        return [(w.ask("[what language do people speak in {c}|which language is spoken in {c}|what do they speak in {c}|which languages do people speak in {c}|what is the language of {c}]", c=c), _language(w, row))]
    if form == 2:
        if row[1] in ("Singapore",):
            return [(w.ask("is singapore a city or a country"), "Singapore is both: a city and a country.")]
        return [(w.ask("[{k} is the capital of which country|which country has the capital {k}|of which country is {k} the capital|in which country is {k}|where is {k}|what country is {k} in]", k=row[1]), w.say("[{k} is the capital of {c}.|{k} is in {c}. It is the capital.]", k=row[1], c=row[0]))]
    if form == 3:
        right = w.chance(0.5)
        other = row if right else w.pick(COUNTRIES)
        if right or other[1] == row[1]:
            return [(w.ask("is {k} the capital of {c}", k=row[1], c=c), w.say("[Yes, {k} is the capital of {c}.|Yes, that is right.]", k=row[1], c=row[0]))]
        return [(w.ask("is {k} the capital of {c}", k=other[1], c=c), w.say("No, the capital of {c} is {k}. {x} is the capital of {y}.", k=row[1], c=row[0], x=other[1], y=other[0]))]
    if form == 4 and w.chance(0.5):
        right = w.chance(0.5)
        t = row[2] if right else w.pick([x for x in CONTINENTS if x not in row[2]])
        return [(w.ask("is {c} in {t}", c=c, t=t), w.say("Yes, {c} is in {t}." if right else "No, {c} is in {t}.", c=row[0], t=row[2]))]
    t = row[2].split(" and ")[0]
    members = [r[0] for r in COUNTRIES if t in r[2]]
    return [(w.ask("[which countries are in {t}|name [some|a few] countries in {t}|what countries are there in {t}|tell me some countries in {t}]", t=t), w.say("[Some countries in {t} are|In {t} there are, for example,] {l}.", t=t, l=listing(w.some(members, min(5, len(members))))))]


BIG = {
    "Australia": ("Sydney", "Melbourne"), "the United States": ("New York", "Los Angeles", "Chicago"), "Canada": ("Toronto", "Montreal", "Vancouver"), "Brazil": ("Rio de Janeiro", "Sao Paulo"), "Turkey": ("Istanbul",), "Switzerland": ("Zurich", "Geneva"), "Germany": ("Munich", "Hamburg", "Frankfurt"),
    "Italy": ("Milan", "Venice", "Naples"), "Spain": ("Barcelona", "Seville"), "France": ("Lyon", "Marseille"), "China": ("Shanghai", "Hong Kong"), "India": ("Mumbai", "Kolkata"), "Japan": ("Osaka", "Kyoto"), "Morocco": ("Casablanca", "Marrakesh"), "South Korea": ("Busan",), "Vietnam": ("Ho Chi Minh City",),
    "Pakistan": ("Karachi", "Lahore"), "Nigeria": ("Lagos",), "New Zealand": ("Auckland",), "Scotland": ("Glasgow",), "the United Kingdom": ("Manchester", "Liverpool"), "Poland": ("Krakow",), "Russia": ("Saint Petersburg",), "Portugal": ("Porto",), "the Netherlands": ("Rotterdam",), "Belgium": ("Antwerp",), "Austria": ("Salzburg",), "Tanzania": ("Dar es Salaam",), "Ecuador": ("Guayaquil",), "Kazakhstan": ("Almaty",), "Egypt": ("Alexandria",),
}
BY_NAME = {row[0]: row for row in COUNTRIES}


def which_city(w):
    """The capital, not the big city that many take for it."""
    if w.chance(0.6):
        country = w.pick(tuple(BIG))
        row, other = BY_NAME[country], w.pick(BIG[country])
    else:
        row, second = w.some(COUNTRIES, 2)
        other = second[1]
    a, b = (row[1], other) if w.chance(0.5) else (other, row[1])
    w.combo("which city", row[0], other)
    c = _spoken(w, row[0])
    if w.chance(0.3):
        return [(w.ask("[is {o} the capital of {c}|{o} is the capital of {c}, right|isn't {o} the capital of {c}|i thought {o} was the capital of {c}]", o=other, c=c), w.say("No, the capital of {c} is {k}.", c=row[0], k=row[1]))]
    return [(w.ask("[which is the capital of {c}, {a} or {b}|is {a} or {b} the capital of {c}|is the capital of {c} {a} or {b}|{a} or {b}, which is the capital of {c}|what is the capital of {c}: {a} or {b}|does {c} have {a} or {b} as its capital]", a=a, b=b, c=c), w.say("[The capital of {c} is {k}.|It is {k}. {^k} is the capital of {c}.|{k} is the capital of {c}.]", c=row[0], k=row[1]))]


def hello(w):
    """A word in another language."""
    row = w.pick(HELLO)
    k = w.rng.randint(0, 5)
    w.combo("hello", row[0], PHRASES[k])
    turns = [(w.ask("[how do you say {p} in {l}|what is {p} in {l}|how do i say {p} in {l}|say {p} in {l}|what does {p} mean in {l}|can you say {p} in {l}|how do people say {p} in {l}|teach me {p} in {l}]", p=PHRASES[k], l=row[0]), w.say("[In {l} you say \"{x}\".|\"{^p}\" in {l} is \"{x}\".]", p=PHRASES[k], l=row[0], x=row[k + 1]))]
    if w.chance(0.3):
        other = w.pick(HELLO)
        w.combo("hello", other[0], PHRASES[k])
        turns.append((w.ask("[and in {l}|what about {l}|and {l}]", l=other[0]), w.say("In {l} you say \"{x}\".", l=other[0], x=other[k + 1])))
    return turns


def buildings(w):
    """What a place is."""
    name, what, who = w.pick(BUILDINGS)
    form = w.rng.randint(0, 2)
    w.combo("building", name, form)
    if form == 0:
        return [(w.ask("[what is {a n}|what's {a n}|explain what {a n} is|tell me about {a n}]", n=name), w.say("{A n} is a place where {x}. [You meet {y} there.|You can find {y} there.|]", n=name, x=what, y=who))]
    if form == 1:
        return [(w.ask("[what do people do at {a n}|what can you do at {a n}|what happens at {a n}|what is {a n} for]", n=name), w.say("{A n} is a place where {x}.", n=name, x=what))]
    return [(w.ask("[who do you meet at {a n}|who is at {a n}|who or what can i find at {a n}|what would i see at {a n}]", n=name), w.say("At {a n} you find {y}.", n=name, y=who))]


TOPICS = ((capitals, 6.0), (which_city, 2.0), (countries, 4.0), (hello, 2.0), (buildings, 2.0))
