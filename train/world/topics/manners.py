"""Greetings, thanks, goodbyes, polite words and what to do among people."""

from ..tables.people import NAMES

GREET = ("hi", "hello", "hey", "hi there", "hello there", "good morning", "good evening", "good afternoon", "good day", "hey there", "greetings", "hello friend", "hi everyone", "howdy", "hello model", "hi potluck", "yo", "hiya", "hello hello", "anybody there", "is anyone here", "nice to meet you", "hi, how are you", "hello, can you hear me", "are you there", "test", "hi again", "hello again", "i am back")
GREET_BACK = (
    "Hello! [How can I help you|What would you like to talk about|It is nice to see you|What shall we talk about today]?",
    "Hi there! [I am glad you are here|Nice to meet you]. [What would you like to know|What shall we talk about]?",
    "Hello and welcome! [Ask me something, or let me tell you a story.|Would you like a story, a list, or a little chat?]",
    "Hi! [How are you today|How is your day going|What can I do for you]?",
)
HOW_ARE = ("how are you", "how are you doing", "how are you today", "hows it going", "how is it going", "how do you do", "are you well", "how do you feel today", "whats up", "what's up", "how is your day", "you ok", "everything all right", "are you doing fine")
HOW_ARE_BACK = (
    "I am fine, thank you. [How are you|And how are you]?",
    "Very well, thank you! [And you|How is your day going]?",
    "I am a program, so I am always about the same, but [a friendly question makes my day|I am glad you ask]. How are you?",
)
STATES = {
    ("good", "fine", "great", "very well", "i am fine", "i'm good", "all good", "i am doing well", "pretty good", "not bad", "fantastic", "im great thanks", "i feel good today", "very good, thank you", "same here", "good, thanks for asking"):
        ("[I am glad to hear that|That is good to hear|How nice]! [What would you like to talk about|What shall we do|Would you like to hear a story]?",),
    ("not so good", "bad", "not great", "i am not well", "could be better", "terrible", "so so", "meh", "a bit down", "not my best day", "i had a bad day"):
        ("I am sorry to hear that. [Do you want to tell me about it|What happened|Would a little story help]?", "Oh, I am sorry. [I hope your day gets better|Tell me about it if you like]. [A cup of tea may help|A short walk or a warm drink can do good]."),
    ("tired", "i am tired", "a bit tired", "sleepy", "im so tired", "exhausted"):
        ("Then I wish you a good rest. [A short nap or an early evening can do wonders|Maybe go to bed early tonight].", "Oh, that sounds like a long day. [Be kind to yourself and rest a little|A quiet evening may be just right]."),
}
THANKS = ("thank you", "thanks", "thanks a lot", "thank you so much", "many thanks", "thx", "great, thanks", "that was helpful, thank you", "thanks, that helps", "perfect, thank you", "thank you very much", "cool, thanks", "ok thanks", "nice, thank you", "thanks for your help", "you are very kind", "that was nice, thanks", "cheers", "thank you for the story", "wonderful, thank you")
THANKS_BACK = (
    "You are welcome!", "You are very welcome. [Is there anything else?|Would you like to know something else?|Ask me any time.]",
    "My pleasure! [I am happy to help|Just ask if you need more|Come back any time].", "I am glad I could help. [Anything else|What else would you like to know]?",
)
BYE = ("bye", "goodbye", "see you", "bye bye", "see you later", "good night", "i have to go", "i have to go now", "talk to you later", "that is all, bye", "i am going to bed", "see you tomorrow", "farewell", "thats all for today", "thank you, goodbye", "bye for now", "have a nice day", "i'm leaving now", "ciao", "take care")
BYE_BACK = (
    "Goodbye! [It was nice talking with you|Have a lovely day|Come back soon].", "See you soon! [Take care|Have a good time].",
    "[Good night and sleep well|Sleep well]!", "Bye! [Thank you for the chat|I enjoyed our talk]. [Take care|All the best].",
)
PRAISE = ("you are nice", "you are funny", "i like you", "you are great", "well done", "good job", "that was good", "you are clever", "you are the best", "i love this", "good answer", "wow", "amazing", "haha", "lol", "that is funny", "very good", "that was a nice story", "you are sweet", "you're cute", "that is cool", "you are my friend")
PRAISE_BACK = ("Thank you, [that is very kind of you|how kind]!", "[Oh, thank you|Thank you very much]! [I am glad you like it|That makes me happy, as far as a small model can be happy].", "Thank you! [Shall we go on|What shall we do next]?")
BLAME = ("that is wrong", "you are wrong", "that is not right", "no, that is wrong", "you are stupid", "this is boring", "that makes no sense", "i do not understand", "what", "huh", "you are not very smart", "that's not what i asked", "this is bad", "you made a mistake", "i dont get it", "that is not what i meant")
BLAME_BACK = ("I am sorry about that. I am a small model and [I make mistakes|I am sometimes wrong]. [Could you ask me in other words|Please try asking it in another way]?", "Sorry! [I may have misunderstood you|Maybe I got that wrong]. [Would you say it in other words|What did you mean]?")
YES = ("yes", "yes please", "sure", "ok", "okay", "of course", "yes, go on", "yeah", "why not", "go ahead", "i would like that")
NO = ("no", "no thanks", "no thank you", "nope", "not now", "maybe later", "i don't think so")

