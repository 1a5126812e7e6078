"""Everyday things: what kind they are, what they are for, where they are, what they are made of."""

from . import rows

THINGS = rows(
    """
spoon | tool for eating | eating soup and stirring tea | in the kitchen | metal or wood
fork | tool for eating | picking up food | in the kitchen | metal
knife | tool with a sharp edge | cutting bread and vegetables | in the kitchen | metal
plate | flat dish | serving food | in the kitchen cupboard | china or glass
bowl | deep round dish | soup, salad, and cereal | in the kitchen cupboard | china, glass, or wood
cup | small container with a handle | drinking tea or coffee | in the kitchen cupboard | china
glass | clear container | drinking water or juice | in the kitchen cupboard | glass
mug | big cup with a handle | hot drinks | in the kitchen cupboard | china
pot | deep round pan | cooking soup and pasta | on the stove | metal
pan | flat round cooking dish | frying eggs and pancakes | on the stove | metal
lid | cover | closing a pot or a jar | in the kitchen | metal or glass
oven | hot box | baking bread and cakes | in the kitchen | metal
stove | kitchen machine that makes heat | cooking food | in the kitchen | metal
kettle | pot with a spout | boiling water | in the kitchen | metal
fridge | cold box | keeping food fresh | in the kitchen | metal and plastic
freezer | very cold box | keeping ice and frozen food | in the kitchen | metal and plastic
napkin | small cloth or paper | wiping your mouth and hands | on the table | paper or cloth
ladle | big deep spoon | serving soup | in the kitchen | metal
whisk | kitchen tool made of wires | beating eggs and cream | in the kitchen | metal
tray | flat board with an edge | carrying cups and plates | in the kitchen | wood or plastic
basket | light container | carrying bread and fruit | in the kitchen or at the market | woven wood or straw
table | piece of furniture with a flat top | eating, writing, and playing games | in the kitchen or dining room | wood
chair | piece of furniture | sitting | at the table | wood
bench | long seat | sitting together | in a park or garden | wood
sofa | soft wide seat | sitting and resting together | in the living room | wood and cloth
bed | piece of furniture | sleeping | in the bedroom | wood and a soft mattress
pillow | soft cushion | resting your head | on the bed | cloth and feathers or foam
blanket | big warm cloth | keeping warm | on the bed or sofa | wool or cotton
lamp | thing that gives light | reading in the evening | in most rooms | metal, glass, or wood
candle | stick of wax with a wick | giving a soft light | on the table | wax
mirror | shiny glass | seeing yourself | in the bathroom | glass
door | part of a wall that opens | going in and out | in every house | wood
window | opening with glass | letting in light and air | in the walls of a house | glass
key | small piece of metal | opening a lock | in a pocket or on a hook | metal
lock | thing that keeps something closed | keeping doors shut | on doors and boxes | metal
clock | machine with numbers and hands | telling the time | on the wall | metal or plastic
watch | small clock | telling the time | on your wrist | metal and leather
umbrella | small roof on a stick | staying dry in the rain | by the door on rainy days | cloth and metal
coat | long warm jacket | staying warm outside | in the wardrobe | wool or cloth
hat | piece of clothing | keeping your head warm or out of the sun | on your head | wool, straw, or cloth
scarf | long piece of cloth | keeping your neck warm | around your neck in winter | wool
glove | piece of clothing for a hand | keeping your hands warm | in your coat pocket | wool or leather
sock | soft piece of clothing | keeping your feet warm | in your shoes | wool or cotton
shoe | strong cover for a foot | walking safely | on your feet or by the door | leather or cloth
boot | high strong shoe | walking through mud and snow | by the door | leather or rubber
shirt | piece of clothing | covering your upper body | in the wardrobe | cotton
button | small round disk | closing a shirt or a coat | on clothes | plastic or wood
needle | thin pointed tool | sewing cloth | in a sewing box | metal
thread | very thin string | sewing | in a sewing box | cotton
rope | thick strong string | tying and pulling | on boats and in sheds | fibers
ladder | frame with steps | climbing up to high places | in the shed | wood or metal
hammer | tool with a heavy head | driving in nails | in the toolbox | metal and wood
nail | thin pointed piece of metal | holding wood together | in the toolbox | metal
saw | tool with teeth | cutting wood | in the toolbox | metal
shovel | tool with a wide blade | digging and moving snow or sand | in the shed | metal and wood
rake | tool with a row of teeth | gathering leaves | in the shed | metal and wood
broom | brush on a long stick | sweeping the floor | in a corner or cupboard | wood and straw
bucket | round container with a handle | carrying water or sand | in the shed | metal or plastic
sponge | soft thing full of holes | washing dishes | by the sink | foam
soap | thing that foams in water | washing your hands | by the sink | fat or oil
towel | soft thick cloth | drying yourself | in the bathroom | cotton
toothbrush | small brush with a handle | cleaning your teeth | in the bathroom | plastic or wood
comb | flat tool with teeth | making hair tidy | in the bathroom | plastic or wood
book | bundle of pages with words and pictures | reading | on a shelf or in a library | paper
pencil | thin stick with gray lead | writing and drawing | on a desk | wood
pen | tool filled with ink | writing | on a desk | plastic or metal
paper | thin white sheet | writing, drawing, and folding | on a desk | wood
scissors | tool with two blades | cutting paper | in a drawer | metal
map | drawing of a place from above | finding the way | in a bag or on a wall | paper
letter | message on paper | telling something to someone far away | in the mailbox | paper
stamp | small sticky picture | paying for a letter | on a letter | paper
bag | soft container | carrying things | at the shop or on your shoulder | cloth, paper, or leather
box | container with sides | keeping things together | on a shelf | paper or wood
bottle | tall container with a narrow neck | keeping drinks | in the kitchen | glass or plastic
jar | wide container with a lid | keeping jam and honey | in the kitchen | glass
ball | round toy | throwing, kicking, and catching | on the playground | rubber or leather
doll | toy that looks like a person | playing | in the toy box | cloth or plastic
kite | light toy on a string | flying in the wind | in the sky on windy days | paper or cloth and sticks
swing | hanging seat | swinging back and forth | on the playground | wood and rope
drum | round musical instrument | making a beat | in a music room | wood and skin
guitar | musical instrument with strings | playing songs | in a music room | wood
piano | big musical instrument with keys | playing music | in a living room or on a stage | wood and metal
flute | thin musical instrument | playing high soft music by blowing | in a music room | wood or metal
bell | hollow piece of metal that rings | calling people | in a tower or by a door | metal
bicycle | vehicle with two wheels | riding without a motor | on the street or in a shed | metal and rubber
car | vehicle with four wheels | driving on roads | on the street | metal, glass, and rubber
bus | long vehicle | carrying many people on the road | at the bus stop | metal and glass
train | row of wagons on rails | traveling far | at the station | metal
boat | small vessel | traveling on water | on a lake or river | wood
ship | very large boat | crossing the sea | in the harbor | steel
plane | machine with wings | flying far over land and sea | at the airport | metal
truck | big strong car | carrying heavy things | on the road | metal
wheel | round thing that turns | making cars and bicycles roll | under cars and bicycles | metal and rubber
bridge | road over water | crossing a river | over rivers | stone, wood, or steel
house | building | living in | in a village or city | stone, brick, or wood
roof | top of a house | keeping out the rain | on top of every house | tiles or straw
wall | side of a room or house | holding up the roof | in every house | stone or brick
stairs | row of steps | going up and down | in houses | wood or stone
fence | low wall of wood or wire | keeping animals in | around gardens and fields | wood or wire
nest | home of a bird | keeping eggs safe | in trees | twigs and grass
tent | small house of cloth | sleeping outside | in the forest or at a campsite | cloth
backpack | bag for your back | carrying books and lunch | on your back | cloth
camera | machine that takes pictures | keeping a picture of a moment | in a bag | metal and glass
telephone | machine for talking | talking with someone far away | in a pocket or on a desk | plastic and glass
computer | machine that works with numbers, words, and pictures | writing, counting, and playing | on a desk | metal and plastic
radio | machine that plays sound from far away | hearing music and news | in the kitchen | plastic and metal
television | machine with a screen | watching films | in the living room | plastic and glass
thermometer | small instrument | measuring how warm it is | by the window | glass
scale | instrument | measuring how heavy something is | in the kitchen | metal
ruler | straight stick with marks | measuring and drawing lines | in a school bag | wood or plastic
glasses | two lenses in a frame | seeing better | on the nose | glass and metal
wallet | small flat bag | keeping money | in a pocket | leather
coin | small round piece of money | paying for things | in a wallet | metal
ring | small round band | wearing on a finger | on a finger | gold or silver
tree | tall plant with a trunk | giving shade, fruit, and clean air | in forests and gardens | wood, bark, and leaves
flower | colorful part of a plant | making seeds and feeding bees | in gardens and meadows | petals and a stem
seed | tiny start of a plant | growing a new plant | inside fruits and flowers | a small living core and a shell
leaf | flat green part of a plant | catching sunlight | on trees and plants | living green cells
""",
    5,
)
THING = {row[0]: row for row in THINGS}
UNCOUNTED = frozenset({"soap", "paper", "thread", "scissors", "stairs", "glasses"})

