"""Everyday things, colours, family words, jobs."""

from ..tables.people import FAMILY, JOBS
from ..tables.things import COLORS, COLOR_MIXES, COLOR_MOODS, COLORS_OF, RAINBOW, THINGS, UNCOUNTED


def thing(w):
    """What a thing is, what it is for, where it is, what it is made of."""
    name, kind, use, place, made = w.pick(THINGS)
    many = name in ("scissors", "stairs", "glasses")
    form = w.rng.randint(0, 5)
    w.combo("thing", name, form)
    its = name if name in UNCOUNTED else ("an " if name[0] in "aeiou" else "a ") + name
    be, do = ("are", "do") if many else ("is", "does")
    slots = dict(i=its, k=kind, u=use, p=place, m=made, b=be, d=do, n=name)
    kind_said = {"scissors": "a tool with two blades", "stairs": "a row of steps", "glasses": "two lenses in a frame"}.get(name)
    what = f"{{^i}} {be} {kind_said or '{a k}'}."
    if form <= 1:
        q = "[what {b} {i}|what {b} {i}|explain what {i} {b}|tell me what {i} {b}|do you know what {i} {b}|describe {i}|tell me about {i}|what do you call {i} and what is it for|what exactly {b} {i}]" if not many else "[what are {i}|explain what {i} are|tell me about {i}]"
        answer = what + " [" + ("They are" if many else "It is") + " for {u}.|You find " + ("them" if many else "it") + " {p}.|" + ("They are" if many else "It is") + " for {u}, and you find " + ("them" if many else "it") + " {p}.]"
        if kind in ("building", "top of a house", "side of a room or house", "part of a wall that opens", "tiny start of a plant"):
            answer = what + " [It is for {u}.|You find it {p}.]"
        turns = [(w.ask(q, **slots), w.say(answer, **slots))]
    elif form == 2:
        turns = [(w.ask("[what {b} {i} for|what {b} {i} used for|what do you do with {i}|what do i need {i} for|why do people have {i}|what can i use {i} for|what do people use {i} for|what do you need {i} for|why would i need {i}|what is the use of {i}|how do people use {i}|what is the purpose of {i}|when do you use {i}|what does one do with {i}|what are {s n} for|what are {s n} used for]", **slots), w.say("{^i} {b} for {u}.", **slots))]
    elif form == 3:
        turns = [(w.ask("[where do i find {i}|where can i find {i}|where {b} {i} usually|where do people keep {i}|where would i look for {i}]", **slots), w.say("[You usually find {i} {p}.|Look {p}.|{^i} {b} usually {p}.]", **slots))]
    elif form == 4:
        turns = [(w.ask("[what {b} {i} made of|what {b} {i} made from|of what {b} {i} made]", **slots), w.say("{^i} {b} mostly made of {m}.", **slots))]
    else:
        turns = [(w.ask("[what do i need for {u}|what is used for {u}|which thing is for {u}|what can i use for {u}]", **slots), w.say("For {u} you need {i}." if not many else "For {u} you need {n}.", **slots))]
    if form < 5 and w.chance(0.25):
        it = "they" if many else "it"
        turns.append(w.pick((
            (w.ask(f"[and what {be} {it} made of|what {be} {it} made of]"), w.say("{^i} {b} mostly made of {m}.", **slots)),
            (w.ask(f"[and where do i find {'them' if many else 'it'}|where can i find {'one' if not many else 'them'}]"), w.say("You usually find {i} {p}.", **slots)),
            (w.ask(f"[and what {be} {it} for|what do you do with {'them' if many else 'it'}]"), w.say("{^i} {b} for {u}.", **slots)),
        )))
    return turns