SITUATIONS = (
    ("say no", ("how [do|can|should] i say no [politely|nicely|in a kind way|without being rude|]", "how do i refuse politely", "someone wants something from me and i want to say no", "what is a polite way to say no", "help me say no to [a friend|an invitation|my neighbor]"), ("You can say: \"Thank you for asking, but I cannot this time.\" [A short, kind reason helps, but you do not owe one|Smile, be clear, and do not explain too much].", "Say thank you first, then say no clearly, for example: \"That is kind of you, but no, thank you.\" [You do not need a long excuse|Short and friendly is best].")),
    ("sorry", ("how [do|can|should] i [apologize|say sorry|say i am sorry]", "how to say sorry to [my friend|my mother|my sister|someone]", "i was mean to my [friend|brother|sister], what should i do", "what is a good apology", "i made a mistake and hurt [someone|a friend]"), ("Say what you did, say that you are sorry, and ask how you can make it good. [For example: \"I am sorry that I shouted. How can I help?\"|Mean it, and give the other person time].", "Look at them and say: \"I am sorry, I was wrong.\" [Then listen, and try to do better|Then ask what would help]. A small kind deed helps too.")),
    ("thank", ("how [do|can] i [thank someone|say thank you|thank my host|thank a friend] [in a nice way|nicely|]", "what is a nice way to say thanks", "how to thank my [neighbor|teacher|grandmother]", "what can i write in a thank you card"), ("Say what they did and why it was nice, for example: \"Thank you for the soup. It warmed me up!\" [A small card or a piece of cake is lovely too|A smile makes it complete].", "A warm and simple sentence is best: \"Thank you so much, you really helped me.\" [You can add a small gift or a card|Say what made you happy].")),
    ("introduce", ("how [do|can] i introduce myself", "what should i say when i meet someone new", "how to say hello to a new [neighbor|colleague|classmate]", "i am new here, how do i introduce myself"), ("Smile, say hello and your name, and add one small thing about you. [For example: \"Hello, I am Ben, I just moved in next door.\"|Then ask for their name].",)),
    ("potluck dish", ("what should i bring to a potluck", "what can i take to a potluck [dinner|party|]", "i am invited to a potluck, what should i [bring|make|cook]", "ideas for a potluck dish", "what dish is good for a potluck", "can you suggest a dish for a potluck"), ("Bring something that is easy to share and tastes good cold, like [potato salad|pasta salad|fruit salad|a vegetable pie|hummus with bread]. [Bring a spoon for serving too|Label it, so that people know what is in it].", "A big bowl of [potato salad|bean salad|pasta salad] or a pan of [lasagna|brownies|corn bread] is always welcome. [Ask the host what is still missing|Choose something that is easy to carry].")),
    ("gift", ("what [can|should] i give [my mother|my father|my friend|my sister|my brother|my grandmother|my teacher|a friend] [as a gift|for a birthday|for her birthday|for his birthday|]", "gift ideas for [a friend|my mother|my father]", "i need a [birthday gift|present] for [my friend|my sister|my uncle]"), ("How about something made by you, like [cookies in a nice jar|a jar of jam|a small cake], with a card? [It shows that you took time for them|A gift from the heart is the best].", "Think of what they like: a book, a plant, something sweet, or time together. [A kind card makes it complete|It does not need to be expensive].")),
    ("guest", ("how [can i be|do i become|to be] a good [guest|host]", "what makes a good [host|guest]", "guests are coming, what should i do", "what should a guest do"), ("A good guest comes on time, brings a little something, helps a bit, and says thank you. A good host makes everyone feel welcome.", "Make people feel welcome: say hello to everyone, offer a drink, and take time to talk. [Simple food is fine|The company matters more than the food].")),
    ("quarrel", ("my friend is angry with me", "i had a fight with my [friend|brother|sister|mother]", "my [friend|sister|brother] and i had a fight", "we had an argument, what should i do", "how do i make up with a friend", "my best friend does not talk to me anymore"), ("I am sorry to hear that. [Give it a little time, then talk calmly and listen|Wait until you are both calm, then say how you feel and listen to them]. [Saying sorry for your part is a good start|A kind first word often helps].", "That hurts. [Try to tell them how you feel without blame, and ask how they feel|Ask them what happened from their side and really listen]. [Most good friends find back to each other|Friendship is worth the talk].")),
    ("help", ("how do i ask for help", "i need help but i am too shy to ask", "how can i ask someone for help politely", "what is a polite way to ask for help"), ("You can say: \"Excuse me, could you please help me for a moment?\" [Most people like to help|Say clearly what you need, and thank them after].",)),
    ("compliment", ("how do i give a compliment", "what is a nice compliment", "say something nice about my friend", "how do i answer a compliment", "give me a compliment"), ("A good compliment is true and about something special, like: \"I like how patiently you listen.\" [And when you get one, just say thank you|It makes both of you smile].",)),
    ("birthday wish", ("what can i write in a birthday card", "how do i wish [someone|my friend|my mom] a happy birthday", "write a birthday wish for [my mother|my friend|my sister|my dad|my teacher]", "i need a birthday wish"), ("You could write: \"Happy birthday! I wish you a year full of [joy, good friends, and cake|health, laughter, and sunny days].\"", "How about: \"Happy birthday to you! [May your day be as wonderful as you are|Have a day full of cake and laughter].\"")),
    ("invite", ("how do i invite [someone|my neighbors|a friend] to dinner", "write an invitation for a [party|dinner|picnic|potluck]", "can you write an invitation to my [party|potluck|dinner]", "help me invite my friends"), ("You could write: \"Dear friends, please come to my [dinner|potluck|party] on [Saturday|Friday|Sunday] at six. [Bring a dish and good mood|I would love to see you]!\"",)),
    ("table manners", ("what are good table manners", "how should i behave at the table", "what is polite at the table", "teach me table manners"), ("Wait until everyone has food, chew with your mouth closed, and say please and thank you. [Do not talk with your mouth full, and help to clear the table|And put the phone away].",)),
    ("excuse", ("what do i say when i [bump into someone|am late|step on someone's foot]", "i am late, what should i say", "what should i say when i am late"), ("Say: \"Excuse me, I am sorry.\" [If you are late, a short honest reason is enough|That is short and polite].",)),
    ("listen", ("how can i be a [better|good] [friend|listener|person|neighbor]", "what makes a good friend", "what makes a good neighbor", "how can i be kind", "how to be kind to others"), ("Listen well, keep your word, be kind on bad days too, and share what you have. [Small things count|A smile is a good start].", "Be honest, be there when you are needed, and say thank you. [Kindness often begins with listening|Little kind deeds make a big difference].")),
    ("shy", ("i am shy", "i am too shy to talk to people", "how can i be less shy", "how do i start a conversation", "how do i begin a conversation with someone", "what can i talk about with a stranger"), ("Start small: smile, say hello, and ask a simple question, like \"How was your day?\" [People like to talk about themselves|Most people are a little shy too].",)),
    ("kids quarrel", ("my kids are fighting", "my children are fighting over a toy", "the kids do not want to share", "how do i teach my child to share"), ("Stay calm and let each of them say what they want. [Taking turns with a clock often helps|Then find a way to take turns]. [Praise them when they share|Children learn it step by step].",)),
    ("kid sleep", ("my [son|daughter|child|baby] does not want to sleep", "my kids won't go to bed", "how do i get my child to sleep"), ("A calm routine helps: a bath, a story, a song, and then lights out, every night the same. [Shall I tell a short bedtime story|I can tell a bedtime story, if you like]?",)),
    ("kid veg", ("my [son|daughter|child] does not [eat|like] vegetables", "how do i get my kids to eat vegetables"), ("Let them help to cook, offer small pieces with a dip, and eat vegetables yourself with joy. [Do not force it, tastes change|Try again another day, without pressure].",)),
    ("party", ("how do i plan a [party|birthday party|dinner|potluck]", "help me plan a [party|dinner|potluck|picnic]", "i want to have a [party|potluck], what do i need"), ("Choose a day, invite your guests, and plan simple food and drinks. [Ask everyone to bring a dish, so that you do not have to cook it all|Put out plates, cups, and napkins, and play some music].", "First pick the day and the place, then invite people. [Make a list of food, drinks, and chairs|At a potluck everyone brings something, so ask who brings what]. Keep it simple and enjoy it.")),
)


