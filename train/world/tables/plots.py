"""What can happen in a story: heroes, helpers, themes, and plots whose beats are templates.

Slots: `{h}` the hero's kind, `{n}` the hero's name, `{k}` the helper's kind, `{m}` the helper's name, `{t}` the theme's noun,
`{it}` the theme with its article, `{p}` the place, `{he} {him} {his}` the hero, `{she} {her}` the helper.
"""

from . import words
from .animals import NAMES as ANIMALS
from .things import THINGS, UNCOUNTED

SHE = words("Mia, Luna, Rosa, Ella, Nina, Ida, Clara, Lily, Bella, Tilda, Wilma, Emma, Hazel, Olive, Daisy, Molly, Anna, Zoe, Ruby, Greta, Frida, Maya, Lotte, Poppy, Stella, Nora")
HE = words("Finn, Milo, Otto, Ben, Leo, Max, Hugo, Tom, Oscar, Sam, Bruno, Felix, Rudi, Paul, Anton, Theo, Jack, Emil, Karl, Toby, Nico, Pip, Gus, Albert, Henry, Jonas")
PEOPLE = {
    "girl": "she", "boy": "he", "baker": "", "farmer": "", "king": "he", "queen": "she", "princess": "she", "prince": "he", "grandmother": "she", "grandfather": "he", "sailor": "",
    "gardener": "", "teacher": "", "cook": "", "fisherman": "he", "carpenter": "", "child": "", "giant": "", "dragon": "", "fairy": "she", "wizard": "he", "robot": "", "snowman": "he", "ghost": "",
    "shepherd": "", "painter": "", "musician": "", "pirate": "", "knight": "", "witch": "she", "tailor": "", "miller": "", "librarian": "", "astronaut": "", "mermaid": "she", "postman": "he", "doctor": "", "old man": "he", "old woman": "she",
    "kitten": "", "puppy": "", "duckling": "", "lamb": "", "bear cub": "", "dinosaur": "", "unicorn": "",
    "elf": "", "troll": "", "monster": "", "clown": "", "detective": "", "captain": "", "driver": "", "nurse": "she", "student": "", "singer": "", "dancer": "", "inventor": "", "hunter": "", "beekeeper": "", "clockmaker": "", "blacksmith": "", "juggler": "", "nightingale": "", "raccoon": "", "koala": "", "llama": "", "moose": "", "peacock": "", "hummingbird": "", "raven": "", "woodpecker": "", "flamingo": "", "pelican": "", "chipmunk": "", "guinea pig": "", "pony": "", "firefly": "", "cricket": "", "caterpillar": "", "dragonfly": "", "little ghost": "", "sea lion": "", "starfish": "", "seahorse": "", "walrus": "", "gorilla": "", "leopard": "", "cheetah": "", "skunk": "", "weasel": "", "rat": "", "teddy bear": "", "doll": "she", "tin soldier": "he", "scarecrow": "", "star": "", "cloud": "", "little tree": "", "teapot": "", "toy car": "",
}
TRAITS = words("little, small, young, curious, clever, shy, friendly, quiet, brave, cheerful, careful, kind, lively, dreamy, gentle, funny, patient, busy, hungry, lonely, old, proud")
PLACES = (
    "at the edge of a quiet forest", "in a small village by the river", "near a blue lake", "on a green hill", "in a cozy house at the end of the road", "under an old oak tree", "in a warm valley", "by the sea",
    "in a garden full of flowers", "behind a red barn", "in a town with crooked roofs", "close to the mountains", "in a wide meadow", "next to an old mill", "on a small island", "at the end of a long lane",
)
WATER_PLACES = ("in the deep blue sea", "in a clear blue bay", "near a little island in the sea")
SEA_HEROES = frozenset("whale dolphin shark octopus jellyfish fish salmon goldfish mermaid starfish seahorse".split())

