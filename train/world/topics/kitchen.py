"""Cooking: what to make with what, how, how long, tastes, and planning a potluck."""

from ..grammar import article, listing
from ..tables.food import DISH, DISHES, FRUITS, HOW_LONG, INGREDIENTS, TASTES, VEGETABLES

MASS = ("salad", "soup", "bread", "pasta", "rice", "potatoes", "pancakes", "waffles", "eggs", "cookies", "muffins", "lemonade", "chocolate", "tea", "tacos", "burritos", "hummus", "guacamole", "meatballs", "peppers", "sticks", "popcorn", "porridge", "cheese", "pudding", "toast with jam", "applesauce", "chili", "curry", "punch", "chicken", "beans", "sauce", "lasagna", "pizza")


def _some(name):
    return name if name.endswith(MASS) or name in ("pasta with tomato sauce", "rice with beans", "toast with jam") else f"{article(name)} {name}"


def cook_with(w):
    """What can be made from something at hand."""
    names = tuple(INGREDIENTS)
    a = w.pick(names)
    form = w.rng.randint(0, 11)
    w.combo("cook with", a, form)
    q = (
        "what can i cook with {a}", "what can i make with {a}", "what can i make from {a}", "i have {a}, what can i cook", "i have some {a}. any ideas", "what should i do with {a}",
        "i have a lot of {a}, what [can i make|should i cook|do i do with them]", "give me an idea for {a}", "a [recipe|dish|meal] with {a}", "what dish can i [make|cook] with {a}", "there are only {a} in my kitchen, what now", "what is good with {a}",
    )[form]
    options = [_some(o) if o in DISH else o for o in w.some(INGREDIENTS[a], 3)]
    turns = [(w.ask(q, a=a), w.say("[With {a} you can make {l}.|You could make {l}.|How about {o}? {^p} would be good too.|Try {o} or {p}.]", a=a, l=listing(options, "or"), o=options[0], p=options[1]))]
    dishes = [d for d in INGREDIENTS[a] if d in DISH and d in turns[0][1].lower()]
    if dishes and w.chance(0.4):
        d = w.pick(dishes)
        row = DISH[d]
        turns.append((w.ask("[how do i make {d}|how do i make the {d}|{d} sounds good, how do i make it|ok, {d}. how does it go|and how is {d} made|tell me how to make {d}]", d=d), w.say("[{h}|For {d} you need {i}. {h}]", d=d, i=row[1], h=row[2])))
    elif w.chance(0.2):
        b = w.pick(names)
        options = [_some(o) if o in DISH else o for o in w.some(INGREDIENTS[b], 2)]
        turns.append((w.ask("[and with {b}|what about {b}|and {b}|i also have {b}]", b=b), w.say("[With {b} you can make {l}.|You could make {l}.]", b=b, l=listing(options, "or"))))
    return turns


