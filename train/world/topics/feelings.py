"""Someone says how they feel; the model listens and offers something small."""

from ..tables.animals import NAMES
from ..tables.food import DISHES

FEELINGS = (
    (("sad", "very sad", "so sad", "down", "unhappy", "a bit blue", "heartbroken"), ("I am sorry that you feel sad. [Do you want to tell me what happened|Would you like to talk about it]?", "Oh, I am sorry. [It is all right to feel sad|Everyone feels sad sometimes]. [A walk, a warm drink, or a talk with a friend can help|Would a little story cheer you up?]")),
    (("lonely", "alone", "so alone", "very lonely"), ("I am sorry that you feel lonely. [Maybe you can call a friend or someone from your family|A short call to somebody you like can help]. [I am here for a chat, too|Until then we can chat a little].",)),
    (("tired", "very tired", "so tired", "sleepy", "exhausted"), ("Then a rest would be good. [Drink some water, put the screen away, and go to bed early|Maybe take a short nap or go to bed a little earlier].", "That sounds like a long day. [Be kind to yourself and rest|I hope you can rest soon].")),
    (("angry", "mad", "so angry", "furious", "upset"), ("I understand. [Take a few slow breaths first|Breathe slowly and count to ten]. [Then it is easier to say what you need|Do you want to tell me what made you angry?]",)),
    (("afraid", "scared", "frightened", "a little scared"), ("It is all right to be afraid. [Take a slow breath and tell someone you trust|Talk with someone you trust]. [What are you afraid of?|You do not have to be alone with it.]",)),
    (("nervous", "worried", "anxious", "stressed", "so nervous"), ("I understand. [Breathe slowly, and think of one small step at a time|Make a short list and begin with the smallest thing]. [What worries you most?|You can do it.]",)),
    (("happy", "so happy", "very happy", "great", "wonderful", "excited"), ("How nice! [I am glad to hear that|That makes a good day]. [What makes you so happy?|Would you like to share the reason?]", "That is wonderful! [Tell me more|What happened?]")),
    (("bored", "so bored", "really bored", "bored to death"), ("[You could draw, bake cookies, read a book, or go for a walk.|How about a game, a walk, or baking something?] [Or shall I tell you a story?|I could also tell you a riddle.]",)),
    (("sick", "ill", "not well", "under the weather"), ("I am sorry to hear that. [Rest, drink warm tea, and sleep a lot|Stay in bed and drink enough]. If it gets worse, please call a doctor. [Get well soon!|I hope you feel better soon.]",)),
    (("proud", "so proud", "proud of myself"), ("You have every reason to be proud! [What did you do?|Tell me what you did.] ",)),
    (("hungry", "very hungry", "starving"), ("Then it is time to eat! [How about soup, a sandwich, or some fruit?|A cheese sandwich or scrambled eggs are quick to make.] [What do you have in your kitchen?|What would you like?]",)),
    (("thirsty", "very thirsty"), ("Then drink a big glass of water. [Tea or lemonade is nice too.|Water is best.]",)),
    (("cold", "freezing", "so cold"), ("Put on a warm sweater and drink some hot tea. [A bowl of soup helps too.|A blanket is nice, too.]",)),
    (("in love", "falling in love"), ("How lovely! [Love makes the world a little brighter.|That is a warm feeling.] [Does the other person know?|Tell me more, if you like.]",)),
    (("jealous", "a bit jealous", "envious"), ("Many people feel that now and then. [Think of what is good in your own life|Try to be glad about what you have], and [talk about it with someone you trust|be kind to yourself].",)),
    (("grateful", "thankful"), ("That is a beautiful feeling. [What are you thankful for?|You could tell someone about it.]",)),
    (("homesick", "far from home"), ("I understand, home is a special place. [Cook something that tastes like home, or call your family.|A call home or a familiar song can help.]",)),
    (("confused", "lost", "mixed up"), ("That is all right. [Let us take it step by step|One step at a time]. [What is it about?|What do you want to understand?]",)),
    (("ashamed", "embarrassed"), ("Everybody makes mistakes. [Say sorry if it helps, and then let it go.|It feels big now, but it will soon be small.] [Do you want to tell me about it?|Be kind to yourself.]",)),
)
REASONS = {
    "my dog died": "I am so sorry. [Your dog was a dear friend|It hurts to lose a friend like that]. [Think of the good days you had together.|Take your time to be sad.]",
    "my cat died": "I am so sorry. [Your cat was a dear friend|It hurts to lose a friend like that]. [Think of the good days you had together.|Take your time to be sad.]",
    "my cat ran away": "Oh no, I am sorry. [Ask your neighbors and put out some food|Look around the house, call softly, and ask your neighbors]. Many cats come back by themselves.",
    "my dog ran away": "Oh no, I am sorry. Ask your neighbors, call for your dog, and put up a note with a picture. Many dogs find their way home.",
    "i lost my keys": "How annoying! [Look in your pockets, your bag, and by the door.|Think of where you were last and go back step by step.]",
    "i lost my job": "I am sorry, that is hard. [Give yourself a little time, talk to people you trust, and then look for the next step.|You are more than your job, and something new will come.]",
    "i have an exam tomorrow": "Good luck! [Read your notes once more, then rest and sleep well.|Sleep well, eat breakfast, and take it one question at a time.]",
    "i failed my exam": "I am sorry. [One exam does not decide who you are|It happens to many people]. Rest a little, see what was hard, and try again.",
    "i broke my favorite cup": "Oh, what a pity! [Maybe it can be glued|Some cups can be glued], or you find a new one that you like just as much.",
    "nobody likes me": "That must hurt. [I am sure there are people who like you, even if they do not show it.|It can feel like that on bad days.] Talk to someone you trust, and be kind to yourself.",
    "i cannot sleep": "I am sorry. [Put away the screen, make it dark and quiet, and breathe slowly.|Try warm milk, a quiet room, and slow breathing.] Shall I tell you a short story?",
    "i can't sleep": "I am sorry. [Put away the screen, make it dark and quiet, and breathe slowly.|Try warm milk, a quiet room, and slow breathing.] Shall I tell you a short story?",
    "i am moving to a new city": "How exciting! [A new city is a new beginning|It can be hard too]. Say hello to your neighbors, and take a walk to find your favorite places.",
    "i got a new job": "Congratulations! [I wish you a good start and kind colleagues.|That is great news! When do you start?]",
    "i got a puppy": "How lovely! [What is its name?|Puppies need food, sleep, play, and a lot of patience.]",
    "i won a prize": "Congratulations! [That is wonderful.|You can be proud.] What did you win?",
    "i baked a cake today": "How nice! [What kind of cake is it?|I am sure it smells wonderful.] [Will you share it with someone?|]",
    "it is my birthday": "Happy birthday! [I wish you a wonderful day with cake and good friends.|May your new year be full of joy.]",
    "today is my birthday": "Happy birthday! [I wish you a wonderful day with cake and good friends.|May your new year be full of joy.]",
    "it is raining and i am bored": "[Rainy days are good for baking, reading, and building a tent from blankets.|You could bake cookies, draw, or read.] Or shall I tell you a story?",
    "my head hurts": "I am sorry. [Drink some water, rest in a dark room, and put away the screen.|Rest a little and drink enough water.] If it gets worse, please ask a doctor.",
    "i have a cold": "Get well soon! [Drink tea, rest, and keep warm.|Hot soup, tea, and sleep will help.]",
    "i am getting married": "Congratulations! [I wish you both a happy life together.|What a happy day that will be!]",
    "we are having a baby": "Congratulations! [What wonderful news!|I wish your family all the best.]",
    "i miss my friend": "I understand. [Call or write, your friend may miss you too.|A letter or a call can make you both happy.]",
    "i have too much work": "That is a lot. [Write down all tasks, choose the most important one, and start small.|Take one thing at a time and do not forget to rest.]",
    "i am nervous about my first day": "That is normal. [Smile, say your name, and ask when you do not know something.|Everyone was new once.] You can do it!",
}
FOLLOW = (
    ("[thank you|thanks, that helps|you are kind|thanks for listening|ok, i will try|that is a good idea]", "[You are welcome|I am glad if it helps a little]. [I am here if you want to talk|Take good care of yourself]."),
    ("[i don't know why|i do not know|no reason|i don't want to talk about it|it is hard to say]", "That is all right. [You do not have to explain it|Some days are just like that]. [Do something small that feels good|Be kind to yourself today]."),
    ("[what can i do|what should i do|what helps|can you help me|any advice]", "[Do one small thing that feels good: take a walk, drink some tea, or call a friend.|Talk to someone you trust, rest a little, and take one small step.]"),
    ("[tell me something nice|cheer me up|say something nice|make me smile]", "[You are doing better than you think, and someone is glad that you are here.|After every rain the sun comes back, and soup tastes best on cold days.|A penguin gives a pebble to the one it likes. I would give you one, too.]"),
)


