"""Jokes, riddles, little poems, choices and favourites."""

from ..tables.animals import NAMES

JOKES = (
    "Why did the tomato turn red? Because it saw the salad dressing.", "What do you call a sleeping bull? A bulldozer.", "Why do bees have sticky hair? Because they use honeycombs.",
    "What is orange and sounds like a parrot? A carrot.", "Why did the cookie go to the doctor? Because it felt crumbly.", "What do you call cheese that is not yours? Nacho cheese.",
    "Why can't you tell an egg a joke? It might crack up.", "What did the big flower say to the little one? Hi, bud!", "Why was six afraid of seven? Because seven ate nine.",
    "What do you give a sick lemon? Lemon aid.", "Why did the banana go to the doctor? It was not peeling well.", "What has four wheels and flies? A garbage truck.",
    "How do you make an octopus laugh? With ten tickles.", "What did one wall say to the other? I will meet you at the corner.", "Why did the teddy bear say no to dessert? It was already stuffed.",
    "What is a cat's favorite color? Purr-ple.", "Where do cows go on Friday night? To the moo-vies.", "What kind of key opens a banana? A mon-key.",
    "Why did the potato sit at the window? It wanted to be a spec-tater.", "What do snowmen eat for breakfast? Frosted flakes.",
)
RIDDLES = (
    ("What has hands but cannot clap?", "a clock"), ("What gets wetter the more it dries?", "a towel"), ("What has a neck but no head?", "a bottle"), ("What has teeth but cannot bite?", "a comb"),
    ("What goes up but never comes down?", "your age"), ("What has one eye but cannot see?", "a needle"), ("What has legs but cannot walk?", "a table"), ("What is full of holes but still holds water?", "a sponge"),
    ("What can you catch but not throw?", "a cold"), ("What has many keys but opens no door?", "a piano"), ("What runs but never walks?", "water"), ("What has words but never speaks?", "a book"),
    ("What gets bigger the more you take away from it?", "a hole"), ("What has ears but cannot hear?", "a corn field"), ("What is always coming but never arrives?", "tomorrow"), ("What has a face but no eyes?", "a clock"),
)
POEMS = {
    "rain": "Drip, drop, the rain is here,\nit taps the roof, it sings so near.\nIt gives the thirsty flowers a drink,\nand paints the world in gray and pink.",
    "the moon": "The moon looks in, so round and bright,\nand fills my little room with light.\nIt says good night to house and tree,\nand then it smiles and winks at me.",
    "the sun": "The sun gets up and starts to play,\nit warms the garden all the day.\nAnd when it sinks behind the hill,\nthe whole wide world is calm and still.",
    "a cat": "A little cat sits on the mat,\nit washes this, it washes that.\nAnd when it hears the kettle sing,\nit purrs as happy as a king.",
    "a dog": "My dog runs fast, my dog runs far,\nhe loves to ride inside the car.\nBut best of all, when day is done,\nwe sit together in the sun.",
    "soup": "A pot of soup upon the fire,\nwith carrots and with peas.\nIt warms the friends around the table,\nso pass the bread, oh please.",
    "snow": "The snow falls softly, flake by flake,\nit hides the road, it hides the lake.\nWe build a man with a carrot nose,\nand snow is all his winter clothes.",
    "spring": "The snow is gone, the birds are here,\nthe happy days of spring are near.\nA flower lifts its sleepy head,\nand yawns inside its garden bed.",
    "summer": "The summer days are long and warm,\nwith bees and now and then a storm.\nWe eat our berries in the shade,\nand drink a glass of lemonade.",
    "winter": "The winter wind is cold and strong,\nthe days are short, the nights are long.\nBut here inside we light a light,\nand tell each other tales at night.",
    "friends": "A friend is like a summer day,\nwho drives the little clouds away.\nWe share our bread, we share a song,\nand side by side we walk along.",
    "a tree": "The old tree stands beside our door,\nit stood there many years before.\nIt gives us shade, it gives us fruit,\nand holds the earth with every root.",
    "the sea": "The sea is wide, the sea is blue,\nit sings a quiet song for you.\nIt brings a shell, it takes the sand,\nand leaves a kiss upon the land.",
    "a mouse": "A little mouse lives in our wall,\nit is so quick, it is so small.\nIt takes a crumb of cheese at night,\nand hops away in pale moonlight.",
    "bread": "The dough is soft, the oven hot,\nwe bake the bread, we wait a lot.\nAnd when it comes out, brown and round,\nthere is no better smell around.",
    "the night": "The night is dark, the stars are out,\na sleepy owl flies all about.\nSo close your eyes and count the sheep,\nand softly, softly fall asleep.",
    "my mother": "My mother sings, my mother cooks,\nshe reads to me from picture books.\nAnd when I fall and hurt my knee,\nshe knows just how to comfort me.",
    "home": "A lamp, a chair, a cup of tea,\nand someone there who waits for me.\nWherever in the world I roam,\nmy heart knows well the way back home.",
    "potluck": "One brings the bread, one brings the pie,\none brings a salad piled up high.\nAnd when we put it all in one,\nwe have a feast for everyone.",
    "birds": "The birds wake up before the sun,\nand sing a song for everyone.\nThey build a nest, so small and round,\nwith bits of grass that they have found.",
    "flowers": "The flowers open, red and blue,\nand drink a little drop of dew.\nThe bees fly in to say hello,\nand then the seeds begin to grow.",
}
FACTS = (
    "An octopus has three hearts.", "Honey can stay good for hundreds of years.", "A group of geese flies in the shape of a V.", "A snail can sleep for a very long time.", "Bananas float in water.", "Butterflies taste with their feet.",
    "The blue whale is the biggest animal of all.", "A day on Venus is longer than its year.", "Otters sometimes hold hands when they sleep.", "Bees dance to tell each other where the flowers are.", "No two zebras have the same stripes.", "Sunflowers turn toward the sun when they are young.",
    "Penguins give pebbles to the ones they like.", "Your heart is about as big as your fist.", "Sound travels faster in water than in air.", "Apples float because they hold a lot of air.",
)
CHOICES = (
    ("tea", "coffee", "is calm and gentle", "wakes you up"), ("a cat", "a dog", "is quiet and likes to sleep on your lap", "likes long walks and play"), ("the beach", "the mountains", "has sand and waves", "have clear air and wide views"),
    ("soup", "salad", "keeps you warm", "is fresh and light"), ("summer", "winter", "has long warm days", "has snow and cozy evenings"), ("a book", "a film", "lets you make your own pictures", "shows you the pictures"),
    ("apples", "oranges", "are crisp", "are juicy"), ("pizza", "pasta", "is fun to share", "is quick to cook"), ("the train", "the car", "lets you read and rest", "takes you right to the door"), ("walking", "cycling", "is calm and slow", "is faster"),
    ("cake", "cookies", "is festive", "are easy to share"), ("rice", "potatoes", "goes with nearly everything", "fill you well"), ("chocolate", "vanilla", "is rich and dark", "is mild and soft"), ("morning", "evening", "is fresh and new", "is calm and quiet"),
    ("the city", "the village", "has many shops and people", "is quiet and green"), ("a letter", "a call", "can be read again", "is quick and warm"), ("milk", "juice", "is mild", "is fresh and fruity"), ("breakfast", "dinner", "gives a good start", "brings all together"),
    ("red", "blue", "is warm and strong", "is calm and clear"), ("pancakes", "waffles", "are soft", "are crisp"), ("a picnic", "a restaurant", "is free and sunny", "cooks for you"), ("flowers", "chocolate", "brighten the room", "tastes sweet"),
    ("spring", "fall", "brings flowers", "brings colors"), ("a bath", "a shower", "is slow and warm", "is quick"), ("singing", "dancing", "warms the heart", "moves the whole body"), ("bread", "cereal", "fills you longer", "is ready at once"),
)