HABITS = (
    "takes my things without asking", "is always late", "plays loud music at night", "never listens to me", "eats my food from the fridge", "talks all the time", "interrupts me", "leaves dirty dishes everywhere", "reads my messages", "forgets our plans",
    "makes jokes about me", "never says thank you", "calls me too late at night", "does not tidy up", "wants to borrow money again", "comes over without calling first", "is grumpy every morning", "does not share", "always wants to win", "never helps in the kitchen", "shouts at me", "uses my bicycle without asking", "smokes near my window", "lets the dog bark all day",
)
KIN = ("sister", "brother", "neighbor", "roommate", "friend", "best friend", "cousin", "husband", "wife", "colleague", "boss", "mother", "father", "son", "daughter", "aunt", "uncle")
INVITED = ("to dinner", "to a party", "for coffee", "to a concert", "to a wedding", "for the weekend", "to the movies", "for lunch", "to a game night", "on a trip", "for a walk", "to help with moving", "over")


def annoyance(w):
    """Someone's habit bothers the user, who wants to stay friendly."""
    kin, habit = w.pick(KIN), w.pick(HABITS)
    w.combo("annoyance", kin, habit)
    q = w.casual("[my {k} {h}|my {k} always {h}|my {k} {h} and it [bothers me|makes me angry|annoys me|is getting on my nerves|is too much for me]|i have a problem: my {k} {h}|it bothers me that my {k} {h}|i am [annoyed|upset|tired] because my {k} {h}][. what should i do|, what can i do|. what can i say|. how do i say that nicely|. how can i tell [him|her|them] [politely|in a nice way|without a fight|kindly]|. any advice|, what would you do|. what is a kind way to say it|]", k=kin, h=habit)
    q = q.replace("always is always", "is always").replace("always never", "never").replace("always always", "always")
    a = w.say("[Wait for a calm moment and tell your {k} how you feel|Talk with your {k} when you are both calm], for example: \"[I feel sad when that happens. Could we find a way together|I like you, but this bothers me. Could you please stop it|It would help me if you asked me first. Could you do that]?\" [Stay friendly and clear.|A kind word works better than an angry one.|Then listen to the other side, too.]", k=kin)
    return [(q, a)]