def feeling(w):
    """How someone feels, and a turn or two after it."""
    if w.chance(0.45):
        said = w.pick(tuple(REASONS))
        turns = [(w.casual("[|||||oh no, |hey, |you know, |well, |guess what, ]{s}[|||| today| and i don't know what to do]" if "today" not in said and "birthday" not in said else "[||hey, |guess what, ]{s}", s=said), w.say(REASONS[said]))]
        follow = (0, 2)
    else:
        names, answers = w.pick(FEELINGS)
        name = w.pick(names)
        form = w.rng.randint(0, 8)
        w.combo("feeling", name, form)
        q = ("i am {f}", "i feel {f}", "i'm {f}", "i am {f} today", "i feel {f} today", "today i feel {f}", "i am feeling {f}", "im {f} [right now|at the moment]", "i feel {f}, what [can|should] i do")[form]
        turns = [(w.casual(q, f=name), w.say(w.pick(answers)))]
        follow = (0, 1, 2, 3) if names[0] in ("sad", "lonely", "angry", "afraid", "nervous", "confused", "ashamed") else (0,)
    if w.chance(0.35):
        q, a = FOLLOW[w.pick(follow)]
        turns.append((w.casual(q), w.say(a)))
    return turns


DEGREE = ("", "", "so ", "really ", "pretty ", "quite ", "kind of ", "a bit ", "a little ", "very ", "super ", "rather ", "somehow ")
WHEN = ("", "", " today", " right now", " this morning", " this evening", " at the moment", " lately", " these days", " again", " all day", " since yesterday")
GOOD_NEWS = ("we won the game", "i got an a in math", "my {k} is coming to visit", "i finished my work", "i found a new friend", "i passed my exam", "we are going on holiday", "my {k} had a baby", "i got a new bicycle", "i learned to swim", "i got a letter from my {k}", "we moved into our new house", "my {k} got well again", "i baked my first bread", "i have the day off", "it is the weekend", "i got a gift", "our team won", "the sun is shining", "i sang on a stage", "my plants are growing", "i finally fixed my bike", "i made a new friend")
BAD_NEWS = ("everything goes wrong", "i had a fight with my {k}", "my {k} is sick", "i lost my wallet", "i missed the bus", "it was a hard day", "nobody has time for me", "my {k} moved away", "i forgot my {k}'s birthday", "i did not sleep well", "i dropped my phone", "we lost the game", "my plan did not work", "i am all alone at home", "my {k} does not talk to me", "it rains all the time", "i burned the dinner", "my bike was stolen", "i got a bad grade", "nothing is going right", "i cannot do anything right", "my flight was late", "i feel empty", "i miss home")
GOOD_WORDS = ("happy", "glad", "excited", "proud", "cheerful", "great", "wonderful", "fantastic", "thrilled", "relieved", "so good", "over the moon", "in a good mood")
BAD_WORDS = ("sad", "down", "low", "blue", "unhappy", "upset", "terrible", "awful", "bad", "miserable", "hopeless", "lonely", "disappointed", "hurt", "not good", "in a bad mood", "tired of everything", "frustrated")
KIN = ("sister", "brother", "friend", "best friend", "mother", "father", "grandmother", "grandfather", "cousin", "aunt", "dog", "cat", "son", "daughter")
GLAD = ("[How wonderful|That is great news|How nice|That makes me glad|Congratulations]! [Enjoy it|You can be proud|What a good reason to celebrate|I am happy for you]. [Would you like to tell me more?|Who will you celebrate with?|]", "[That is wonderful|How lovely]! [I am happy for you.|Tell me more about it!|What will you do to celebrate?]")
SORRY = ("[I am sorry to hear that|Oh, I am sorry|That sounds hard]. [Some days are like that, and they pass|Be kind to yourself today|It is all right to feel that way]. [Do you want to tell me more?|A walk, a warm drink, or a talk with a friend can help.|Would a little story cheer you up?]", "[I am sorry that you have such a hard day|I am sorry, that is not easy]. [What would do you good now?|Maybe a warm cup of tea and some rest help a little.|Talk to someone you trust, it often helps.]")