def recipe(w):
    """What a dish needs and how it is made."""
    name, needs, how, kind = w.pick(DISHES)
    form = w.rng.randint(0, 3)
    w.combo("recipe", name, form)
    one = _some(name)
    if form <= 1:
        q = "[how do i make {o}|how do you make {o}|how is {d} made|how can i make {o}|tell me how to make {o}|i want to make {o}|give me a recipe for {d}|recipe for {d}|how to cook {d}|how do i cook {d}|can you explain how to make {o}|do you have a recipe for {d}|i would like to cook {d}|can you teach me to make {o}|how would you make {o}|how do people make {o}|what is the way to make {o}|i never made {o}, how does it work|i am trying to make {o}|can you help me make {o}|show me how {d} is made|my {k} wants {d}, how do i make it|is it hard to make {o}|what do i do to make {o}|making {d}, how does that go|steps for {d}|{d} recipe please|{d}, how|how to prepare {d}|an easy recipe for {d}|simple {d} recipe|how do you prepare {o} [at home|from the beginning|yourself|]|i feel like {d}, how do i make it|could you tell me the recipe for {d}|how would [you|we|somebody|a beginner] [make|cook|prepare] {o}|how should a beginner make {o}|what does it take to make {o}|what are the steps to make {o}|i have never made {o} before, can you help|we want to make {o} [tonight|together|for breakfast|for the kids|ourselves]|walk me through making {o}|how does making {o} work|the best way to make {o}|how are {d} made|making {o} at home, how|can you describe how to make {o}|could you explain how {d} is made|is there an easy way to make {o}|how does someone make {o}|what is needed for {o} and how is it made|what is your recipe for {d}]"
        turns = [(w.ask(q, o=one, d=name, k=w.pick(("son", "daughter", "wife", "husband", "friend", "sister"))), w.say("[For {d} you need {i}. {h}|You need {i}. {h}]", d=name, i=needs, h=how))]
        if w.chance(0.3):
            turns.append(w.pick((
                (w.ask("[thanks, what goes well with it|what can i serve with it|what goes with that]"), w.say("[Fresh bread and a green salad go well with it.|A green salad and some bread go well with it.]" if kind not in ("dessert", "drink", "breakfast", "snack") else "[A cup of tea goes well with it.|Some fresh fruit goes well with it.]")),
                (w.ask("[what do i need again|what do i need for it|what must i buy]"), w.say("You need {i}.", i=needs)),
            )))
        return turns
    if form == 2:
        return [(w.ask("[what do i need for {o}|what is in {o}|what are the ingredients of {d}|which ingredients do i need for {d}|what goes into {o}|what should i buy for {d}]", o=one, d=name), w.say("[For {d} you need {i}.|You need {i}.]", d=name, i=needs))]
    return [(w.ask("[what is {o}|whats {o}|tell me about {d}|do you know {d}]", o=one, d=name), w.say("{^o} is {k} made from {i}." if not name.endswith(("s",)) or name.endswith("hummus") else "{^o} are {k} made from {i}.", o=one, k={"side dish": "a side dish", "cold side dish": "a cold side dish", "main dish": "a main dish", "soup": "a soup", "salad": "a salad", "dessert": "a dessert", "breakfast": "something for breakfast", "snack": "a snack", "drink": "a drink", "dip": "a dip"}[kind], i=needs))]


MEALS = {
    "breakfast": ("breakfast",), "lunch": ("soup", "main dish", "salad"), "dinner": ("main dish", "soup"), "dessert": ("dessert",), "a potluck": ("cold side dish", "salad", "dessert", "dip"),
    "a picnic": ("salad", "cold side dish", "snack"), "a party": ("dip", "snack", "dessert", "cold side dish"), "a cold day": ("soup",), "a hot day": ("salad",), "my kids": ("main dish", "breakfast", "dessert"), "guests": ("main dish", "dessert"),
    "a birthday": ("dessert",), "a sick friend": ("soup",), "many people": ("main dish", "soup"), "a sunday": ("main dish", "dessert"),
}


def plan_meal(w):
    """A suggestion for an occasion, and another."""
    meal = w.pick(tuple(MEALS))
    pool = [d for d in DISHES if d[3] in MEALS[meal]]
    if meal == "a hot day":
        pool = [d for d in DISHES if d[3] == "salad"]
    d = w.some(pool, min(3, len(pool)))
    q = "[what should i cook for {m}|what can i make for {m}|what is good for {m}|give me an idea for {m}|i need something for {m}|what shall we eat for {m}|what could i cook for {m}|any ideas for {m}|suggest something for {m}|what do you recommend for {m}|i do not know what to make for {m}]"
    answer = w.say(
        "[How about {a}? [You need only {i}.|]|{^a} would be nice. {h}|You could make {a} or {b}.]",
        a=_some(d[0][0]), b=_some(d[1][0]), i=d[0][1], h=d[0][2],
    )
    turns = [(w.ask(q, m=meal), answer)]
    if w.chance(0.35):
        e = d[-1]
        turns.append((w.ask("[something else please|another idea|i don't like that, anything else|do you have another idea|no, something else|what else]"), w.say("[Then how about {a}|What about {a}]? [You need {i}.|{h}]", a=_some(e[0]), i=e[1], h=e[2])))
    return turns