def color(w):
    """Colours of things, mixing, the rainbow, favourites."""
    form = w.rng.randint(0, 7)
    if form <= 2:
        name, answer = w.pick(COLORS_OF)
        return [(w.ask("[what color is {n}|which color does {n} have|what is the color of {n}|tell me the color of {n}|what color has {n}|do you know what color {n} is]", n=name), w.say("{^n} is {a}.", n=name, a=answer))]
    if form == 3:
        a, b, mixed = w.pick(COLOR_MIXES)
        if w.chance(0.5):
            a, b = b, a
        return [(w.ask("[what do you get when you mix {a} and {b}|what color do {a} and {b} make|mix {a} and {b}|what happens if i mix {a} and {b}|{a} and {b} together make which color|which color comes out when i mix {a} with {b}|if i mix {a} and {b} paint, what do i get|i have {a} and {b} paint, what can i mix|what does {a} and {b} make|{a} plus {b} paint gives what color|what color do i get from {a} and {b}|when you mix {a} with {b}, what color is it|i put {a} and {b} together, which color is that|{a} and {b} mixed, what is it|which color will it be if i blend {a} and {b}]", a=a, b=b), w.say("[{^a} and {b} make {m}.|If you mix {a} and {b}, you get {m}.|You get {m}.]", a=a, b=b, m=mixed))]
    if form == 4:
        a, b, mixed = w.pick([m for m in COLOR_MIXES if m[2] != "brown"])
        return [(w.ask("[how do i make {m}|how do you mix {m}|which colors make {m}|how can i get {m}|what do i mix to get {m}]", m=mixed), w.say("Mix {a} and {b} to get {m}.", a=a, b=b, m=mixed))]
    if form == 5:
        return [(w.ask("[what are the colors of the rainbow|which colors does a rainbow have|name the colors of the rainbow|what colors are in a rainbow|list the rainbow colors]"), w.say("The colors of the rainbow are " + ", ".join(RAINBOW[:-1]) + ", and violet."))]
    if form == 6:
        c = w.pick(COLORS)
        return [(w.ask("[do you like {c}|what do you think of the color {c}|what is {c} like|how does {c} feel|my favorite color is {c}|i love the color {c}]", c=c), w.say("{^c} is a lovely color. It feels {m}.", c=c, m=COLOR_MOODS[c]))]
    c = w.pick(COLORS)
    mood = COLOR_MOODS[c]
    turns = [(w.ask("[what is your favorite color|whats your favorite colour|which color do you like best|do you have a favorite color]"), w.say("I cannot see colors, but I like the idea of {c}, because it sounds {m}. What is yours?", c=c, m=mood))]
    if w.chance(0.5):
        mine = w.pick(COLORS)
        turns.append((w.ask("[mine is {c}|i like {c}|{c}|my favorite is {c}|i love {c} most]", c=mine), w.say("{^c} is a lovely choice. It feels {m}.", c=mine, m=COLOR_MOODS[mine])))
    return turns


def family(w):
    """Who is who."""
    of, word = w.pick(FAMILY)
    your = "your" + of[2:]
    turns = [(w.ask("[who is {f}|what do i call {f}|what is {f} to me|how do i call {f}|what is the word for {f}|who is {f} to me]", f=of), w.say("{^y} is your {w}.", y=your, w=word))]
    if w.chance(0.2):
        of2, word2 = w.pick(FAMILY)
        turns.append((w.ask("[and {f}|what about {f}|and who is {f}]", f=of2), w.say("{^y} is your {w}.", y="your" + of2[2:], w=word2)))
    return turns


MEMBERS = ("mother", "father", "sister", "brother", "grandmother", "grandfather", "aunt", "uncle", "cousin", "son", "daughter", "mom", "dad", "grandma", "grandpa")