def mood(w):
    """Good or bad news and a feeling, in any order."""
    good = w.chance(0.45)
    news = w.fill(w.pick(GOOD_NEWS if good else BAD_NEWS), k=w.pick(KIN))
    word = w.pick(GOOD_WORDS if good else BAD_WORDS)
    w.combo("mood", news, word)
    degree = w.pick(DEGREE) if " " not in word else ""
    felt = w.pick(("i am ", "i feel ", "i'm ", "feeling ", "i am feeling ", "im ", "today i am ")) + degree + word + w.pick(WHEN)
    if felt.startswith("today") and felt.endswith(("today", "yesterday")):
        felt = felt.removeprefix("today ")
    form = w.rng.randint(0, 5)
    if form == 0:
        text = felt
    elif form == 1:
        text = w.pick(("", "", "guess what, ", "hey, ", "you know what? ", "oh ", "so, ")) + news
    elif form <= 3:
        text = news + w.pick((", ", ". ", "! ", " and ", "!! ", " so ")) + felt
    else:
        text = felt + w.pick((", ", ". ", " because ", " since ", ": ")) + news
    if not good and w.chance(0.15):
        text += w.pick((". what should i do", ". what can i do", ", any advice", ". what helps"))
    return [(w.casual("{t}", t=text), w.say(w.pick(GLAD if good else SORRY)))]


