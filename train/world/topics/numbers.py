"""Counting, sums, comparing, shapes and small money."""

from ..tables.people import NAMES

WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
COUNTED = "apples oranges cookies marbles stones eggs pencils books coins balls flowers candies plates cups chairs potatoes carrots toys kittens ducks sheep stars cards buttons pancakes grapes".split()


def _n(w, n):
    return WORDS[n] if n <= 20 and w.chance(0.15) else str(n)


def _sum(w, a, b):
    total = a + b
    w.combo("sum", a, b)
    if w.chance(0.25):
        q = w.ask("[can you do math? |do you know how to add? |are you good with numbers? |can you calculate? |a little sum: |here is a sum: |i need help with math: |math question: |][what would {a} and {b} be|how much would {a} plus {b} be|how much are {a} and {b}|how much do i get for {a} plus {b}|what do {a} and {b} add up to|{a} plus {b} equals what|{a}+{b}=?|{a} + {b} =|i have to add {a} and {b}, what is it|what number is {a} plus {b}|if you add {a} to {b}, what do you get|put {a} and {b} together|what is {a} more than {b}|what are {a} and {b} together|is {a} plus {b} equal to {t}]", a=_n(w, a), b=_n(w, b), t=total)
        yes = "Yes, {a} plus {b} is {t}." if " equal " in q.lower() else "[{a} plus {b} is {t}.|{a} plus {b} makes {t}.]"
        return q, w.say(yes, a=a, b=b, t=total)
    q = w.ask("[what is|whats|what's|how much is|calculate|can you add|tell me|do you know|] [{a} plus {b}|{a} + {b}|{a}+{b}|{a} and {b}]", a=_n(w, a), b=_n(w, b)) if w.chance(0.75) else w.ask(
        "[add {a} and {b}|what do you get if you add {a} and {b}|what is the sum of {a} and {b}|if i add {b} to {a}, what do i get|{a} plus {b} makes|please add {a} and {b}|how much do {a} and {b} make [together|]|what does {a} plus {b} make]", a=_n(w, a), b=_n(w, b))
    return q, w.say("[{a} plus {b} is {t}.|{a} + {b} = {t}.|{a} plus {b} makes {t}.|That is {t}: {a} plus {b} is {t}.]", a=a, b=b, t=total)


def _difference(w, a, b):
    w.combo("difference", a, b)
    q = w.ask("[[what is|whats|what's|how much is|] [{a} minus {b}|{a} - {b}|{a}-{b}|{a} take away {b}]|subtract {b} from {a}|take {b} away from {a}|what is left if i take {b} from {a}|what do you get if you take {b} from {a}]", a=_n(w, a), b=_n(w, b))
    return q, w.say("[{a} minus {b} is {t}.|{a} - {b} = {t}.|That is {t}: {a} minus {b} is {t}.]", a=a, b=b, t=a - b)


def _product(w, a, b):
    w.combo("product", a, b)
    q = w.ask("[[what is|whats|how much is|] [{a} times {b}|{a} x {b}|{a} * {b}|{a}*{b}|{a} multiplied by {b}]|multiply {a} by {b}]", a=_n(w, a), b=_n(w, b))
    return q, w.say("[{a} times {b} is {t}.|{a} x {b} = {t}.|That is {t}: {a} times {b} is {t}.]", a=a, b=b, t=a * b)