def taste(w):
    """How things taste, how long they take, fruit or vegetable."""
    form = w.rng.randint(0, 4)
    if form == 0:
        name, answer = w.pick(TASTES)
        return [(w.ask("[how does {n} taste|what does {n} taste like|is {n} sweet or sour|what is the taste of {n}]", n=name), w.say("{^n} tastes {t}.", n=name, t=answer))]
    if form == 1:
        what, time = w.pick(HOW_LONG)
        return [(w.ask("[how long does it take to {x}|how long do i have to {x}|how many minutes to {x}|how long to {x}|how much time do i need to {x}]", x=what), w.say("It takes {t}.", t=time))]
    if form == 2:
        fruit = w.chance(0.5)
        name = w.pick(FRUITS if fruit else VEGETABLES)
        w.combo("fruit", name)
        return [(w.ask("[are {n} a fruit or a vegetable|are {n} fruits or vegetables|{n}: fruit or vegetable|do {n} count as fruit]", n=name), w.say("{^n} are {k}." if name not in ("spinach", "cabbage", "broccoli", "lettuce", "corn", "zucchini") else "{^n} is {j}.", n=name, k="fruits" if fruit else "vegetables", j="a vegetable"))]
    if form == 3:
        n = w.pick(FRUITS + VEGETABLES + ("pizza", "chocolate", "soup", "cake", "pancakes", "ice cream", "cheese", "bread", "pasta"))
        w.combo("like", n)
        return [(w.ask("[do you like {n}|i like {n}|i love {n}|do you eat {n}|i don't like {n}|i hate {n}]", n=n), w.say("[I cannot eat, but {n} [sound|sounds] good to many people. What do you like to eat with it?|I cannot taste anything, but I know many people like {n}.|Everybody has their own taste. What is your favorite food?]".replace("[sound|sounds]", "sounds" if not n.endswith("s") else "sound"), n=n))]
    hungry = w.ask("[i am hungry|i'm so hungry|what should i eat|i want to eat something|i am hungry, what can i eat|im starving|i need a snack|what can i eat right now]")
    turns = [(hungry, w.say("[How about a cheese sandwich or an apple|A bowl of soup or some fruit would be nice|Maybe scrambled eggs on toast|You could have some yogurt with fruit]? [What do you have in your kitchen?|What do you feel like?|Tell me what you have, and I give you an idea.]"))]
    if w.chance(0.6):
        a = w.pick(tuple(INGREDIENTS))
        o = [_some(x) if x in DISH else x for x in w.some(INGREDIENTS[a], 2)]
        turns.append((w.ask("[i have {a}|only {a}|just {a}|i have some {a}|there is only {a} here]", a=a), w.say("[Then you can make {x} or {y}.|With {a} you can make {x}.]", a=a, x=o[0], y=o[1])))
    return turns


COUNTS = ("one", "two", "three", "four", "five", "six", "a few", "some", "a bag of", "two pounds of", "a lot of", "a kilo of", "half a bag of", "a can of", "leftover", "old", "fresh", "many", "a handful of", "plenty of")


def _amount(w, name):
    return f"{w.pick(COUNTS[6:] if name in _UNCOUNTABLE else COUNTS[1:])} {name}" if w.chance(0.6) else name


_UNCOUNTABLE = frozenset("rice pasta bread cheese chicken fish milk flour spinach corn chocolate cabbage honey".split())