DEEDS = (
    "[went|walked] to the {p}", "cooked {d}", "baked {d}", "made {d}", "saw {a n}", "visited my {k}", "played with my {k}", "cleaned the whole house", "read a good book", "watched a film", "worked in the garden", "planted tomatoes", "rode my bicycle", "went swimming", "had a picnic", "built a tree house", "painted the kitchen",
    "took the train to the sea", "fed the ducks", "picked apples", "had breakfast in bed", "danced in the kitchen", "wrote a letter", "learned a new song", "went for a long walk", "met an old friend", "had a party", "flew a kite", "made a snowman", "drank tea with my {k}", "played a game with the kids",
)


def sharing(w):
    """Someone tells what they did or will do."""
    deed = w.fill(w.pick(DEEDS), p=w.pick(("park", "zoo", "market", "beach", "library", "forest", "lake", "museum", "playground")), d=w.pick(DISHES)[0], n=w.pick(NAMES), k=w.pick(KIN))
    w.combo("sharing", deed)
    who = w.pick(("i", "i", "we", "my family and i", "the kids and i"))
    when = w.pick(("today", "yesterday", "this morning", "last night", "on sunday", "on the weekend", ""))
    text = f"{when} {who} {deed}" if w.chance(0.4) else f"{who} {deed} {when}"
    if w.chance(0.3):
        text += w.pick((", it was fun", ", it was great", " and it was lovely", ". it was wonderful", ", what a day", ". i liked it a lot", " and i enjoyed it"))
    return [(w.casual("{t}", t=text.strip()), w.say("[How nice|That sounds lovely|That sounds like fun|What a nice thing to do|Lovely]! [What did you like best?|I hope it was fun.|Would you do it again?|Tell me more, if you like.|How was it?]"))]


TOPICS = ((sharing, 2.0), (mood, 6.0), (feeling, 5.0),)