def sums(w):
    """One to three small sums, with shortened follow-ups."""
    r = w.rng
    kind = w.pick((0, 0, 0, 1, 1, 2))
    if kind == 0:
        a, b = r.randint(0, 20), r.randint(0, 20)
        turns = [_sum(w, a, b)]
        if w.chance(0.3):
            c = r.randint(1, 10)
            w.combo("sum", a + b, c)
            turns.append((w.ask("[and plus {c}|and if i add {c}|plus {c} more|now add {c}|and {c} more]", c=c), w.say("[{t} plus {c} is {u}.|Then it is {u}.|That makes {u}.]", t=a + b, c=c, u=a + b + c)))
        elif w.chance(0.3):
            c, d = r.randint(0, 20), r.randint(0, 20)
            w.combo("sum", c, d)
            turns.append((w.ask("[and {c} plus {d}|and {c}+{d}|and {c} + {d}|what about {c} plus {d}]", c=c, d=d), w.say("{c} plus {d} is {t}.", c=c, d=d, t=c + d)))
        return turns
    if kind == 1:
        b = r.randint(0, 20)
        a = b + r.randint(0, 20)
        turns = [_difference(w, a, b)]
        if a - b > 2 and w.chance(0.25):
            c = r.randint(1, a - b)
            w.combo("difference", a - b, c)
            turns.append((w.ask("[and minus {c}|and take away {c}|minus {c} more|now take away {c}]", c=c), w.say("[{t} minus {c} is {u}.|Then {u} is left.]", t=a - b, c=c, u=a - b - c)))
        return turns
    if w.chance(0.75):
        return [_product(w, r.randint(0, 10), r.randint(0, 10))]
    b, t = r.randint(1, 10), r.randint(1, 10)
    return [(w.ask("[what is|how much is|] [{a} divided by {b}|{a} / {b}]", a=b * t, b=b), w.say("{a} divided by {b} is {t}.", a=b * t, b=b, t=t))]


