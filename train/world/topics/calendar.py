"""Days, months, seasons and the clock."""

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
SEASONS = ("spring", "summer", "fall", "winter")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth")
UNITS = (
    ("seconds", "minute", "60"), ("minutes", "hour", "60"), ("hours", "day", "24"), ("days", "week", "7"), ("months", "year", "12"),
    ("days", "year", "365, or 366 in a leap year"), ("weeks", "year", "52"), ("seasons", "year", "four"), ("weeks", "month", "about four"),
    ("years", "century", "100"), ("years", "decade", "10"), ("minutes", "half an hour", "30"), ("minutes", "quarter of an hour", "15"), ("hours", "half a day", "12"),
)
SEASON_OF = ("winter", "winter", "spring", "spring", "spring", "summer", "summer", "summer", "fall", "fall", "fall", "winter")


def _step(w, names, label, kind):
    i = w.rng.randrange(len(names))
    steps = w.pick((1, 1, 1, -1, -1, 2, -2)) if kind == "day" else w.pick((1, 1, -1, -1))
    w.combo(kind, names[i], steps)
    target = names[(i + steps) % len(names)]
    if steps == 1:
        q = "[what {l} comes after {n}|which {l} comes after {n}|what comes after {n}|what is the {l} after {n}|what {l} is after {n}|which {l} follows {n}|after {n} comes which {l}|what is the next {l} after {n}|which {l} is right after {n}|what {l} do we have after {n}|{n} is over, what {l} comes now|when {n} is over, which {l} begins|what {l} comes next after {n}|which {l} comes once {n} ends]"
        a = "[After {n} comes {t}.|{^t} comes after {n}.]"
    elif steps == -1:
        q = "[what {l} comes before {n}|which {l} is before {n}|what comes before {n}|what is the {l} before {n}|what {l} is right before {n}|which {l} comes right before {n}]"
        a = "[Before {n} comes {t}.|{^t} comes before {n}.]"
    elif steps == 2:
        q, a = "[what {l} is two days after {n}|which day comes two days after {n}]", "Two days after {n} is {t}."
    else:
        q, a = "[what {l} is two days before {n}|which day was two days before {n}]", "Two days before {n} is {t}."
    return (w.ask(q, l=label, n=names[i]), w.say(a, n=names[i], t=target)), (i + steps) % len(names)


def order(w):
    """What comes before or after."""
    names, label, kind = w.pick(((DAYS, "day", "day"), (DAYS, "day", "day"), (MONTHS, "month", "month"), (MONTHS, "month", "month"), (SEASONS, "season", "season")))
    turn, at = _step(w, names, label, kind)
    turns = [turn]
    if w.chance(0.25):
        turns.append((w.ask("[and after that|and the one after that|and then|what comes after that]"), w.say("After {n} comes {t}.", n=names[at], t=names[(at + 1) % len(names)])))
    return turns


RELATIVE = (("the day before yesterday", -2), ("yesterday", -1), ("today", 0), ("tomorrow", 1), ("the day after tomorrow", 2))


def today(w):
    """If one of five days around today is …, what is another."""
    (known, a), (asked, b) = w.some(RELATIVE, 2)
    if a != 0 and w.chance(0.4):
        known, a = "today", 0
        if b == 0:
            asked, b = "tomorrow", 1
    i = w.rng.randrange(7)
    w.combo("today", i, a, b)
    was = ("was" if a < 0 else "is", "was" if b < 0 else w.pick(("is", "will be")) if b > 0 else "is")
    q = w.ask("[if {k} {v} {d}, [what|which] day {x} {t}|{k} {v} {d}. [what|which] day {x} {t}|{k} {v} {d}, so what {x} {t}|what day {x} {t} if {k} {v} {d}|we know that {k} {v} {d}. what {x} {t} then]", k=known, v=was[0], d=DAYS[i], x=was[1], t=asked)
    return [(q, w.say("If {k} {v} {d}, {t} {x} {y}.", k=known, v=was[0], d=DAYS[i], t=asked, x="was" if b < 0 else "is", y=DAYS[(i - a + b) % 7]))]


