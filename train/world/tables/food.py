"""Ingredients, dishes, how they are made, and what goes where."""

from . import rows, words

DISHES = rows(
    """
potato salad | potatoes, onions, and a little mayonnaise | Boil the potatoes, let them cool, cut them up, and stir in the rest. | cold side dish
mashed potatoes | potatoes, milk, and butter | Boil the potatoes until they are soft, then mash them with warm milk and butter. | side dish
baked potatoes | potatoes, salt, and a little oil | Rub the potatoes with oil and salt and bake them for about an hour. | main dish
potato soup | potatoes, carrots, onions, and water | Cut everything up, boil it until it is soft, and mash it a little. | soup
tomato soup | tomatoes, onions, and a little cream | Cook the tomatoes and onions until soft, then blend them and add the cream. | soup
vegetable soup | carrots, potatoes, beans, and onions | Cut the vegetables, cover them with water, and let them simmer for half an hour. | soup
pumpkin soup | pumpkin, onions, and cream | Cook the pumpkin until it is soft, blend it, and stir in a little cream. | soup
lentil soup | lentils, carrots, onions, and water | Let everything simmer together until the lentils are soft. | soup
chicken soup | chicken, carrots, noodles, and water | Let the chicken simmer slowly, then add the carrots and noodles. | soup
green salad | lettuce, cucumber, oil, and lemon juice | Wash and tear the lettuce, slice the cucumber, and mix in oil and lemon. | salad
tomato salad | tomatoes, onions, and oil | Slice the tomatoes and onions and pour a little oil over them. | salad
fruit salad | apples, bananas, oranges, and grapes | Cut the fruit into small pieces and mix them gently. | dessert
bean salad | beans, corn, onions, and oil | Mix the cooked beans with the corn and onions and add oil and lemon. | salad
pasta salad | pasta, tomatoes, cheese, and oil | Boil the pasta, let it cool, and mix it with the rest. | cold side dish
pasta with tomato sauce | pasta, tomatoes, garlic, and oil | Boil the pasta, cook the tomatoes with garlic, and mix them. | main dish
macaroni and cheese | macaroni, milk, and cheese | Boil the macaroni and stir in warm milk and plenty of cheese. | main dish
lasagna | pasta sheets, tomato sauce, and cheese | Put pasta, sauce, and cheese in layers and bake it until it is golden. | main dish
pizza | dough, tomato sauce, and cheese | Roll out the dough, spread sauce and cheese on it, and bake it in a hot oven. | main dish
fried rice | rice, eggs, peas, and carrots | Fry the cooked rice with the vegetables and stir in the eggs. | main dish
rice pudding | rice, milk, and sugar | Let the rice cook slowly in the milk and stir in the sugar. | dessert
rice with beans | rice, beans, onions, and spices | Cook the rice and the beans and mix them with fried onions and spices. | main dish
vegetable curry | potatoes, carrots, peas, and curry spices | Fry the spices, add the vegetables and some water, and let it simmer. | main dish
bean chili | beans, tomatoes, peppers, and spices | Let everything simmer in a big pot for an hour. | main dish
vegetable stew | potatoes, carrots, beans, and tomatoes | Put everything in a big pot and let it cook slowly. | main dish
omelet | eggs, milk, and a little butter | Beat the eggs with a little milk and fry them gently in butter. | breakfast
scrambled eggs | eggs, butter, and salt | Beat the eggs and stir them in a warm pan until they are soft. | breakfast
boiled eggs | eggs and water | Put the eggs into boiling water and wait seven minutes. | breakfast
pancakes | flour, milk, and eggs | Mix flour, milk, and eggs, and fry thin rounds in a pan. | breakfast
waffles | flour, milk, eggs, and butter | Mix a smooth batter and bake it in a waffle iron. | breakfast
porridge | oats, milk, and honey | Cook the oats in milk for five minutes and add a spoon of honey. | breakfast
toast with jam | bread, butter, and jam | Toast the bread, then spread butter and jam on it. | breakfast
cheese sandwich | bread, butter, and cheese | Put butter and cheese between two slices of bread. | snack
grilled cheese sandwich | bread, butter, and cheese | Fry a cheese sandwich in butter until it is golden on both sides. | snack
garlic bread | bread, butter, and garlic | Spread butter with garlic on the bread and bake it for ten minutes. | side dish
bread | flour, water, yeast, and salt | Knead the dough, let it rise, and bake it until it sounds hollow. | side dish
corn bread | corn flour, milk, eggs, and butter | Stir everything together and bake it for half an hour. | side dish
apple pie | apples, flour, butter, and sugar | Line a dish with dough, fill it with apples and sugar, and bake it. | dessert
apple cake | apples, flour, eggs, and sugar | Stir a soft dough, put apple slices on it, and bake it. | dessert
applesauce | apples, water, and a little sugar | Cook the apples in a little water until they fall apart. | dessert
carrot cake | carrots, flour, eggs, and sugar | Grate the carrots, stir them into the dough, and bake it. | dessert
banana bread | bananas, flour, eggs, and butter | Mash the bananas, mix them with the rest, and bake it for an hour. | dessert
chocolate cake | flour, eggs, sugar, and cocoa | Stir everything into a smooth dough and bake it for forty minutes. | dessert
lemon cake | flour, eggs, sugar, and lemons | Stir lemon juice into the dough and bake it until it is golden. | dessert
cookies | flour, butter, and sugar | Make small rounds of dough and bake them for ten minutes. | dessert
muffins | flour, milk, eggs, and berries | Fill the dough into small cups and bake them for twenty minutes. | dessert
vanilla pudding | milk, sugar, and vanilla | Stir the powder into the hot milk until it gets thick. | dessert
lemonade | lemons, water, and sugar | Squeeze the lemons and stir the juice into cold water with sugar. | drink
hot chocolate | milk and cocoa | Warm the milk and stir in the cocoa. | drink
tea | water and tea leaves | Pour hot water over the leaves and wait a few minutes. | drink
smoothie | bananas, berries, and milk | Put everything in a blender and mix it until it is smooth. | drink
fruit punch | orange juice, apple juice, and slices of fruit | Mix the juices in a big bowl and add the fruit. | drink
tacos | tortillas, beans, tomatoes, and cheese | Warm the tortillas and let everyone fill their own. | main dish
burritos | tortillas, rice, beans, and cheese | Put the filling on a tortilla and roll it up. | main dish
hummus | chickpeas, lemon juice, garlic, and oil | Blend everything until it is creamy. | dip
guacamole | avocados, onions, and lemon juice | Mash the avocados and stir in the rest. | dip
fish and potatoes | fish, potatoes, and lemon | Bake the fish and the potatoes in the oven and add a little lemon. | main dish
roast chicken | chicken, salt, and herbs | Rub the chicken with salt and herbs and roast it for an hour. | main dish
meatballs | minced meat, bread, and eggs | Form small balls and fry them until they are brown. | main dish
stuffed peppers | peppers, rice, tomatoes, and cheese | Fill the peppers with rice and tomatoes and bake them. | main dish
cheese plate | cheese, grapes, and bread | Cut the cheese and put it on a plate with grapes and bread. | snack
vegetable sticks | carrots, cucumbers, and peppers | Cut the vegetables into sticks and serve them with a dip. | snack
popcorn | corn and a little oil | Heat the corn in a closed pot until it stops popping. | snack
noodle soup | noodles, carrots, and water | Cook the carrots in salted water and add the noodles at the end. | soup
onion soup | onions, butter, bread, and cheese | Fry the onions slowly, add water, and serve it with bread and cheese. | soup
cheesecake | soft cheese, eggs, sugar, and cookies | Press crushed cookies into a dish, pour the filling on top, and bake it. | dessert
spinach pie | spinach, dough, and cheese | Fill the dough with spinach and cheese and bake it. | main dish
vegetable pie | dough, leeks, carrots, and cheese | Fill the dough with the vegetables and bake it until it is golden. | main dish
""",
    4,
)
DISH = {row[0]: row for row in DISHES}

