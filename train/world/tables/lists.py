"""Categories and what belongs to them, for lists and odd ones out."""

from . import words
from .animals import TABLE
from .food import DISHES, FRUITS, VEGETABLES
from .places import COUNTRIES, CONTINENTS
from .things import COLORS, THINGS


def _animals(kind):
    return tuple(name + "" for name, row in TABLE.items() if row["kind"] == kind)


def _things(place):
    return tuple(row[0] for row in THINGS if place in row[3])


CATEGORIES = {
    ("fruit", "fruits"): FRUITS,
    ("vegetable", "vegetables"): VEGETABLES,
    ("animal", "animals"): tuple(TABLE)[:45],
    ("farm animal", "farm animals"): words("cow, pig, sheep, goat, horse, chicken, duck, goose, donkey, rooster"),
    ("pet", "pets"): words("dog, cat, hamster, rabbit, goldfish, parrot, guinea pig, turtle"),
    ("bird", "birds"): _animals("bird"),
    ("insect", "insects"): _animals("insect"),
    ("wild animal", "wild animals"): words("fox, wolf, bear, deer, lion, tiger, elephant, badger, owl, hare"),
    ("sea animal", "sea animals"): words("whale, dolphin, shark, octopus, crab, seal, jellyfish, turtle, salmon"),
    ("animal that can fly", "animals that can fly"): words("owl, eagle, bee, butterfly, bat, sparrow, crow, duck, ladybug, stork"),
    ("animal that can swim", "animals that can swim"): words("fish, dolphin, whale, penguin, duck, otter, frog, seal, beaver, turtle"),
    ("animal with four legs", "animals with four legs"): words("dog, cat, horse, cow, elephant, fox, lion, sheep, mouse, giraffe"),
    ("animal that lays eggs", "animals that lay eggs"): words("chicken, duck, snake, turtle, frog, fish, owl, penguin, crocodile"),
    ("animal with stripes", "animals with stripes"): words("zebra, tiger, bee, skunk, badger"),
    ("forest animal", "forest animals"): words("fox, deer, owl, squirrel, badger, bear, wolf, hedgehog, hare"),
    ("big animal", "big animals"): words("elephant, whale, giraffe, hippo, rhino, polar bear, camel"),
    ("small animal", "small animals"): words("mouse, ant, ladybug, snail, hamster, frog, bee, robin"),
    ("color", "colors"): COLORS,
    ("country", "countries"): tuple(row[0] for row in COUNTRIES if not row[0].startswith("the "))[:60],
    ("country in Europe", "countries in Europe"): tuple(r[0] for r in COUNTRIES if r[2] == "Europe" and not r[0].startswith("the "))[:30],
    ("country in Asia", "countries in Asia"): tuple(r[0] for r in COUNTRIES if r[2] == "Asia" and not r[0].startswith("the "))[:25],
    ("country in Africa", "countries in Africa"): tuple(r[0] for r in COUNTRIES if r[2] == "Africa"),
    ("country in South America", "countries in South America"): tuple(r[0] for r in COUNTRIES if r[2] == "South America"),
    ("capital city", "capital cities"): tuple(r[1] for r in COUNTRIES)[:50],
    ("continent", "continents"): CONTINENTS,
    ("day of the week", "days of the week"): words("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    ("month", "months"): words("January, February, March, April, May, June, July, August, September, October, November, December"),
    ("season", "seasons"): words("spring, summer, fall, winter"),
    ("soup", "soups"): tuple(d[0] for d in DISHES if d[3] == "soup"),
    ("dessert", "desserts"): tuple(d[0] for d in DISHES if d[3] == "dessert"),
    ("breakfast food", "breakfast foods"): words("pancakes, porridge, toast with jam, scrambled eggs, waffles, yogurt, fruit, cereal"),
    ("dish for a potluck", "dishes for a potluck"): words("potato salad, pasta salad, lasagna, fruit salad, bean chili, hummus with bread, apple pie, cookies, vegetable sticks, corn bread, a cheese plate"),
    ("salad", "salads"): words("potato salad, green salad, tomato salad, fruit salad, bean salad, pasta salad"),
    ("drink", "drinks"): words("water, milk, tea, coffee, lemonade, orange juice, apple juice, hot chocolate"),
    ("hot drink", "hot drinks"): words("tea, coffee, hot chocolate, hot milk with honey, hot lemon"),
    ("snack", "snacks"): words("popcorn, nuts, apple slices, crackers, vegetable sticks, a cheese sandwich, grapes"),
    ("pizza topping", "pizza toppings"): words("cheese, mushrooms, tomatoes, peppers, onions, olives, corn, spinach"),
    ("thing in a kitchen", "things in a kitchen"): _things("in the kitchen"),
    ("thing in a bathroom", "things in a bathroom"): words("soap, towel, toothbrush, comb, mirror, bathtub, sink"),
    ("piece of furniture", "pieces of furniture"): words("table, chair, sofa, bed, bench, shelf, wardrobe, desk"),
    ("tool", "tools"): words("hammer, saw, shovel, rake, ladder, needle, scissors, screwdriver, ruler"),
    ("piece of clothing", "pieces of clothing"): words("shirt, coat, hat, scarf, sock, glove, dress, sweater, pants"),
    ("vehicle", "vehicles"): words("car, bus, train, bicycle, truck, boat, ship, plane"),
    ("musical instrument", "musical instruments"): words("piano, guitar, flute, drum, violin, trumpet, bell"),
    ("toy", "toys"): words("ball, doll, kite, blocks, puzzle, teddy bear, toy car"),
    ("flower", "flowers"): words("rose, tulip, daisy, sunflower, lily, violet, poppy"),
    ("tree", "trees"): words("oak, pine, birch, maple, apple tree, willow, beech"),
    ("part of the body", "parts of the body"): words("head, arm, leg, hand, foot, nose, ear, eye, mouth, knee, shoulder"),
    ("feeling", "feelings"): words("joy, sadness, anger, fear, love, pride, surprise, hope"),
    ("family member", "family members"): words("mother, father, sister, brother, grandmother, grandfather, aunt, uncle, cousin"),
    ("job", "jobs"): words("baker, farmer, teacher, doctor, gardener, pilot, carpenter, nurse, cook, firefighter"),
    ("shape", "shapes"): words("circle, square, triangle, rectangle, oval, star, heart"),
    ("planet", "planets"): words("Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus, Neptune"),
    ("sport", "sports"): words("football, swimming, running, tennis, basketball, cycling, gymnastics, hockey"),
    ("game for a rainy day", "games for a rainy day"): words("hide and seek, a puzzle, a card game, drawing, building a blanket tent, reading a story, a memory game"),
    ("language", "languages"): words("English, Spanish, French, German, Italian, Chinese, Arabic, Japanese, Portuguese"),
    ("polite word", "polite words"): words("please, thank you, sorry, excuse me, you are welcome, good morning"),
    ("yellow thing", "yellow things"): words("a banana, a lemon, the sun, corn, butter, a sunflower"),
    ("red thing", "red things"): words("a tomato, a strawberry, a cherry, a fire truck, a ladybug, a rose"),
    ("green thing", "green things"): words("grass, a frog, a cucumber, a leaf, broccoli, a pea"),
    ("blue thing", "blue things"): words("the sky, the sea, blueberries, a blue whale, jeans"),
    ("white thing", "white things"): words("snow, milk, salt, a swan, paper, rice"),
    ("round thing", "round things"): words("a ball, a coin, a plate, an orange, the moon, a wheel, a ring"),
    ("cold thing", "cold things"): words("ice, snow, ice cream, a fridge, winter wind"),
    ("hot thing", "hot things"): words("fire, the sun, soup, tea, an oven, a stove"),
    ("sweet food", "sweet foods"): words("honey, chocolate, cake, jam, ripe bananas, cookies"),
    ("sour food", "sour foods"): words("lemons, vinegar, unripe apples, pickles, rhubarb"),
    ("salty food", "salty foods"): words("pretzels, chips, salted nuts, olives, soy sauce"),
    ("thing made of wood", "things made of wood"): words("a table, a chair, a pencil, a door, a fence, a ladder"),
    ("thing made of glass", "things made of glass"): words("a window, a bottle, a jar, a mirror, a drinking glass"),
    ("number below ten", "numbers below ten"): words("1, 2, 3, 4, 5, 6, 7, 8, 9"),
    ("even number", "even numbers"): words("2, 4, 6, 8, 10, 12, 14, 16, 18, 20"),
    ("odd number", "odd numbers"): words("1, 3, 5, 7, 9, 11, 13, 15, 17, 19"),
    ("weather word", "weather words"): words("sun, rain, snow, wind, fog, storm, hail"),
    ("good thing to say to a friend", "good things to say to a friend"): words("I am glad you are here, thank you for your help, you did that well, I like being with you"),
    ("thing to take on a picnic", "things to take on a picnic"): words("a blanket, sandwiches, apples, lemonade, plates, napkins, cookies"),
    ("thing you need for baking", "things you need for baking"): words("flour, eggs, sugar, butter, a bowl, a whisk, an oven"),
    ("thing you can do outside", "things you can do outside"): words("go for a walk, play ball, ride a bicycle, fly a kite, have a picnic, plant flowers"),
    ("thing to do when bored", "things to do when bored"): words("draw a picture, read a book, bake cookies, call a friend, go for a walk, tidy a drawer"),
}