def facts(w):
    """Lengths, positions, lists and seasons."""
    form = w.rng.randint(0, 8)
    if form == 0:
        i = w.rng.randrange(12)
        tail = ", or 29 in a leap year" if i == 1 else ""
        return [(w.ask("[how many days does {m} have|how many days are [there |]in {m}|how long is {m}|how many days has {m}]", m=MONTHS[i]), w.say("{m} has {n} days{t}.", m=MONTHS[i], n=LENGTHS[i], t=tail))]
    if form == 1:
        part, whole, n = w.pick(UNITS)
        if whole.startswith(("half", "quarter")):
            whole_said = "a quarter of an hour" if whole.startswith("quarter") else whole
            return [(w.ask("how many {p} are in {w}", p=part, w=whole_said), w.say("{^w} has {n} {p}.", w=whole_said, n=n, p=part))]
        return [(w.ask("[how many {p} are [there |]in {a w}|how many {p} does {a w} have|how many {p} make {a w}|{a w} has how many {p}]", p=part, w=whole), w.say("[{A w} has {n} {p}.|There are {n} {p} in {a w}.]", p=part, w=whole, n=n) if "leap" not in n and "about" not in n else w.say("{A w} has {n} {p}.", p=part, w=whole, n=n) if "about" in n else w.say("A year has 365 days, or 366 in a leap year."))]
    if form == 2:
        i = w.rng.randrange(12)
        return [(w.ask("[what is the {o} month [of the year|]|which month is the {o} [one|of the year]]", o=ORDINALS[i]), w.say("The {o} month of the year is {m}.", o=ORDINALS[i], m=MONTHS[i]))]
    if form == 3:
        i = w.rng.randrange(7)
        return [(w.ask("[what is the {o} day of the week|which day is the {o} day of the week]", o=ORDINALS[i]), w.say("If the week starts on Monday, the {o} day is {d}.", o=ORDINALS[i], d=DAYS[i]))]
    if form == 4:
        return [(w.ask("[name the days of the week|what are the days of the week|list all days of the week|tell me the days of the week|which days does a week have|say the days of the week|can you list the days [in order|]|all the days of the week please|what are the seven days|tell my {k} the days of the week|say all seven days|i need the days of the week in order|the days of the week, please|which seven days are there|recite the days of the week|from monday to sunday, what are the days|days of the week]", k=w.pick(("son", "daughter", "kids", "child"))), w.say("[The days of the week are|There are seven:] Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, and Sunday."))]
    if form == 5:
        return [(w.ask("[name the months|what are the months of the year|list all [the |]months|tell me the twelve months|name all months of the year|what months are there|list the months in order|all twelve months please|say the months|from january on, what are the months|tell me all months|which twelve months are there|months of the year]"), w.say("[The months are|There are twelve:] January, February, March, April, May, June, July, August, September, October, November, and December."))]
    if form == 6:
        return [(w.ask("[name the [four |]seasons|what are the [four |]seasons|which seasons are there|what seasons does a year have|list the seasons]"), w.say("[The four seasons are|There are four:] spring, summer, fall, and winter."))]
    if form == 7:
        i = w.rng.randrange(12)
        w.combo("month season", i)
        return [(w.ask("[in which season is {m}|what season is {m} in|is {m} in summer or winter|which season does {m} belong to]", m=MONTHS[i]), w.say("In the northern half of the world, {m} is in {s}.", m=MONTHS[i], s=SEASON_OF[i]))]
    name, answer = w.pick((("the weekend", "The weekend is Saturday and Sunday."), ("midnight", "Midnight is twelve o'clock at night, when a new day begins."), ("noon", "Noon is twelve o'clock in the middle of the day."), ("a weekday", "A weekday is a day from Monday to Friday."), ("tomorrow", "Tomorrow is the day after today."), ("yesterday", "Yesterday was the day before today."), ("a decade", "A decade is ten years."), ("a century", "A century is one hundred years."), ("new year's eve", "New Year's Eve is December 31, the last day of the year."), ("a calendar", "A calendar shows the days, weeks, and months of a year.")))
    return [(w.ask("[what is {n}|when is {n}|what does {n} mean|explain {n}]" if name not in ("a calendar", "a century", "a decade") else "[what is {n}|explain {n}|how long is {n}]", n=name), answer)]


WEATHER_WEAR = {
    "it is raining": "Take an umbrella and a rain coat, and put on boots.", "it is snowing": "Wear a warm coat, boots, gloves, a scarf, and a hat.",
    "it is very hot": "Wear light clothes and a hat, drink plenty of water, and stay in the shade.", "it is cold outside": "Put on a warm coat, a scarf, and gloves, and drink something warm.",
    "it is windy": "Wear a jacket that keeps out the wind, and hold on to your hat.", "it is foggy": "Walk and drive slowly, and wear something bright so that others can see you.",
    "the sun is shining": "A light shirt and a hat are enough. Do not forget sun cream.", "there is a storm": "Stay inside, close the windows, and wait until it is over.",
}
SEASON_DO = {
    "spring": "In spring you can plant flowers, ride a bicycle, listen to the birds, and have the first picnic.", "summer": "In summer you can swim, eat ice cream, have a picnic, and watch the stars on warm nights.",
    "fall": "In fall you can gather leaves, make pumpkin soup, pick apples, and fly a kite.", "autumn": "In autumn you can gather leaves, make pumpkin soup, pick apples, and fly a kite.",
    "winter": "In winter you can build a snowman, drink hot chocolate, read by a warm stove, and go sledding.",
    "a rainy day": "On a rainy day you can bake cookies, read a story, play a card game, or build a tent from blankets.", "a sunny day": "On a sunny day you can have a picnic, go for a walk, play ball, or swim.",
    "a cold evening": "On a cold evening you can cook a soup, light a candle, drink tea, and tell stories.", "the weekend": "On the weekend you can sleep long, cook with friends, go for a walk, or visit your family.",
}


def weather(w):
    """What to wear and do."""
    if w.chance(0.5):
        what = w.pick(tuple(WEATHER_WEAR))
        return [(w.ask("[{x}, what should i wear|{x}. what shall i put on|what should i wear when {x}|what do i do when {x}|{x} today. any advice|{x}, any tips]", x=what), WEATHER_WEAR[what])]
    what = w.pick(tuple(SEASON_DO))
    prep = "on" if what.startswith(("a ", "the ")) else "in"
    return [(w.ask("[what can i do {p} {x}|what can we do {p} {x}|what is fun {p} {x}|give me ideas for {x}|what do people do {p} {x}|what is nice about {x}]", p=prep, x=what), SEASON_DO[what])]


TOPICS = ((order, 4.0), (today, 2.0), (facts, 4.0), (weather, 2.5))