THEME_FOOD = words("cake, soup, bread, honey, apple, pie, cookie, pancake, carrot, potato, pumpkin, cheese, strawberry, nut, berry, chocolate, pear, pizza, sandwich, salad")
FOOD_MASS = frozenset("soup bread honey cheese chocolate salad pizza gingerbread jam popcorn lemonade pudding candy".split()) | {"pumpkin soup", "tomato soup", "ice cream", "noodle soup", "hot chocolate"}
THEME_EXTRA = words(
    """treasure, egg, feather, stone, pebble, shell, balloon, crown, sword, boat, tower, flag, mask, puppet, trumpet, violin, whistle, sled, snowball, marble, puzzle, diary, necklace, bracelet, diamond, pearl, medal, trophy, ribbon, cape,
    magic wand, magic hat, red balloon, golden key, silver spoon, wooden horse, paper boat, old map, blue bottle, tiny bell, little drum, lost letter, broken clock, strange egg, shiny stone, secret door, small lamp, glass ball, flower pot, bird house,
    walking stick, music box, toy train, fishing rod, watering can, pocket watch, rain coat, winter hat, rocking chair, picture frame, spinning top, wheelbarrow, telescope, compass, hourglass, anchor, rowboat, cart, sack, barrel,
    crayon, notebook, storybook, postcard, painting, statue, teapot, cookbook, apron, birthday candle, rope ladder, tree house, snow globe, kettle drum, bird feather, acorn, pine cone, sunflower, rose, mushroom, bone, carpet, cushion, slipper, raincoat"""
)
MORE_THINGS = words(
    """lantern, torch, candlestick, matchbox, pipe, pocketknife, hatchet, axe, spade, pitchfork, hoe, wrench, screw, bolt, hinge, latch, doorbell, doorknob, curtain, drawer, shelf, wardrobe, chest, trunk, suitcase, purse, pouch, envelope, parcel, package, newspaper,
    calendar, globe, atlas, chalk, blackboard, eraser, paintbrush, easel, canvas, frame, poster, sticker, magnet, battery, light bulb, flashlight, fan, heater, stool, armchair, hammock, cradle, crib, quilt, mattress, rug, vase, bouquet, daisy, tulip, branch, twig, log, stump,
    nutshell, coconut, seashell, starfish, net, hook, paddle, oar, raft, canoe, sail, sailboat, submarine, rocket, spaceship, helicopter, airplane, tractor, wagon, carriage, scooter, skateboard, roller skate, ski, skate, snowshoe, helmet, mitten, jacket, sweater, dress, skirt, vest, belt, bow tie, tie,
    glove, sandal, crown jewel, locket, brooch, earring, watch chain, goblet, jug, pitcher, saucer, teaspoon, toaster, blender, oven mitt, rolling pin, cookie jar, lunch box, thermos, water bottle, bottle cap, cork, straw hat, top hat, mop, dustpan, brush, hairbrush, toothpick, bandage, pill box, stethoscope, crutch, cane,
    whip, saddle, horseshoe, bridle, feeder, birdcage, aquarium, leash, collar, kennel, beehive, spider web, cocoon, footprint, fossil, crystal, gem, ruby, emerald, nugget, penny, piggy bank, cash box, ticket, badge, trophy cup, banner, kite string, yo-yo, top, dice, chess set, card game, board game, jigsaw, rattle, rocking horse,
    dollhouse, teddy, robot toy, water gun, sandcastle, snow angel, swing set, slide, seesaw, trampoline, tightrope, tent pole, sleeping bag, campfire, firewood, bonfire, chimney, weathervane, windmill, water wheel, well, fountain, statue, gate, signpost, milestone, mailbox, lamp post, traffic light, manhole, sewing kit, thimble, button box,
    patch, zipper, scarecrow, bucket list, wish list, spell book, magic carpet, crystal ball, cauldron, broomstick, potion, amulet, talisman, shield, spear, drawbridge, dungeon key, throne, scepter, scroll, quill, inkwell, typewriter, printer, tablet, laptop, phone, alarm clock, cuckoo clock, sundial, metronome, harp, cello, banjo,
    harmonica, accordion, tambourine, xylophone, gong, megaphone, microphone, record player, jukebox, film, puppet show, stage, costume, wig, clown nose, confetti, firework, party hat, present, gift box, birthday card, love letter, photo, photo album, souvenir, memory box, time capsule"""
)
MODIFIERS = words("golden, silver, red, blue, green, yellow, purple, pink, white, black, tiny, giant, old, new, broken, magic, lost, wooden, paper, glass, rusty, shiny, secret, strange, little, big, flying, talking, forgotten, striped, dusty, round, soft, heavy, toy, singing, invisible, enchanted, crooked, torn, stolen, precious, rainbow, moon, sun, star, winter, garden, kitchen, pirate, fairy")
FOOD_MODIFIERS = words("birthday, wedding, giant, warm, cold, magic, golden, strawberry, lemon, cherry, blueberry, cheese, potato, tomato, onion, mushroom, honey, ginger, vanilla, banana, coconut, burnt, sweet, salty, spicy, tiny, huge, holiday, winter, summer, party, family, secret, fresh, homemade, pumpkin, nut, carrot, cream, apple")
MORE_HEROES = words("badger king, gnome, goblin, mole, ninja, cowboy, sheriff, firefighter, policeman, builder, engineer, scientist, magician, acrobat, chef, waiter, barber, goatherd, goose girl, stable boy, ferryman, lighthouse keeper, mountain climber, explorer, diver, pilot, bus driver, train driver, mechanic, photographer, poet, writer, twin, orphan, snow leopard, arctic fox, polar fox, ferret, otter pup, lynx, bison, yak, reindeer, antelope, gazelle, meerkat, sloth, armadillo, porcupine, platypus, wombat, emu, kiwi bird, toucan, vulture, falcon, hawk, swallow, magpie, blackbird, goldfinch, cuckoo, kingfisher, heron, newt, salamander, chameleon, gecko, cobra, eel, trout, squid, lobster, shrimp, clam, moth, wasp, beetle, cockroach, flea, tick, centipede, slug, baby elephant, lion cub, tiger cub, piglet, calf, foal, chick, gosling, tadpole, fawn, wolf pup, fox cub, old wolf, wise owl, grumpy cat, stray dog, field mouse, church mouse, city mouse, snow owl, toy robot, paper doll, wooden puppet, clay pot, rag doll")
PEOPLE |= {name: "" for name in MORE_HEROES if name not in PEOPLE}
HEROES = ANIMALS + tuple(PEOPLE)
EXTRA_FOOD = words("chocolate cake, apple pie, cherry pie, pumpkin soup, honey cake, carrot cake, gingerbread, waffle, muffin, jam, popcorn, lemonade, plum, orange, banana, cherry, tomato soup, ice cream, pudding, noodle soup, sausage, melon, peach, turnip, onion, bean, corn, cabbage, egg, candy, lollipop, donut, omelet, hot chocolate")
THEME_WEATHER = {"rain": "the rain", "snow": "the snow", "storm": "the storm", "wind": "the wind", "fog": "the fog", "thunder": "the thunder", "winter": "the winter", "cold": "the cold", "a rainy day": "the rain", "a big storm": "the storm", "heavy rain": "the rain", "deep snow": "the snow", "a cold night": "the cold", "hail": "the hail", "a thunderstorm": "the thunderstorm", "ice": "the ice", "frost": "the frost", "a windy day": "the wind", "the heat": "the heat"}
THEME_SKY = {"moon": "the moon", "star": "a star", "sun": "the sun", "rainbow": "a rainbow", "night": "the night", "cloud": "a cloud", "dark": "the dark"}
THEME_PLACE = {"forest": "the forest", "sea": "the sea", "mountain": "the mountain", "river": "the river", "garden": "the garden", "market": "the market", "island": "an island", "castle": "a castle", "school": "the school", "library": "the library", "desert": "the desert", "farm": "the farm", "city": "the city", "bridge": "a bridge", "cave": "a cave", "kitchen": "the kitchen", "train": "a train", "village": "the village"}
THEME_IDEA = {"friendship": "friendship", "sharing": "sharing", "courage": "courage", "honesty": "honesty", "patience": "patience", "a birthday": "a birthday", "a potluck": "a potluck", "kindness": "kindness", "being new": "being new", "music": "music", "a party": "a party", "helping": "helping others", "a secret": "a secret", "sleep": "sleep", "a dream": "a dream", "family": "family"}
THEME_THINGS = tuple(row[0] for row in THINGS if row[0] not in UNCOUNTED and row[0] not in ("wall", "roof", "tree", "house", "bridge", "train", "leaf", "seed", "oven", "stove", "ship", "plane"))