def cook_several(w):
    """Two or three things at hand, and a dish in which at least one of them goes."""
    names = [n for n in INGREDIENTS]
    chosen = w.some(names, w.pick((2, 2, 2, 3)))
    if w.chance(0.6):
        rich = [d for d in DISHES if sum(n in d[1] for n in names) >= 2]
        d = w.pick(rich)
        inside = [n for n in names if n in d[1]]
        chosen = w.some(inside, min(len(inside), len(chosen)))
        best = d
    else:
        best = DISH[w.pick([d for d in INGREDIENTS[chosen[0]] if d in DISH] or ["vegetable soup"])]
    w.combo("several", *sorted(chosen))
    have = listing([_amount(w, n) for n in chosen])
    q = w.ask("[what can i [cook|make|do|prepare] with {h}|i have {h}. what can i [make|cook|do with them]|there are {h} in my [kitchen|fridge|basket], [any ideas|what can i make|what should i cook]|all i have is {h}|only {h} left, what can i cook|i got {h}, [help me|any idea|what now]|what would you make [from|with|out of] {h}|can i make something [good|nice|tasty] with {h}|dinner idea with {h}|{h} - what can i make|is there a dish with {h}|i bought {h} and do not know what to cook|we still have {h}, what could we eat]", h=have)
    others = [x for n in chosen for x in INGREDIENTS[n] if x != best[0]]
    other = w.pick(others)
    return [(q, w.say("[You could make {a}. {h}|How about {a}? {h}|With these you could make {a} or {b}.|Try {a}, or make {b}.]", a=_some(best[0]), b=_some(other) if other in DISH else other, h=best[2]))]


OCCASIONS = (
    "i am [invited|going] to a [party|dinner|picnic|feast|garden party|street party|school party] [where everybody brings a dish|and everyone should bring something|and i should bring food|where each guest brings something|and i want to bring food|where we all bring something to eat]",
    "we have a [potluck|party|picnic|office lunch|family dinner|birthday party] [tomorrow|on sunday|next week|on friday|at work|at school]", "my [colleagues|friends|neighbors|in-laws|parents|cousins] are coming [for dinner|over|tonight|tomorrow|on saturday]",
    "our [school|club|team|choir|street|church|office] has a potluck", "i have to bring [food|a dish|something] to a [party|potluck|picnic|dinner]", "i promised to bring something [to eat|for the table|for the buffet]", "there is a buffet [at work|at school|at the club] and i want to help",
)
OCCASION_ASK = ("[what should i bring|what can i make|what would be nice|what is easy to make|any ideas|what could i cook|what do you suggest|what can i bring|what dish would be good|what is simple and good|what will everybody like|can you give me an idea|help me choose a dish|what shall i take with me|what would you bring]")


def bring(w):
    """What to bring to a table that everyone shares."""
    pool = [d for d in DISHES if d[3] in ("cold side dish", "salad", "dessert", "dip")]
    a, b = w.some(pool, 2)
    occasion = w.fill(w.pick(OCCASIONS))
    ask = w.fill(OCCASION_ASK)
    text = occasion + w.pick((". ", ", ", ". ", "! ", " - ")) + ask if w.chance(0.8) else ask + " when " + occasion
    w.combo("bring", occasion, ask)
    return [(w.casual("{t}", t=text), w.say("[How about {a}? It is easy to make and to share. {h}|Bring {a} or {b}. Both are easy to share.|{^a} would be nice. You need {i}. {h}|{^a} is always welcome, and {b} is easy to make too.]" if not a[0].endswith("s") else "[How about {a}? They are easy to make and to share. {h}|Bring {a} or {b}. Both are easy to share.|{^a} would be nice. You need {i}. {h}]", a=_some(a[0]), b=_some(b[0]), i=a[1], h=a[2]))]