INGREDIENTS = {
    "potatoes": words("mashed potatoes, potato soup, potato salad, baked potatoes, vegetable stew, fish and potatoes, vegetable curry"),
    "tomatoes": words("tomato soup, tomato salad, pasta with tomato sauce, bean chili, pizza, stuffed peppers"),
    "apples": words("apple pie, apple cake, applesauce, fruit salad"),
    "bananas": words("banana bread, fruit salad, a smoothie, pancakes with bananas"),
    "carrots": words("carrot cake, vegetable soup, vegetable stew, vegetable sticks, vegetable curry"),
    "eggs": words("an omelet, scrambled eggs, boiled eggs, pancakes, fried rice"),
    "rice": words("fried rice, rice pudding, rice with beans, stuffed peppers, burritos"),
    "pasta": words("pasta with tomato sauce, pasta salad, lasagna, macaroni and cheese"),
    "noodles": words("noodle soup, chicken soup, fried noodles with vegetables"),
    "bread": words("toast with jam, a cheese sandwich, garlic bread, onion soup"),
    "cheese": words("macaroni and cheese, a grilled cheese sandwich, pizza, a cheese plate, onion soup"),
    "beans": words("bean chili, bean salad, rice with beans, burritos, tacos"),
    "lentils": words("lentil soup, a lentil salad, a lentil stew"),
    "chicken": words("roast chicken, chicken soup, a chicken sandwich, chicken curry"),
    "fish": words("fish and potatoes, fish soup, baked fish with lemon"),
    "onions": words("onion soup, tomato soup, bean salad, potato salad"),
    "pumpkin": words("pumpkin soup, pumpkin pie, roasted pumpkin"),
    "milk": words("rice pudding, vanilla pudding, pancakes, hot chocolate, porridge"),
    "flour": words("pancakes, bread, cookies, muffins, pizza"),
    "oats": words("porridge, oat cookies, muesli with fruit"),
    "lemons": words("lemonade, lemon cake, hummus"),
    "spinach": words("spinach pie, an omelet with spinach, pasta with spinach"),
    "mushrooms": words("mushroom soup, an omelet with mushrooms, pasta with mushrooms"),
    "corn": words("popcorn, bean salad, corn soup, corn bread"),
    "peppers": words("stuffed peppers, bean chili, vegetable sticks"),
    "cucumbers": words("green salad, vegetable sticks, cucumber sandwiches"),
    "strawberries": words("fruit salad, a strawberry cake, a smoothie, jam"),
    "berries": words("muffins, a smoothie, jam, fruit salad"),
    "chickpeas": words("hummus, chickpea curry, a chickpea salad"),
    "chocolate": words("chocolate cake, hot chocolate, chocolate cookies"),
    "avocados": words("guacamole, avocado on toast, a green salad"),
    "oranges": words("fruit salad, orange juice, orange cake"),
    "cabbage": words("cabbage soup, cabbage salad, cabbage rolls"),
    "peas": words("pea soup, fried rice, vegetable curry"),
    "tortillas": words("tacos, burritos, tortilla soup"),
    "leeks": words("leek soup, vegetable pie, potato and leek stew"),
    "pears": words("pear cake, fruit salad, baked pears"),
    "cherries": words("cherry cake, cherry jam, fruit salad"),
    "honey": words("porridge with honey, honey cake, tea with honey"),
    "zucchini": words("zucchini soup, fried zucchini, zucchini pasta"),
}