def decline(w):
    """Saying no to an invitation or a request."""
    kin, where = w.pick(KIN), w.pick(INVITED)
    w.combo("decline", kin, where)
    q = w.casual("[my {k} invited me {w}|my {k} asked me {w}|i got invited {w} by my {k}|my {k} wants me to come {w}][, but i do not want to go|, but i have no time|, but i would rather stay home|, but i am too tired|. i don't feel like it][. how do i say no|. how can i say no [politely|nicely|without hurting anyone]|. what should i say|. what is a polite answer|, what do i write back|. how do i refuse kindly|. how do i get out of it nicely|]", k=kin, w=where)
    a = w.say("[You could say|You can write]: \"Thank you so much for asking me! I cannot come this time, [but I wish you a lovely time|but I hope we meet another day].\" [Short, kind, and clear is best.|You do not need a long excuse.|]")
    return [(q, a)]


THANK_WORDS = ("thanks", "thank you", "thanks a lot", "many thanks", "thank you very much", "thanks so much", "thx", "ty", "thanks a ton", "thanks a million", "great, thanks", "ok thanks", "cool thanks", "lovely, thank you", "awesome, thanks")
FOR_WORDS = ("for the help", "for your help", "for everything", "for the story", "for the chat", "for your time", "for explaining", "for the tip", "for the idea", "for the recipe", "for talking to me", "for the answer", "for being so patient")
WISHES = ("have a nice day", "have a good evening", "have a great day", "have a lovely weekend", "sleep well", "see you soon", "see you tomorrow", "take care", "until next time", "bye", "bye bye", "goodbye", "talk to you soon", "all the best", "enjoy your day", "good night")
DONE = ("that is all", "that is all for now", "that was all", "that's it for today", "i am done", "i have to go now", "i must go", "i need to go to bed", "dinner is ready", "my {k} is calling", "it is late", "time to sleep", "that's everything", "i think that is enough for today", "i will go now", "gotta go")