def joke(w):
    """A joke and another one."""
    a, b = w.some(JOKES, 2)
    turns = [(w.ask("[tell me a joke|do you know a joke|make me laugh|say something funny|can you tell [me|us] a joke|a joke please|i want to hear a joke|tell me something funny|got any jokes|know any good jokes|i need a laugh|joke|[have|got] a joke [for me|for us|]|make my [son|daughter|friend|day] laugh|[something funny|a funny joke|a good joke] please|i want to laugh|cheer me up with a joke|tell my {k} a joke|can you be funny|do you know anything funny|one joke please|we want a joke|i would like to hear a joke|joke please|a clean joke for kids]", k=w.pick(("son", "daughter", "friend", "kids"))), a)]
    if w.chance(0.35):
        turns.append((w.ask("[another one|one more|haha, another one please|tell me another joke|more|again]"), b))
    return turns


def riddle(w):
    """A riddle, the guess and the answer."""
    question, answer = w.pick(RIDDLES)
    form = w.rng.randint(0, 3)
    if form == 0:
        return [(w.style(question[0].lower() + question[1:-1]), w.say("[It is {a}|{^a}|The answer is {a}].", a=answer))]
    turns = [(w.ask("[tell me a riddle|do you know a riddle|ask me a riddle|give me a riddle|can you give me a riddle|a riddle please|i like riddles]"), w.say("[Here is one: |]{q}", q=question))]
    if form == 1:
        turns.append((w.ask("[{a}|is it {a}|i think it is {a}|it is {a}|maybe {a}]", a=answer), w.say("[Yes, that is right! It is {a}.|Correct! It is {a}. Well done.]", a=answer)))
    elif form == 2:
        turns.append((w.ask("[i don't know|i give up|no idea|what is it|tell me the answer|what is the answer]"), w.say("[It is {a}.|The answer is {a}.]", a=answer)))
    else:
        wrong = w.pick([r[1] for r in RIDDLES if r[1] != answer])
        turns.append((w.ask("[{a}|is it {a}|maybe {a}]", a=wrong), w.say("[Not quite. It is {a}.|Nice guess, but it is {a}.]", a=answer)))
    return turns