FRUITS = words("apples, bananas, oranges, pears, grapes, cherries, strawberries, plums, peaches, lemons, mangoes, kiwis, pineapples, raspberries, blueberries, melons")
VEGETABLES = words("carrots, potatoes, onions, peas, beans, cucumbers, peppers, spinach, cabbage, broccoli, pumpkins, leeks, lettuce, corn, zucchini, beets")

TASTES = rows(
    """
sugar | sweet
honey | sweet
a ripe banana | sweet
a strawberry | sweet
chocolate | sweet
jam | sweet
a grape | sweet
a lemon | sour
vinegar | sour
an unripe apple | sour
yogurt | a little sour
salt | salty
sea water | salty
a pretzel | salty
soy sauce | salty
black coffee | bitter
dark chocolate | a little bitter
a grapefruit | sour and a little bitter
chili | hot and spicy
pepper | hot and spicy
ginger | warm and spicy
milk | mild
bread | mild
""",
    2,
)

HOW_LONG = rows(
    """
boil an egg | about seven minutes, or ten if you like it hard
boil potatoes | about twenty minutes
cook pasta | about ten minutes
cook rice | about fifteen to twenty minutes
bake a cake | about forty minutes
bake cookies | about ten minutes
bake bread | about forty minutes
make tea | about three to five minutes
make soup | about half an hour
bake a pizza | about fifteen minutes in a hot oven
cook oatmeal | about five minutes
bake potatoes | about an hour
make pancakes | about twenty minutes for a whole stack
make a salad | about ten minutes
roast a chicken | about an hour
cook beans | about ten minutes if they come from a can, and an hour or more if they are dry
""",
    2,
)