def word_problem(w):
    """Things given and taken."""
    r = w.rng
    thing, name, other = w.pick(COUNTED), *w.some(NAMES, 2)
    a, b = r.randint(1, 12), r.randint(1, 10)
    w.combo("problem", thing, a, b)
    form = r.randint(0, 5)
    if form == 0:
        q = w.ask("[{n} has|i have|if i have|we have] {a} {t} and [gets|get|buy|find|finds] {b} more. how many {t} [are there now|is that|do i have|do we have|does {n} have]", n=name, a=a, b=b, t=thing)
        return [(q, w.say("{a} plus {b} is {c}, so there are {c} {t}.", a=a, b=b, c=a + b, t=thing))]
    if form == 1:
        a = a + b
        q = w.ask("[{n} has|i have|there are|we had] {a} {t}. [{o} takes|i eat|i give away|we lose|{o} eats] {b}. how many [are left|{t} are left|remain]", n=name, o=other, a=a, b=b, t=thing)
        return [(q, w.say("{a} minus {b} is {c}, so {c} {t} are left.", a=a, b=b, c=a - b, t=thing))]
    if form == 2:
        k = r.randint(2, 5)
        q = w.ask("[there are {k} bowls with {b} {t} in each|{k} children have {b} {t} each|we have {k} boxes and {b} {t} in every box]. how many {t} are there [in all|together|]", k=k, b=b, t=thing)
        return [(q, w.say("{k} times {b} is {c}, so there are {c} {t}.", k=k, b=b, c=k * b, t=thing))]
    if form == 3:
        k = r.randint(2, 5)
        c = k * r.randint(1, 5)
        q = w.ask("[i have {c} {t} for {k} children|we share {c} {t} among {k} people|{k} friends share {c} {t}]. how many does each [one |]get", k=k, c=c, t=thing)
        return [(q, w.say("{c} divided by {k} is {d}, so each one gets {d} {t}.", c=c, k=k, d=c // k, t=thing))]
    if form == 4:
        q = w.ask("{n} has {a} {t} and {o} has {b}. how many {t} do they have [together|in all]", n=name, o=other, a=a, b=b, t=thing)
        return [(q, w.say("{a} plus {b} is {c}, so together they have {c} {t}.", a=a, b=b, c=a + b, t=thing))]
    if a == b:
        a += 1
    more, most = (name, a) if a > b else (other, b)
    q = w.ask("{n} has {a} {t} and {o} has {b}. who has more", n=name, o=other, a=a, b=b, t=thing)
    return [(q, w.say("{m} has more, because {x} is more than {y}.", m=more, x=most, y=min(a, b)))]


KIN = ("brother", "sister", "mother", "father", "friend", "son", "daughter", "dog", "cousin", "grandma", "neighbor", "uncle", "aunt", "teacher")
LOSE = ("ate", "took", "lost", "gave away", "broke", "sold", "threw away", "dropped", "used", "hid")
GAIN = ("gave me", "brought me", "found me", "bought me", "sent me", "baked me", "lent me")


def tale_problem(w):
    """Small sums told in many ways, with words or digits."""
    r = w.rng
    thing, kin = w.pick(COUNTED), w.pick(KIN)
    a, b = r.randint(1, 14), r.randint(1, 10)
    slots = dict(t=thing, k=kin)
    word = w.chance(0.5)

    def n(x):
        return WORDS[x] if word and x <= 20 else str(x)

    start = "[if i had|if i have|suppose i have|imagine i have|let's say i have|say i have|i have|i had|i bought|i baked|there were|we had|in a basket there are|on the table there are|i picked|she has|he has]"
    if w.chance(0.5):
        a = a + b
        w.combo("tale", thing, a, b)
        q = w.ask(start + " {a} {t} [and|, and then|, then|. then|but] [my {k} {v} {b} of them|my {k} {v} {b}|i {u} {b} of them|i {u} {b}|{b} of them are gone|{b} rolled away|{b} were eaten|i take {b} away]" + "[. how many are left|, how many are left|, how many do i have left|. how many {t} remain|, how many {t} would be left|. how many do i still have|, what is left|. how many are there now|. how many would i have then]", a=n(a), b=n(b), v=w.pick(LOSE), u=w.pick(LOSE), **slots)
        return [(q, w.say("[{a} minus {b} is {c}, so {c} {t} are left.|{c} {t} are left, because {a} minus {b} is {c}.]", a=a, b=b, c=a - b, **slots))]
    w.combo("tale+", thing, a, b)
    q = w.ask(start + " {a} {t} [and|, and then|, then|. then] [my {k} {v} {b} more|i get {b} more|i find {b} more|i buy {b} more|{b} more are added|someone brings {b} more|my {k} {v} another {b}]" + "[. how many are there now|, how many do i have now|, how many is that [together|in all|altogether|]|. how many {t} are there|, how many {t} do i have then|. what is the total|. how many would i have|, how many would that be|. how many in total]", a=n(a), b=n(b), v=w.pick(GAIN), **slots)
    return [(q, w.say("[{a} plus {b} is {c}, so there are {c} {t}.|There are {c} {t}, because {a} plus {b} is {c}.]", a=a, b=b, c=a + b, **slots))]


def counting(w):
    """Counting, order, even and odd, doubles and halves, number words."""
    r = w.rng
    form = r.randint(0, 10)
    if form == 0:
        n = r.randint(3, 20)
        w.combo("count", n)
        return [(w.ask("[count to {n}|can you count to {n}|count from 1 to {n}|please count up to {n}|show me how you count to {n}|lets count to {n}|count up to {n}|count with me to {n}|can you count all the way to {n}|please count from one to {n}|how do i count to {n}|my {k} wants to hear you count to {n}|count until {n}|say the numbers up to {n}|say the numbers from 1 to {n}|numbers from 1 to {n}]", n=WORDS[n] if w.chance(0.4) else n, k=w.pick(KIN)), w.say("[Sure: |Of course: |Here we go: |]{c}.", c=", ".join(str(i) for i in range(1, n + 1))))]
    if form == 1:
        n = r.randint(3, 20)
        return [(w.ask("[count down from {n}|count backwards from {n}|can you count backward from {n}|countdown from {n}]", n=_n(w, n)), w.say("{c}.", c=", ".join(str(i) for i in range(n, 0, -1))))]
    if form == 2:
        n = r.randint(0, 60)
        w.combo("after", n)
        return [(w.ask("[what number comes after {n}|what comes after {n}|which number comes next after {n}|what is the next number after {n}|what is one more than {n}]", n=_n(w, n)), w.say("[After {n} comes {m}.|{m} comes after {n}.]", n=n, m=n + 1))]
    if form == 3:
        n = r.randint(1, 60)
        w.combo("before", n)
        return [(w.ask("[what number comes before {n}|what comes before {n}|which number is before {n}|what is one less than {n}]", n=_n(w, n)), w.say("[Before {n} comes {m}.|{m} comes before {n}.]", n=n, m=n - 1))]
    if form == 4:
        n = r.randint(0, 40)
        w.combo("even", n)
        parity = "even" if n % 2 == 0 else "odd"
        tail = "it can be divided by 2" if n % 2 == 0 else "it cannot be divided by 2"
        return [(w.ask("is {n} [even or odd|odd or even|an even number|an odd number]", n=_n(w, n)), w.say("{n} is {p}, because {t}.", n=n, p=parity, t=tail))]
    if form == 5:
        n = r.randint(1, 25)
        w.combo("double", n)
        return [(w.ask("[what is the double of {n}|double {n}|what is twice {n}|what is two times {n}|can you double {n}]", n=_n(w, n)), w.say("[The double of {n} is {m}.|Twice {n} is {m}.]", n=n, m=2 * n))]
    if form == 6:
        n = r.randint(1, 20)
        w.combo("half", n)
        return [(w.ask("[what is half of {n}|half of {n}|how much is half of {n}|what is the half of {n}]", n=2 * n), w.say("Half of {n} is {m}.", n=2 * n, m=n))]
    if form == 7:
        n = r.randint(0, 20)
        return [(w.ask("[how do you write {n} in words|spell the number {n}|write {n} as a word|what is {n} in words]", n=n), w.say("{n} in words is {m}.", n=n, m=WORDS[n]))]
    if form == 8:
        a, b = w.some(range(0, 100), 2)
        w.combo("compare", a, b)
        small = w.chance(0.4)
        best = min(a, b) if small else max(a, b)
        rest = max(a, b) if small else min(a, b)
        adjective = w.pick(("smaller", "less")) if small else w.pick(("bigger", "larger", "more"))
        return [(w.ask("[which is {j}|what is {j}|which number is {j}], {a} or {b}", j=adjective, a=a, b=b), w.say("{x} is {j} than {y}.", x=best, y=rest, j=adjective))]
    if form == 9:
        start, step = r.randint(0, 10), r.choice((1, 2, 2, 3, 5, 10))
        run = [start + step * i for i in range(4)]
        w.combo("run", start, step)
        return [(w.ask("[what comes next: {s}|what is the next number: {s}|continue: {s}|which number comes next in {s}|go on: {s}]", s=", ".join(map(str, run))), w.say("[The next number is {n}|Next comes {n}], because it goes up by {k} each time.", n=run[-1] + step, k=step))]
    step = r.choice((2, 2, 3, 5, 10))
    return [(w.ask("[count by {k}s|count in steps of {k}|can you count by {k}|count by {k} up to {n}]", k=step, n=step * 8), w.say("{c}.", c=", ".join(str(step * i) for i in range(1, 9))))]


SHAPES = {"triangle": 3, "square": 4, "rectangle": 4, "pentagon": 5, "hexagon": 6, "octagon": 8}
COUNTS = (
    ("a dozen", "A dozen is 12."), ("half a dozen", "Half a dozen is 6."), ("a pair", "A pair is 2."), ("a couple", "A couple is 2."),
    ("a score", "A score is 20."), ("a hundred", "A hundred is 100, or ten times ten."), ("a thousand", "A thousand is 1000, or ten times a hundred."),
)
BODY = {"fingers": "ten fingers, five on each hand", "toes": "ten toes, five on each foot", "eyes": "two eyes", "ears": "two ears", "hands": "two hands", "legs": "two legs", "noses": "one nose", "arms": "two arms", "knees": "two knees", "thumbs": "two thumbs"}


def known_counts(w):
    """Corners, dozens, fingers."""
    form = w.rng.randint(0, 2)
    if form == 0:
        shape, n = w.pick(tuple(SHAPES.items()))
        return [(w.ask("how many [sides|corners] does {a s} have", s=shape), w.say("{A s} has {n} sides and {n} corners.", s=shape, n=n))]
    if form == 1:
        name, answer = w.pick(COUNTS)
        return [(w.ask("[how many is {n}|how much is {n}|what is {n}|how many things are in {n}]", n=name), answer)]
    part, answer = w.pick(tuple(BODY.items()))
    return [(w.ask("how many {p} [do people have|does a person have|do i have|do you have on your body|does a human have]", p=part), w.say("[People have|A person usually has|Most people have] {a}.", a=answer))]


TOPICS = ((sums, 7.0), (word_problem, 2.5), (tale_problem, 3.5), (counting, 3.5), (known_counts, 1.0))