def poem(w):
    """A small poem on a subject."""
    name = w.pick(tuple(POEMS))
    bare = name.removeprefix("a ").removeprefix("the ").removeprefix("my ")
    if w.chance(0.15):
        return [(w.ask("[write a poem|tell me a poem|do you know a poem|write me a short poem|say a poem|sing a song|sing something for me|a poem please|recite a poem]"), POEMS[name])]
    return [(w.ask("[write a poem about {n}|a poem about {n} please|can you write a [short|little|] poem about {n}|tell me a poem about {n}|make a rhyme about {n}|i want a poem about {b}|write something beautiful about {n}|sing a song about {n}|poem about {b}|[i need|i'd like|i would love] a [short|little|] poem about {n}|a few lines about {n}|some verses about {n}|could you rhyme something about {n}|make [me|us] a [little|short|nice] [poem|rhyme|verse] about {n}|a rhyme about {n} for my {k}|a [little|] poem on {n} [please|]|something poetic about {n}|compose a poem about {n}|my {k} likes poems, do one about {n}|do you have a poem about {n}|invent a [poem|rhyme] about {n}|{b} poem please|write [my {k} |]a poem about {n} [for a card|]]", n=name, b=bare, k=w.pick(("grandmother", "mother", "friend", "son", "daughter", "teacher"))), POEMS[name])]


def fun_fact(w):
    """Something interesting."""
    a, b = w.some(FACTS, 2)
    turns = [(w.ask("[tell me something interesting|tell me a fun fact|do you know something interesting|surprise me|tell me something i don't know|a fun fact please|teach me something|tell me something|what do you find interesting|tell me something new]"), w.say("[|Did you know? |Here is one: ]{a}", a=a))]
    if w.chance(0.3):
        turns.append((w.ask("[another one|more|one more|tell me more|really|wow, another one]"), b))
    return turns