COLORS_OF = rows(
    """
the sky on a clear day | blue
grass | green
snow | white
a banana | yellow
a lemon | yellow
a tomato | red
a strawberry | red
a carrot | orange
an orange | orange
coal | black
milk | white
a leaf in spring | green
a leaf in fall | red, yellow, or brown
the sun | yellow, and red when it sets
the sea | blue or green
a cloud | white, or gray before rain
chocolate | brown
a cucumber | green
an eggplant | purple
a plum | purple
a cherry | red
blood | red
a raven | black
a frog | usually green
an elephant | gray
a flamingo | pink
a sunflower | yellow
a rose | often red, but roses come in many colors
a pumpkin | orange
salt | white
sand | yellow or light brown
a tree trunk | brown
a fire truck | usually red
a ladybug | red with black dots
a panda | black and white
a zebra | black and white
spinach | dark green
a blueberry | blue
cheese | usually yellow
a potato | brown outside and yellow inside
ice | clear or white
the night sky | black or very dark blue
broccoli | green
a pea | green
honey | golden
a mouse | gray or brown
""",
    2,
)
COLOR_MIXES = rows(
    """
red | yellow | orange
blue | yellow | green
red | blue | purple
red | white | pink
black | white | gray
blue | white | light blue
red | green | brown
""",
    3,
)
RAINBOW = ("red", "orange", "yellow", "green", "blue", "indigo", "violet")
COLORS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white", "gray")
COLOR_MOODS = {
    "red": "warm and strong", "orange": "cheerful and warm", "yellow": "bright and sunny", "green": "calm and fresh",
    "blue": "quiet and clear", "purple": "soft and a little mysterious", "pink": "gentle and kind",
    "brown": "earthy and cozy", "black": "deep and elegant", "white": "clean and light", "gray": "calm and plain",
}
