"""Opposites, near words, rhymes and plain meanings."""

from . import rows, words

OPPOSITES = tuple(
    tuple(pair.split("/"))
    for pair in words(
        """hot/cold, big/small, tall/short, long/short, fast/slow, up/down, in/out, on/off, open/closed, full/empty, happy/sad,
        good/bad, new/old, young/old, rich/poor, strong/weak, hard/soft, heavy/light, dark/light, day/night, early/late, first/last,
        near/far, high/low, left/right, right/wrong, true/false, wet/dry, clean/dirty, loud/quiet, noisy/quiet, thick/thin, wide/narrow,
        deep/shallow, sharp/dull, smooth/rough, sweet/sour, easy/difficult, simple/complicated, cheap/expensive, brave/afraid, kind/mean,
        polite/rude, friend/enemy, love/hate, laugh/cry, smile/frown, win/lose, find/lose, buy/sell, give/take, push/pull,
        come/go, start/stop, begin/end, arrive/leave, remember/forget, ask/answer, question/answer, above/below, before/after,
        inside/outside, always/never, everything/nothing, everyone/nobody, more/less, many/few, same/different, alive/dead, asleep/awake,
        sick/healthy, hungry/full, safe/dangerous, careful/careless, beautiful/ugly, bright/dark, warm/cool, front/back, top/bottom,
        summer/winter, morning/evening, north/south, east/west, sunrise/sunset, boy/girl, man/woman, king/queen, mother/father, brother/sister,
        yes/no, hello/goodbye, black/white, raw/cooked, fresh/stale, ripe/unripe, calm/excited, patient/impatient, lucky/unlucky,
        possible/impossible, visible/invisible, tight/loose, straight/crooked, wild/tame, busy/idle, lazy/hardworking, generous/greedy,
        honest/dishonest, proud/ashamed, together/alone, peace/war, success/failure, increase/decrease, build/destroy, throw/catch, sink/float,
        melt/freeze, whisper/shout, lead/follow, teach/learn, send/receive, add/subtract, save/spend, rise/fall, wake up/fall asleep,
        stand up/sit down, put on/take off, turn on/turn off, bitter/sweet, gentle/rough, cheerful/gloomy, modern/ancient, public/private,
        guest/host, exit/entrance, question/answer, joy/sorrow, hope/despair, nice/nasty, quick/slow, huge/tiny, shut/open, tired/rested"""
    )
)
NEAR_WORDS = tuple(
    tuple(group.split("/"))
    for group in words(
        """happy/glad/cheerful, sad/unhappy/down, big/large/huge, small/little/tiny, fast/quick/swift, smart/clever/bright, pretty/beautiful/lovely,
        tired/sleepy/weary, angry/cross/mad, scared/afraid/frightened, funny/amusing/silly, nice/kind/friendly, begin/start/open,
        end/finish/stop, talk/speak/chat, look/see/watch, jump/leap/hop, cold/chilly/cool, hot/warm/boiling, tasty/delicious/yummy,
        easy/simple/plain, hard/difficult/tough, brave/bold/fearless, quiet/silent/still, loud/noisy/booming, gift/present/treat,
        friend/pal/companion, house/home/cottage, road/street/path, stone/rock/pebble, shout/yell/call, cry/weep/sob, laugh/giggle/chuckle,
        help/aid/assist, make/build/create, strange/odd/unusual, rich/wealthy/well off, correct/right/true, wrong/mistaken/false, calm/peaceful/quiet"""
    )
)
RHYMES = tuple(
    tuple(group.split("/"))
    for group in words(
        """cat/hat/mat/bat, dog/fog/log/frog, sun/fun/run/bun, moon/spoon/soon/noon, star/car/far/jar, tree/bee/sea/free, house/mouse/blouse,
        cake/lake/make/snake, light/night/bright/kite, rain/train/plain/chain, day/play/way/say, book/cook/look/hook, ball/tall/wall/small,
        bed/red/head/bread, bear/chair/hair/pear, fish/dish/wish, goat/boat/coat/float, king/ring/sing/wing, snow/slow/grow/go,
        fox/box/socks/rocks, hen/pen/ten/men, pie/sky/fly/high, rose/nose/toes/grows, hand/sand/land/band, bell/shell/well/tell,
        blue/shoe/two/new, green/bean/queen/seen, soup/loop/group/hoop, feet/sweet/meet/eat, mother/brother/other, nest/rest/best/guest,
        heart/start/part/art, bread/bed/red/said, honey/money/funny/sunny, flower/shower/tower/hour"""
    )
)
MEANINGS = rows(
    """
polite | A polite person uses kind words, like please and thank you, and thinks of others.
brave | A brave person does the right thing even when it is scary.
generous | A generous person likes to give and to share.
patient | A patient person can wait calmly without getting upset.
honest | An honest person tells the truth.
curious | A curious person wants to find out new things.
lonely | Someone who is lonely feels sad because they are without friends.
grateful | Someone who is grateful is happy about what others gave or did.
proud | Someone who is proud feels good about something they did well.
jealous | Someone who is jealous wants what somebody else has.
shy | A shy person is a bit afraid of talking to people they do not know.
stubborn | A stubborn person does not change their mind easily.
clever | A clever person learns quickly and finds good answers.
lazy | A lazy person does not like to work or move much.
gentle | A gentle person is soft and careful with others.
cozy | A cozy place is warm, soft, and comfortable.
delicious | Delicious food tastes very good.
ancient | Something ancient is very, very old.
enormous | Something enormous is very, very big.
tiny | Something tiny is very small.
fragile | Something fragile breaks easily, so you must be careful with it.
empty | Something empty has nothing inside.
borrow | To borrow means to take something for a while and give it back later.
share | To share means to let others have some of what you have.
forgive | To forgive means to stop being angry with someone who made a mistake.
promise | A promise is when you say that you will surely do something.
apologize | To apologize means to say that you are sorry.
celebrate | To celebrate means to do something special because you are happy about a day or an event.
invite | To invite means to ask someone to come.
neighbor | A neighbor is a person who lives next to you or near you.
guest | A guest is a person who is invited to come and visit.
host | A host is the person who invites the guests and takes care of them.
friend | A friend is someone you like, trust, and enjoy being with.
family | A family is a group of people who belong together and care for each other.
recipe | A recipe tells you what you need and what to do to cook a dish.
dessert | A dessert is something sweet that you eat at the end of a meal.
breakfast | Breakfast is the first meal of the day.
lunch | Lunch is the meal in the middle of the day.
dinner | Dinner is the big meal in the evening.
snack | A snack is a little food between meals.
birthday | A birthday is the day of the year on which someone was born.
holiday | A holiday is a day when people rest or celebrate instead of working.
gift | A gift is something you give to someone to make them happy.
joke | A joke is a short funny story that makes people laugh.
riddle | A riddle is a tricky question that you solve by thinking.
poem | A poem is a short text with rhythm and often with rhymes.
dream | A dream is a story your mind makes while you sleep.
secret | A secret is something that only a few people know.
adventure | An adventure is an exciting trip or event.
kindness | Kindness means being good and helpful to others.
courage | Courage means doing something even though you are afraid.
friendship | Friendship is what grows when two people like, trust, and help each other.
luck | Luck is when something good happens by chance.
peace | Peace is when there is no war and no quarrel.
a habit | A habit is something you do often, almost without thinking.
""",
    2,
)
HINT_WORDS = words("apple, bread, candle, cat, chair, cloud, cup, dog, door, fish, flower, fox, garden, green, happy, house, kitchen, lamp, milk, moon, mouse, night, orange, potato, rain, river, salad, snow, soup, spoon, star, sugar, summer, sun, table, tiger, tree, water, winter, yellow, bird, book, friend, honey, horse, lemon, mother, queen, school, sister")