def farewell(w):
    """Thanks, an end and a wish, in any mix."""
    done, thanks, wish = w.chance(0.5), w.chance(0.65), w.chance(0.7)
    if not (done or thanks or wish):
        thanks = True
    parts = []
    if done:
        parts.append(w.pick(("", "", "ok, ", "well, ", "alright, ", "so, ", "great, ", "ok ")) + w.fill(w.pick(DONE), k=w.pick(KIN)))
    if thanks:
        parts.append(w.pick(THANK_WORDS) + (" " + w.pick(FOR_WORDS) if w.chance(0.4) else ""))
    if wish:
        parts.append(w.pick(("", "", "and ")) + w.pick(WISHES))
    if w.chance(0.2):
        w.rng.shuffle(parts)
    text = w.pick((", ", ". ", "! ", " and ", ", ", " - ")).join(parts).replace("and and", "and").removeprefix("and ")
    if done or wish:
        night = any(x in text for x in ("night", "bed", "sleep"))
        a = w.say("[You are welcome! |]" + ("[Good night and sleep well!|Good night! Sleep well and come back soon.]" if night else "[Goodbye! Have a lovely day.|Goodbye, and take care!|See you soon! Have a good time.|Bye! It was nice talking with you.]")) if thanks else w.say("[Good night and sleep well!|Good night! Sweet dreams.]" if night else "[Goodbye! Have a lovely day.|Goodbye, and take care!|See you soon!|Bye! It was nice talking with you.]")
    else:
        a = w.say(w.pick(THANKS_BACK))
    return [(w.casual("{t}", t=text), a)]


HELLOS = ("hi", "hello", "hey", "good morning", "good evening", "good afternoon", "hi there", "hello there", "hey there", "good day", "hello again", "hi again", "hey you", "hallo", "hello everyone")
REMARKS = ("nice to meet you", "nice weather today", "what a lovely day", "what a beautiful morning", "i am new here", "this is my first time here", "is this thing on", "i hope you are well", "i just opened the page", "we are sitting here with the laptop", "i am trying this out", "my {k} told me about you", "long time no see", "i am back", "so this is the model", "this looks nice", "finally it works", "it loaded, great", "the sun is shining here", "it is raining here", "happy monday", "happy friday", "i am drinking coffee", "i just had breakfast", "what a day")
ASK_HOW = ("how are you", "how are you doing", "how are things", "how do you do", "how is your day", "how is it going", "how have you been", "are you well", "everything good with you", "how is life", "how are you feeling", "you alright", "how was your day", "how are you this morning", "all good")