THING_PLOTS = (
    (
        "[One morning|One day|One windy day], {n} lost {his} [favorite|beloved|only] {t}.",
        "{^he} looked [under the bed, behind the door, and in the garden|in every corner and behind every bush|everywhere, high and low], but the {t} was [gone|nowhere to be seen|not there].",
        "{^he} was so sad that [{he} could not eat|{he} sat down and sighed|a tear rolled down {his} face].",
        "[Just then|After a while|In the afternoon], {a_k} named {m} [came by|came along the path|looked over the fence] and asked, \"[Why are you so sad|What is the matter|What happened], {n}?\"",
        "\"I have lost my {t},\" said {n}. \"[I have looked everywhere|I cannot find it anywhere].\"",
        "\"[Let us look together|Two can look better than one|I will help you],\" said {m}.",
        "[They went back the whole way, step by step|They looked slowly and carefully, one place after the other|{m} looked where {n} had not looked yet].",
        "[And there it was: the {t} lay in the tall grass|At last they found the {t} under a pile of leaves|Behind an old stone, something peeked out: it was the {t}]!",
        "{n} [hugged|thanked] {m} and [laughed with joy|danced around the {t}].",
        "From that day on, {n} [took good care of the {t}|always kept the {t} in a safe place], and {n} and {m} were [good friends|the best of friends].",
        "wish:to find the lost {t}", "end:they found the {t} and became friends",
    ),
    (
        "[One day|One sunny morning|On the way home], {n} found {it} [on the road|in the grass|by the river].",
        "\"[What a lovely {t}|How beautiful it is|I have always wanted {it}]!\" said {n}.",
        "{^he} wanted to keep it, but [then {he} thought of the one who had lost it|a small voice inside said that it belonged to someone].",
        "So {n} [went from door to door and asked|walked through the whole place and asked everybody], \"Is this your {t}?\"",
        "[Many shook their heads|The first three said no|Nobody knew it].",
        "At last {he} met {a_k} named {m}, who was [looking sadly at the ground|crying softly|searching the path].",
        "\"My {t}!\" cried {m}. \"I thought I would never see it again!\"",
        "{n} gave it back, and {m} was so glad that {she} [invited {n} to tea and cake|gave {n} a big hug|shared {her} lunch with {n}].",
        "\"[You are honest and kind|Thank you for being so honest],\" said {m}.",
        "{n} went home without the {t}, but with [a warm heart and a new friend|a new friend].",
        "wish:to give the {t} back to its owner", "end:{n} gave the {t} back and won a new friend",
    ),
    (
        "[More than anything|For a long time], {n} wished for {it}.",
        "[Every night {he} dreamed of it|{^he} spoke of nothing else], but {he} had no money to buy one.",
        "\"Then I will make one myself,\" {he} said, and {he} [tried all day long|began at once].",
        "But [it fell apart|nothing would fit together|it did not look like {it} at all].",
        "[Along came|By chance came] {a_k} named {m}, who was very good with [tools|{her} hands].",
        "\"[Show me|Let me see],\" said {m}. \"[You did well, only one part is missing|If we work together, it will be fine].\"",
        "They [worked side by side until the evening|measured, cut, and laughed all afternoon].",
        "[When the sun went down|In the end], a fine {t} stood before them.",
        "\"It belongs to both of us,\" said {n}, and {m} smiled.",
        "[And every time they used it, they remembered that day|It was not perfect, but it was the best {t} in the world to them].",
        "wish:to have {it}", "end:they made {it} together and shared it",
    ),
    (
        "{n} had {it} that [everybody admired|was the pride of the whole family], and {he} never let anyone touch it.",
        "\"It is mine,\" {he} always said, [and put it away|and held it tight].",
        "[One day|Then one morning], the {t} [broke|fell down and broke], and {n} did not know how to mend it.",
        "{^he} [sat in front of the house and cried|was too ashamed to ask for help].",
        "{^a_k} named {m} [saw it and came closer|stopped and looked]. \"[I can help you|I know how to mend it],\" {she} said.",
        "\"But I never let you touch it,\" said {n} quietly.",
        "\"[That does not matter now|Never mind],\" said {m}, and {she} [began to work|took out a little bag of tools].",
        "[Soon|Before the evening came], the {t} was as good as new.",
        "{n} was so thankful that {he} said, \"From now on, [we will use it together|everyone may use it].\"",
        "And {he} found out that {it} is [much more fun when it is shared|twice as good with a friend].",
        "wish:to keep the {t} for {him}self", "end:{m} mended the {t} and {n} learned to share",
    ),
)
FOOD_PLOTS = (
    (
        "[One day|One cold day|One fine morning], {n} was very hungry and dreamed of {food}.",
        "But [the cupboard was empty|there was nothing in the house but an old spoon|{he} had only a pinch of salt].",
        "{n} went outside and met {a_k} named {m}. \"[I am so hungry|I would love to have {food}],\" said {n}.",
        "\"[So am I|My cupboard is nearly empty, too],\" said {m}. \"[But I have something that could help|But I have one thing left].\"",
        "\"[Then let us put together what we have|If each of us brings something, it may be enough],\" said {n}.",
        "[They asked the neighbors, and one brought this and one brought that|They knocked on every door, and everyone gave a little].",
        "[Soon a wonderful smell filled the air|They stirred and tasted and laughed].",
        "In the end there was [so much {t} that everyone could eat|enough {t} for everybody].",
        "\"[Alone I had nothing, together we have a feast|It tastes best when it is shared],\" said {n}.",
        "And they [ate until the stars came out|sat together until late in the evening].",
        "wish:to eat {food}", "end:everyone brought a little and they shared {food}",
    ),
    (
        "{n} wanted to make the best {t} [in the whole land|anyone had ever tasted].",
        "[{^he} worked all morning|Early in the day {he} began], but [it burned|it tasted far too salty|it came out much too hard].",
        "{^he} tried again, and [again it went wrong|the second time was even worse].",
        "\"I will never learn it,\" sighed {n}.",
        "{^a_k} named {m} [had smelled it from far away|put {her} nose through the window]. \"[May I tell you a secret|Do you want to know my secret]?\" {she} asked. \"[You are in too much of a hurry|You must take your time].\"",
        "So they [did it slowly, step by step|began once more, slowly and carefully], and {m} [told stories while they waited|sang a little song].",
        "[This time it was just right|At last it came out perfect].",
        "They [sat down at the table and shared it|cut it in two and gave each other the bigger half].",
        "\"[That is the best {t} of my life|I have never had better {t}],\" said {m}.",
        "{n} smiled, for {he} had learned that [good things need time|patience is the best spice].",
        "wish:to make the best {t}", "end:with patience it came out just right",
    ),
    (
        "{n} had [found|been given] {food}, and it was [the last there was|more than {he} could eat alone].",
        "{^he} wanted to hide it, so that nobody could take it.",
        "[On the way|Behind the hill], {he} met {a_k} named {m}, who [looked thin and tired|had not eaten all day].",
        "\"[What do you have there|What smells so good]?\" asked {m}.",
        "{n} thought for a moment. [{^he} was hungry, too|It was hard to decide].",
        "Then {he} [broke it in two|divided it] and said, \"[Here, half of it is yours|Come, let us eat together].\"",
        "They sat down and ate, and [it was enough for both|somehow both became full].",
        "[The next week|Some days later], {n} had nothing, and there came {m} with a full basket.",
        "\"[You shared with me, now I share with you|Now it is my turn],\" said {m}.",
        "[And so neither of them was hungry again|From then on they always shared what they had].",
        "wish:to keep {food}", "end:{n} shared, and later {m} shared with {him}",
    ),
)
WEATHER_PLOTS = (
    (
        "[One day|One afternoon], {n} was far from home when {it} came.",
        "[The sky turned gray|It got dark and cold], and {n} looked for a dry and warm place.",
        "{^he} [ran to a tree, but it gave no shelter|knocked at a door, but nobody was there].",
        "\"[If only I were at home|Oh dear, what shall I do],\" said {n} and shivered.",
        "[Then {he} heard a voice|From a little door came a voice]: \"[Come in, there is room for two|Quick, come inside]!\"",
        "It was {a_k} named {m}, who [lived there|had made a small fire].",
        "{m} gave {n} [a warm blanket and some tea|a bowl of hot soup], and they listened to {it} together.",
        "[It did not sound so bad anymore|Now it even sounded nice].",
        "When {it} was over, [the sun came out and everything shone|the world looked clean and new].",
        "\"[Come again, even on a sunny day|You are always welcome],\" said {m}, and {n} did.",
        "wish:to find shelter from {it}", "end:{m} gave {him} a warm place and they became friends",
    ),
    (
        "{n} did not like {it} at all. [It spoiled all the fun, {he} thought|{^he} always stayed inside and looked sadly out of the window].",
        "[One day|That morning], {it} was there again, and {n} [sighed|put {his} head on the table].",
        "Then {he} saw {a_k} named {m} outside, [laughing and jumping|singing and dancing].",
        "\"[How can you be so happy out there|Are you not cold]?\" called {n}.",
        "\"[Come out and see|You only have to know what to do with it]!\" said {m}.",
        "{n} [put on a coat and went out, first one step, then two|carefully went outside].",
        "They [jumped and ran and made up a game|built something wonderful and laughed all day].",
        "[Soon {n} forgot that {he} did not like {it}|{n} laughed so much that {his} belly hurt].",
        "In the evening they [warmed themselves with hot chocolate|drank tea by the stove].",
        "\"[I hope it comes back tomorrow|What a fine day],\" said {n}, and {m} laughed.",
        "wish:that {it} would go away", "end:{n} learned to enjoy {it} with {m}",
    ),
)
SKY_PLOTS = (
    (
        "[Every evening|Night after night], {n} looked up at the sky and thought of {it}.",
        "\"[How I would like to be closer|If only I could touch it],\" {he} said.",
        "{^he} [climbed on a chair, then on the roof|jumped as high as {he} could], but {it} was still far away.",
        "{^he} [climbed the highest hill|walked and walked], but it came no nearer.",
        "On the hill sat {a_k} named {m}. \"[What are you looking for|Where are you going so late]?\" {she} asked.",
        "\"I want to reach {it},\" said {n}.",
        "\"[Some things are beautiful because they are far away|You do not need to hold it to love it],\" said {m}. \"[Sit down with me|Come and look].\"",
        "So they sat side by side and [were quiet for a long time|told each other stories].",
        "[It seemed to {n} that the sky smiled|And {n} was no longer sad].",
        "From then on they [met on the hill every week|looked at the sky together], and that was even better.",
        "wish:to reach {it}", "end:{n} and {m} watched the sky together",
    ),
    (
        "{n} was afraid [when evening came|when it got dark]. [Everything looked strange then|{^he} saw shadows in every corner].",
        "[One night|That evening], {he} could not sleep and went to the window.",
        "There was {it}, and it was [so quiet and great|bigger than ever].",
        "\"[Are you awake, too|Can you not sleep either]?\" asked a small voice. It was {a_k} named {m}.",
        "\"I am a little afraid,\" said {n}.",
        "\"[I was, too|Me too, sometimes],\" said {m}. \"[Then I learned the names of all the sounds|Then somebody held my hand].\"",
        "\"[That is the wind, that is the old tree, and that is a mouse|Listen, that is only the wind in the leaves],\" {she} said.",
        "{n} listened, and [one sound after the other became a friend|the fear became smaller and smaller].",
        "[Soon {he} yawned|At last {his} eyes closed].",
        "\"Good night, {n},\" whispered {m}, and {n} [slept until morning|was not afraid anymore].",
        "wish:not to be afraid", "end:{m} helped {him}, and {n} slept well",
    ),
)
PLACE_PLOTS = (
    (
        "{n} had never been to {it}, but {he} had heard [wonderful|many] stories about it.",
        "[One morning|One day] {he} packed [some bread and an apple|a small bag] and set out.",
        "[The way was long|It was farther than {he} had thought], and soon {he} did not know [whether to go left or right|where {he} was].",
        "\"I am lost,\" said {n}, and {his} [heart beat fast|knees felt weak].",
        "Then {a_k} named {m} came along. \"[Are you lost|Where are you going]?\" {she} asked [kindly|with a smile].",
        "\"I want to see {it},\" said {n}.",
        "\"[I know the way|I am going there, too],\" said {m}. \"[Come with me|Let us walk together].\"",
        "They walked and talked, [shared the bread|sang a song], and [the way seemed short|before long they were there].",
        "\"[It is even more beautiful than in the stories|So this is it],\" said {n} [and was very happy|with shining eyes].",
        "[In the evening they went home together|They stayed until sunset and then went home], and {n} had a new friend and a story of {his} own.",
        "wish:to see {it}", "end:{m} showed {him} the way and they became friends",
    ),
    (
        "[Something was wrong|One day something strange happened] at {it_def}: [everybody was quiet and sad|nobody sang anymore].",
        "{n} wanted to know why and [asked everyone {he} met|went to look].",
        "\"[We have all been so busy that we forgot each other|Nobody visits anybody anymore],\" said {a_k} named {m}.",
        "{n} thought for a long time. [Then {he} had an idea|At last {he} smiled].",
        "\"We will make a feast,\" {he} said. \"[Everyone brings one thing|Each of us brings what we have].\"",
        "{m} [ran from door to door|helped to tell everyone].",
        "In the evening they came: [one with bread, one with soup, one with a drum|some with food, some with songs, some just with a smile].",
        "[They ate, sang, and danced|They talked and laughed] until late in the night.",
        "\"[Why did we not do this before|Let us do this every week],\" said {m}.",
        "And from then on, there was [laughter|music] at {it_def} again.",
        "wish:to make everyone happy again", "end:they all had a feast together",
    ),
)
IDEA_PLOTS = {
    "sharing": FOOD_PLOTS[2:], "patience": FOOD_PLOTS[1:2], "honesty": THING_PLOTS[1:2], "a potluck": FOOD_PLOTS[:1], "helping": THING_PLOTS[:1], "courage": SKY_PLOTS[1:], "sleep": SKY_PLOTS[1:],
}
IDEA_GENERAL = (
    (
        "{n} [was new in the place and knew nobody|had no friends yet], and [the days were long|{he} often sat alone].",
        "[One day|On a bright morning], {he} saw {a_k} named {m} [who carried a heavy basket|who tried to push a cart up the hill].",
        "{n} [was shy|did not dare to speak at first], but {he} [took a deep breath|gathered all {his} courage] and asked, \"[May I help you|Can I give you a hand]?\"",
        "\"[Oh yes, please|That would be kind],\" said {m}, [puffing|with a tired smile].",
        "Together they [pushed and pulled|lifted and carried], and soon the work was done.",
        "\"[You are strong and kind|Without you I would still be there],\" said {m}. \"[Come, I will show you my friends|Would you like some lemonade]?\"",
        "[They sat under a tree and talked|{m} took {n} along], and {n} [laughed for the first time in days|told {her} where {he} came from].",
        "[When the sun went down|In the evening], {n} was not alone anymore.",
        "\"[It began with a small question|All it took was one kind word],\" {he} thought.",
        "And that is how {n} and {m} became friends.",
        "wish:to find a friend", "end:{n} helped {m} and they became friends",
    ),
    (
        "It was a special day: {m}, {a_k}, had [invited everyone|planned something wonderful], and {n} was invited, too.",
        "But {n} had no gift. [{^he} looked in every drawer|{^he} had no money], and found nothing good enough.",
        "\"[I cannot go without a gift|What shall I do],\" {he} said sadly.",
        "{^he} [went for a walk to think|sat under a tree], and there {he} heard [a bird sing|the wind sing in the leaves].",
        "\"A song!\" cried {n}. \"[I can make a song|That is it]!\"",
        "{^he} practiced [all afternoon|until {his} voice was clear].",
        "[When the evening came|At the feast], everyone gave {m} their gifts, and at last {n} sang.",
        "[It became very quiet|Everyone stopped talking], and {m} had tears of joy in {her} eyes.",
        "\"[That is the loveliest gift of all|Nobody ever made a song for me],\" {she} said.",
        "[They all sang it together until late|And they danced until the moon went down].",
        "wish:to bring a good gift", "end:{n} sang a song and it was the best gift",
    ),
    (
        "{n} had [a big dream|a plan]: {he} wanted to [learn to dance|swim across the lake|climb the highest hill|learn to read].",
        "Everyone said, \"[That is too hard for you|You are much too small for that].\"",
        "{^he} tried it, and [fell|it went wrong]. {^he} tried again, and [fell again|it went wrong again].",
        "\"[Maybe they are right|I give up],\" said {n} and [hung {his} head|sat down].",
        "Then {a_k} named {m} sat down beside {him}. \"[I have watched you|I saw you try],\" {she} said. \"[You are already better than yesterday|Each time you got a little further].\"",
        "\"Really?\" asked {n}.",
        "\"[Try it once more, and I will stay with you|Really. Let us practice together],\" said {m}.",
        "Day by day they practiced, [in sun and in rain|a little every morning].",
        "And one fine day, {n} did it! [Everyone cheered|{m} cheered loudest of all].",
        "\"[You never know until you try again|A friend makes hard things easier],\" said {n}.",
        "wish:to make a dream come true", "end:with {m}'s help {n} did it",
    ),
)