def choice(w):
    """This or that."""
    a, b, x, y = w.pick(CHOICES)
    if w.chance(0.5):
        a, b, x, y = b, a, y, x
    form = w.rng.randint(0, 12)
    w.combo("choice", a, b, form)
    q = ("[do you prefer|do you like] {a} or {b}", "{a} or {b}", "what is better, {a} or {b}", "should i [take|choose|have] {a} or {b}", "i cannot decide between {a} and {b}", "which is nicer, {a} or {b}", "[help me choose|help us decide|make a choice|you decide|choose for me|pick one]: {a} or {b}", "[we|i] [want|would like] {a} or {b}, what [do you think|would you say|is better]", "[shall|should] we [get|take|choose|try|have] {a} or {b}[, what do you think|, what would you do|]", "what would you [choose|pick|take|prefer], {a} or {b}", "[are you more for|are you team] {a} or {b}", "my friend says {a}, i say {b}. [who is right|what do you say|what do you think]", "[i am thinking about|i am torn between] {a} and {b}[, help|, what now|]")[form]
    turns = [(w.ask(q, a=a, b=b), w.say("[Both are nice. {^a} {x}, and {b} {y}. [What do you feel like today?|Choose what you feel like today.]|I would take {a}, because it {z}. [But you choose!|And you?]]" if not (a.endswith("s") and not a.endswith("ss") and not x.startswith(("is", "has"))) else "Both are nice. {^a} {x}, and {b} {y}. [What do you feel like today?|Choose what you feel like today.]", a=a, b=b, x=x, y=y, z=x if x.split(" ")[0] not in ("are", "have") else x))]
    if " are " in turns[0][1] and "because it are" in turns[0][1] or "because it have" in turns[0][1]:
        turns[0] = (turns[0][0], turns[0][1].replace("because it are", "because they are").replace("because it have", "because they have"))
    if w.chance(0.3):
        mine = w.pick((a, b))
        turns.append((w.ask("[i take {m}|then {m}|i think {m}|{m}|i like {m} more|{m} for me]", m=mine), w.say("[A good choice!|Good choice, enjoy!|Lovely!] [Have fun with it.|I hope it makes your day.|]", m=mine)))
    return turns


ANIMAL_CHAT = ("[what is your favorite animal|which animal do you like best|do you have a favorite animal|what animal would you like to be]", "I like the {n}, because it is a wonderful animal to tell stories about. [What is yours?|And you?]")


def favorite(w):
    """Favourites of a program that has none."""
    if w.chance(0.5):
        n = w.pick(NAMES)
        q, a = ANIMAL_CHAT
        turns = [(w.ask(q), w.say(a, n=n))]
        if w.chance(0.5):
            mine = w.pick(NAMES)
            turns.append((w.ask("[mine is the {m}|i like {s m}|the {m}|{s m}|i love {s m}]", m=mine), w.say("[Good choice!|How nice!] {S m} are [wonderful|lovely|interesting] animals. [Shall I tell you a story about {a m}?|Would you like to hear something about {s m}?]", m=mine)))
        return turns
    what, answer = w.pick((("season", "I like spring, because everything begins to grow."), ("number", "I like seven. It sounds lucky."), ("food", "I cannot eat, but I like to talk about soup. It warms everyone at the table."), ("day", "I like Saturday, because people have time to chat and cook together."), ("book", "I have no favorite book, but I love fairy tales with animals."), ("word", "I like the word together."), ("song", "I cannot hear music, but I like lullabies, because they are calm."), ("game", "I like riddles, because I can play them with words."), ("story", "I like stories in which someone small helps someone big."), ("flower", "I like the sunflower, because it looks at the sun."), ("dessert", "I cannot eat, but apple pie makes many people smile."), ("place", "I like a kitchen table with many friends around it.")))
    return [(w.ask("[what is your favorite {x}|whats your favorite {x}|do you have a favorite {x}|which {x} do you like best]", x=what), w.say("{a} [What is yours?|And yours?]", a=answer))]


TOPICS = ((joke, 2.0), (riddle, 2.0), (poem, 3.0), (fun_fact, 1.5), (choice, 3.0), (favorite, 1.5))