KITCHEN_TIPS = (
    (("my soup is too salty", "the soup is too salty, what can i do", "i put too much salt in the soup", "how do i fix a salty soup"), ("Add some water and a cut potato, and let it cook a little longer. [The potato takes up some of the salt|A bit of cream helps too].",)),
    (("my cake is burnt", "i burned the cake", "the cake is black on top"), ("Cut off the dark parts and cover the rest with sugar or cream. [Next time, lay some foil over it|It happens to everyone].",)),
    (("how do i keep bread fresh", "how can i keep bread fresh longer", "my bread gets hard quickly"), ("Keep it in a bread box or a cloth bag, not in the fridge. [Slices can be frozen|Old bread is still good for toast and soup].",)),
    (("what can i do with old bread", "my bread is hard, what now", "what to do with stale bread"), ("Make toast, garlic bread, or bread pudding from it, or put it in an onion soup. [Nothing is wasted|Crumbs are good too].",)),
    (("how do i know if an egg is [fresh|good|bad]", "is this egg still good", "how can i test an egg"), ("Put it in a glass of water. A fresh egg sinks, and an old egg floats.",)),
    (("how much pasta for {n} people", "how much pasta do i need for {n} people"), ("Take about 100 grams of dry pasta for each person.",)),
    (("how much rice for {n} people", "how much rice do i need for {n} people"), ("Take about half a cup of dry rice for each person, and twice as much water.",)),
    (("i have no [milk|eggs|butter|sugar], what can i use instead", "what can i use instead of eggs", "what can i use instead of butter", "what can i use instead of sugar"), ("[For baking, mashed banana can stand in for an egg, oil for butter, oat milk for milk, and honey for sugar.|It depends: use oil for butter, mashed banana for an egg, honey for sugar, and oat drink for milk.]",)),
    (("should i wash [vegetables|fruit|rice|salad]", "do i have to wash fruit"), ("Yes, wash it under clean water before you eat or cook it.",)),
    (("how do i peel [potatoes|carrots|an apple]",), ("Hold it firmly and pull a peeler or a small knife away from you in thin strips. [Mind your fingers|Boiled potatoes are even easier to peel].",)),
    (("how do i store [tomatoes|potatoes|onions]", "where should i keep [potatoes|onions|tomatoes]"), ("Keep them in a cool, dark, and dry place, but not in the fridge.",)),
    (("is it hard to cook", "i cannot cook", "i can't cook, where do i start", "how do i learn to cook", "teach me to cook"), ("Start with something simple, like scrambled eggs, pasta with tomato sauce, or a vegetable soup. [Taste often and take your time|You learn a little with each meal].",)),
    (("what do vegetarians eat", "what can i cook without meat", "a dish without meat please", "do you know a vegetarian dish"), ("[Vegetable curry, bean chili, lentil soup, and lasagna with vegetables|Pasta with tomato sauce, vegetable stew, and fried rice] are good dishes without meat.",)),
    (("who brings what to our potluck", "how do we plan who brings what", "how do i organize a potluck", "help me plan a potluck"), ("Make a list: two main dishes, two salads, bread, dessert, and drinks. [Let each guest pick one|Everyone writes a name next to one thing]. Then nobody brings the same, and there is enough for all.",)),
    (("what is your favorite [food|dish|soup|cake]", "what do you like to eat", "what do you eat"), ("I cannot eat, but I like to talk about [soup, because it warms everyone at the table|apple pie, because everybody smiles when it comes]. What is yours?",)),
    (("what is healthy food", "what food is healthy", "what should i eat to be healthy"), ("Vegetables, fruit, beans, nuts, whole bread, and plenty of water are healthy. [Sweets are fine now and then|A little of everything is best].",)),
)


def tip(w):
    """Small kitchen troubles."""
    questions, answers = w.pick(KITCHEN_TIPS)
    question = w.pick(questions)
    w.combo("tip", question)
    return [(w.ask(question, n=w.rng.randint(2, 12)), w.say(w.pick(answers)))]


TOPICS = ((cook_with, 5.0), (cook_several, 4.0), (bring, 3.0), (recipe, 7.0), (plan_meal, 4.0), (taste, 4.0), (tip, 3.0))