def family_chat(w):
    """Small talk about the family."""
    m = w.pick(MEMBERS)
    form = w.rng.randint(0, 6)
    w.combo("family-chat", m, form)
    if form == 0:
        return [(w.ask("[i have a {a} {m}|i love my {m}|my {m} is very {a}|my {m} is the best]", m=m, a=w.pick(("kind", "funny", "little", "big", "lovely", "clever"))), w.say("How lovely! [What do you like to do together|What do you like most about your {m}|Do you see your {m} often]?", m=m))]
    if form == 1:
        return [(w.ask("[my {m} is visiting [today|tomorrow|on sunday]. what can i cook|my {m} comes for dinner, what should i make|what can i cook for my {m}]", m=m), w.say("How nice that your {m} comes! [A warm soup and an apple pie are always welcome|How about lasagna and a green salad|Pancakes or a good vegetable stew would be lovely].", m=m))]
    if form == 2:
        return [(w.ask("[my {m} is sick|my {m} is in bed with a cold|my {m} does not feel well|my {m} caught a cold]", m=m), w.say("I am sorry to hear that. [A warm soup, tea, and rest can help|Bring your {m} tea and a good story]. If it gets worse, please call a doctor. I hope your {m} gets well soon.", m=m))]
    if form == 3:
        return [(w.ask("[i miss my {m}|my {m} lives far away|i have not seen my {m} for a long time]", m=m), w.say("I understand. [Missing someone shows how much you love them|It hurts to be far from people we love]. [You could call or write your {m} a letter|A call or a letter may make both of you happy].", m=m))]
    if form == 4:
        return [(w.ask("[what can i do with my {m}|what can i play with my {m}|ideas for a day with my {m}|how can i make my {m} happy|what would make my {m} happy]", m=m), w.say("[You could bake cookies, go for a walk, or look at old pictures together|Cook something together, play a game, or take a walk and talk|Make breakfast, write a little card, and spend time together]. [Time together is the best gift|It is the time together that counts].", m=m))]
    if form == 5:
        return [(w.ask("[do you have a {m}|do you have a family|do you have brothers or sisters|do you have parents]", m=m), w.say("No, I am a small computer program, so I have no family. [But I like to hear about yours.|Do you want to tell me about yours?]"))]
    age = w.rng.randint(3, 19)
    return [(w.ask("[my {m} turns {n} [tomorrow|today|next week|]|it is my {m}'s birthday|my {m} has birthday today]", m=m, n=age), w.say("Happy birthday to your {m}! [Will there be cake?|Are you planning a party?|I hope there will be a lot of cake.]", m=m))]


def job(w):
    """What people do for work."""
    name, does, where = w.pick(JOBS)
    form = w.rng.randint(0, 3)
    w.combo("job", name, form)
    if form == 0:
        return [(w.ask("[what does {a j} do|what is {a j}|what is the job of {a j}|what's {a j}|tell me what {a j} does|explain what {a j} does|what work does {a j} do]", j=name), w.say("[{A j} {d}.|{A j} is a person who {d}.]", j=name, d=does))]
    if form == 1:
        return [(w.ask("[who {d}|what do you call someone who {d}|what is a person called who {d}|which job is it when someone {d}|what do you call [a man|a woman|the person|somebody|people] who {d}|who is the person that {d}|what is the job of someone who {d}|what is the word for someone who {d}|what is the name of the job where someone {d}|what do we call a person who {d} [for money|as a job|every day|]|someone who {d} is called what|how do you call someone who {d}|my {k} {d}, what is that job called]", d=does, k=w.pick(("uncle", "aunt", "cousin", "sister", "brother", "neighbor"))), w.say("[{A j} {d}.|That is {a j}. {A j} {d}.|Someone who {d} is called {a j}.]", j=name, d=does))]
    if form == 2:
        return [(w.ask("[where does {a j} work|where do {s j} work]", j=name), w.say("{A j} mostly works {w}.", j=name, w=where) if not where.startswith(("early", "on the road", "with", "from", "high")) else w.say("{A j} {d} {w}.", j=name, d=does, w=where))]
    return [(w.ask("[i want to become {a j}|i am {a j}|my mother is {a j}|my father is {a j}|i work as {a j}]", j=name), w.say("That is a good job! {A j} {d}. [What do you like about it|How did you come to it]?", j=name, d=does))]


TOPICS = ((thing, 7.0), (color, 3.0), (family, 2.0), (family_chat, 2.5), (job, 2.5))