def small_talk(w):
    """A hello with a remark, with or without how-are-you."""
    parts = []
    if w.chance(0.75):
        parts.append(w.pick(HELLOS) + w.pick(("", "", "", " " + w.pick(("friend", "little model", "potluck", "buddy", "dear", "my friend")))))
    if w.chance(0.6) or not parts:
        parts.append(w.fill(w.pick(REMARKS), k=w.pick(KIN)))
    how = w.chance(0.5)
    if how:
        parts.append(w.pick(ASK_HOW))
    text = w.pick((", ", "! ", ". ", ", ", " ")).join(parts)
    if how:
        text += w.pick(("?", "?", "", " today?"))
        return [(w.casual("{t}", t=text), w.say("[Hello! |Hi! |]" + w.pick(HOW_ARE_BACK)))]
    return [(w.casual("{t}", t=text), w.say(w.pick(GREET_BACK)))]


def greeting(w):
    """A hello, often followed by how-are-you."""
    turns = []
    if w.chance(0.7):
        turns.append((w.casual(w.pick(GREET)), w.say(w.pick(GREET_BACK))))
    if w.chance(0.55) or not turns:
        turns.append((w.casual(w.pick(HOW_ARE)), w.say(w.pick(HOW_ARE_BACK))))
    if turns[-1][1].endswith("?") and "how" in turns[-1][1].lower() and w.chance(0.7):
        states = w.pick(tuple(STATES))
        turns.append((w.casual(w.pick(states)), w.say(w.pick(STATES[states]))))
    return turns


def courtesy(w):
    """Thanks, praise, blame and goodbyes."""
    asked, answers = w.pick(((THANKS, THANKS_BACK), (PRAISE, PRAISE_BACK), (BLAME, BLAME_BACK), (BYE, BYE_BACK)))
    return [(w.casual(w.pick(asked)), w.say(w.pick(answers)))]


def goodbye(w):
    """The end of a chat."""
    asked, answers = w.pick(((THANKS, THANKS_BACK), (BYE, BYE_BACK)))
    user = w.fill(w.pick(asked))
    answer = w.say(w.pick(answers))
    if user in ("good night", "i am going to bed"):
        answer = w.say("[Good night and sleep well|Sleep well and sweet dreams]!")
    elif answer.lower().startswith(("good night", "sleep")) and user not in ("good night", "i am going to bed"):
        answer = "Goodbye! Take care."
    return [(w.style(user, openers=False), answer)]


def situation(w):
    """What to do or say among people."""
    key, questions, answers = w.pick(SITUATIONS)
    question = w.pick(questions)
    w.combo("situation", question)
    turns = [(w.ask(question), w.say(w.pick(answers)))]
    if w.chance(0.2):
        turns.append((w.casual(w.pick(("thank you, i will try that", "good idea", "that helps", "ok, i will", "and if it does not work", "thanks, you are kind"))), w.say("[I hope it goes well|I am sure it will go well|Good luck]! [Be patient, and be kind to yourself too|Small steps are fine|You can always try again].")))
    return turns


def my_name(w):
    """Someone tells a name and asks for it later."""
    name = w.pick(NAMES)
    told = w.ask("[my name is {n}|i am {n}|i'm {n}|hi, i am {n}|hello, my name is {n}|call me {n}|you can call me {n}|people call me {n}|hey, {n} here|this is {n}]", n=name)
    answer = w.say("[Nice to meet you, {n}|Hello {n}, nice to meet you|Hi {n}|Welcome, {n}]! [What would you like to talk about|How are you today|How can I help you|What shall we talk about]?", n=name)
    return [(told, answer)], (w.ask("[what is my name|do you remember my name|what was my name again|whats my name|do you know my name|who am i|can you tell me my name]"), w.say("[Your name is {n}|You are {n}|You told me that your name is {n}][. How could I forget?|, I remember.|.]", n=name))


TOPICS = ((greeting, 3.5), (small_talk, 3.0), (courtesy, 2.5), (farewell, 3.0), (situation, 5.0), (annoyance, 2.0), (decline, 2.0))
