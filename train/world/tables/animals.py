"""Animals: kind, size rank (kilograms, about), legs, sound, food, home, young, colours, abilities and a fact or two."""

from . import rows

ANIMALS = rows(
    """
elephant | mammal | 5000 | 4 | trumpets | grass, leaves, and fruit | grasslands and forests | calf | gray | walk | The elephant is the biggest animal on land. | It picks things up with its long trunk.
mouse | mammal | 0.02 | 4 | squeaks | seeds and grain | fields and houses | pup | gray or brown | run | A mouse can squeeze through a very small hole. | It has big ears and a long thin tail.
cat | mammal | 4 | 4 | meows | meat and fish | homes with people | kitten | many colors | climb | A cat can see well in the dark. | It purrs when it is happy.
dog | mammal | 20 | 4 | barks | meat and dog food | homes with people | puppy | many colors | run | A dog can smell far better than a person. | It wags its tail when it is happy.
horse | mammal | 500 | 4 | neighs | grass and hay | fields and stables | foal | brown, black, or white | run | A horse can sleep standing up. | People have ridden horses for thousands of years.
cow | mammal | 600 | 4 | moos | grass and hay | farms | calf | brown, or black and white | walk | A cow gives milk. | It chews its food twice.
pig | mammal | 150 | 4 | oinks | roots, grain, and scraps | farms | piglet | pink | walk | A pig is very clever. | It rolls in mud to stay cool.
sheep | mammal | 70 | 4 | bleats | grass | farms and hills | lamb | white | walk | We get wool from a sheep. | It likes to stay close to its flock.
goat | mammal | 50 | 4 | bleats | grass, leaves, and twigs | farms and mountains | kid | white, brown, or black | climb | A goat can climb very steep rocks. | It will try to eat almost anything.
fox | mammal | 6 | 4 | yelps | mice, berries, and insects | forests and fields | cub | red | run | A fox has a bushy tail that keeps it warm. | It hunts mostly at night.
wolf | mammal | 40 | 4 | howls | deer and other animals | forests | pup | gray | run | Wolves live together in a pack. | A wolf howls to call its family.
bear | mammal | 200 | 4 | growls | berries, fish, and honey | forests and mountains | cub | brown or black | climb | A bear sleeps through most of the winter. | It loves honey and berries.
polar bear | mammal | 450 | 4 | growls | seals and fish | the cold Arctic | cub | white | swim | A polar bear lives on ice and snow. | It has thick white fur.
lion | mammal | 190 | 4 | roars | meat | grasslands in Africa | cub | golden | run | A male lion has a big mane. | Lions live in groups called prides.
tiger | mammal | 220 | 4 | roars | meat | forests in Asia | cub | orange with black stripes | swim | No two tigers have the same stripes. | The tiger is the biggest of all cats.
giraffe | mammal | 1000 | 4 | hums | leaves | grasslands in Africa | calf | yellow with brown patches | walk | The giraffe is the tallest animal. | It has a very long neck to reach leaves.
zebra | mammal | 300 | 4 | barks | grass | grasslands in Africa | foal | black and white | run | Every zebra has its own pattern of stripes. | It is a cousin of the horse.
monkey | mammal | 8 | 4 | chatters | fruit, leaves, and nuts | warm forests | infant | brown | climb | A monkey uses its hands and tail to climb. | Most monkeys live in groups.
rabbit | mammal | 2 | 4 | squeaks | grass, carrots, and leaves | burrows in fields | kit | brown, gray, or white | hop | A rabbit has long ears and a short fluffy tail. | It digs a burrow to live in.
hare | mammal | 4 | 4 | squeaks | grass and bark | open fields | leveret | brown | run | A hare is a very fast runner. | It has longer ears than a rabbit.
squirrel | mammal | 0.4 | 4 | chatters | nuts and seeds | trees | kit | red or gray | climb | A squirrel hides nuts for the winter. | It uses its bushy tail to keep its balance.
hedgehog | mammal | 1 | 4 | snuffles | insects, worms, and snails | gardens and hedges | hoglet | brown | walk | A hedgehog rolls into a ball when it is afraid. | Its back is covered with spines.
badger | mammal | 11 | 4 | grunts | worms, roots, and berries | burrows in the woods | cub | black, white, and gray | dig | A badger digs a home called a sett. | It comes out at night.
mole | mammal | 0.1 | 4 | squeaks | worms | tunnels under the ground | pup | black | dig | A mole digs with its big front paws. | It can hardly see, but it feels and smells well.
beaver | mammal | 20 | 4 | grunts | bark and leaves | rivers and ponds | kit | brown | swim | A beaver builds dams from branches. | Its front teeth never stop growing.
otter | mammal | 9 | 4 | whistles | fish and crabs | rivers and coasts | pup | brown | swim | Otters sometimes hold hands when they sleep. | An otter is a playful swimmer.
deer | mammal | 90 | 4 | bellows | grass, leaves, and bark | forests | fawn | brown | run | Male deer grow antlers every year. | A deer can jump very high.
bat | mammal | 0.02 | 2 | squeaks | insects and fruit | caves and old houses | pup | brown or black | fly | A bat is the only mammal that can really fly. | It sleeps hanging upside down.
whale | mammal | 100000 | 0 | sings | tiny shrimp and fish | the sea | calf | blue or gray | swim | The blue whale is the biggest animal of all. | A whale must come up to breathe air.
dolphin | mammal | 150 | 0 | clicks and whistles | fish | the sea | calf | gray | swim | A dolphin is very clever and playful. | It is not a fish: it breathes air.
seal | mammal | 100 | 0 | barks | fish | cold coasts | pup | gray | swim | A seal has thick fat to keep it warm. | It is clumsy on land and quick in water.
camel | mammal | 500 | 4 | grunts | dry grass and thorny plants | deserts | calf | sandy brown | walk | A camel can go many days without water. | It stores fat in its hump.
donkey | mammal | 200 | 4 | brays | grass and hay | farms | foal | gray | walk | A donkey is strong and patient. | It has long ears.
kangaroo | mammal | 60 | 2 | grunts | grass | Australia | joey | brown | hop | A kangaroo carries its baby in a pouch. | It can jump as far as a bus is long.
panda | mammal | 100 | 4 | bleats | bamboo | mountain forests in China | cub | black and white | climb | A panda spends most of the day eating bamboo. | It has black patches around its eyes.
hippo | mammal | 1500 | 4 | grunts | grass | rivers in Africa | calf | gray | swim | A hippo stays in the water to keep cool. | It can open its mouth very wide.
rhino | mammal | 2000 | 4 | snorts | grass and leaves | grasslands | calf | gray | run | A rhino has one or two horns on its nose. | Its skin is very thick.
hamster | mammal | 0.1 | 4 | squeaks | seeds and vegetables | burrows and cages | pup | golden | run | A hamster carries food in its cheeks. | It likes to run in a wheel at night.
chicken | bird | 2 | 2 | clucks | grain and worms | farms | chick | brown or white | run | A hen lays eggs. | A chicken likes to scratch in the ground.
rooster | bird | 3 | 2 | crows | grain and worms | farms | chick | red and brown | crow | A rooster crows early in the morning. | It has a red comb on its head.
duck | bird | 1 | 2 | quacks | water plants and insects | ponds and lakes | duckling | brown, green, or white | swim | A duck has webbed feet for swimming. | Its feathers keep the water out.
goose | bird | 4 | 2 | honks | grass | ponds and farms | gosling | white or gray | fly | Geese fly in the shape of a V. | A goose guards its home loudly.
swan | bird | 10 | 2 | hisses | water plants | lakes | cygnet | white | swim | A swan often stays with one partner for life. | It has a long curved neck.
owl | bird | 1 | 2 | hoots | mice | forests and barns | owlet | brown or white | fly | An owl flies without a sound. | It can turn its head very far around.
eagle | bird | 5 | 2 | screams | fish and small animals | mountains and cliffs | eaglet | brown | fly | An eagle can see a rabbit from very far away. | It builds its nest high up.
robin | bird | 0.02 | 2 | sings | worms and berries | gardens | chick | brown with a red breast | fly | A robin sings even in winter. | It is not afraid of gardeners.
sparrow | bird | 0.03 | 2 | chirps | seeds and crumbs | towns and gardens | chick | brown | fly | Sparrows like to live near people. | A sparrow hops instead of walking.
crow | bird | 0.5 | 2 | caws | nearly everything | fields and towns | chick | black | fly | A crow is one of the cleverest birds. | It can use a stick as a tool.
parrot | bird | 0.5 | 2 | squawks | seeds and fruit | warm forests | chick | green, red, or blue | fly | Some parrots can learn to say words. | A parrot has a strong curved beak.
penguin | bird | 20 | 2 | brays | fish | cold coasts in the south | chick | black and white | swim | A penguin cannot fly, but it swims very well. | Father penguins help to keep the egg warm.
ostrich | bird | 110 | 2 | booms | plants and seeds | grasslands in Africa | chick | black and white | run | The ostrich is the biggest bird. | It cannot fly, but it runs very fast.
pigeon | bird | 0.3 | 2 | coos | seeds and crumbs | towns | squab | gray | fly | A pigeon can find its way home from far away. | It nods its head when it walks.
seagull | bird | 1 | 2 | cries | fish and scraps | coasts | chick | white and gray | fly | A seagull likes to follow fishing boats. | It can drink salt water.
stork | bird | 4 | 2 | clatters with its beak | frogs and insects | wet meadows and roofs | chick | white and black | fly | A stork flies to warm countries in winter. | It likes to nest on roofs.
snake | reptile | 3 | 0 | hisses | mice and eggs | forests and deserts | hatchling | green or brown | crawl | A snake smells with its tongue. | It has no legs at all.
turtle | reptile | 50 | 4 | hisses | plants and jellyfish | the sea and ponds | hatchling | green | swim | A turtle carries its home on its back. | Some turtles live more than a hundred years.
tortoise | reptile | 60 | 4 | hisses | grass and leaves | dry land | hatchling | brown | walk | A tortoise is slow but lives very long. | It hides in its shell.
lizard | reptile | 0.1 | 4 | hisses | insects | warm rocks | hatchling | green or brown | climb | A lizard likes to lie in the sun. | Some lizards can drop their tail to get away.
crocodile | reptile | 400 | 4 | growls | fish and other animals | warm rivers | hatchling | green | swim | A crocodile has very many teeth. | It waits in the water without moving.
frog | amphibian | 0.03 | 4 | croaks | flies and other insects | ponds | tadpole | green | hop | A frog catches flies with its long tongue. | It begins life as a tadpole in the water.
toad | amphibian | 0.1 | 4 | croaks | insects and worms | gardens and woods | tadpole | brown | hop | A toad has dry, bumpy skin. | It comes out on wet evenings.
fish | fish | 1 | 0 | makes hardly any sound | plants, insects, and smaller fish | water | fry | many colors | swim | A fish breathes through its gills. | It steers with its fins.
goldfish | fish | 0.1 | 0 | makes hardly any sound | fish flakes | ponds and bowls | fry | orange | swim | A goldfish can live for many years. | It does not have eyelids.
shark | fish | 700 | 0 | makes hardly any sound | fish and seals | the sea | pup | gray | swim | A shark grows new teeth all its life. | It can smell very well under water.
salmon | fish | 5 | 0 | makes hardly any sound | insects and small fish | rivers and the sea | fry | silver | swim | A salmon swims back up the river where it was born. | It can jump up small waterfalls.
octopus | sea animal | 5 | 8 | makes hardly any sound | crabs and shells | the sea | hatchling | many colors | swim | An octopus has eight arms and three hearts. | It can change its color.
crab | sea animal | 0.5 | 10 | clicks | small sea animals and plants | beaches | larva | red or brown | walk | A crab walks sideways. | It has two strong claws.
jellyfish | sea animal | 2 | 0 | makes no sound | tiny sea animals | the sea | polyp | clear | swim | A jellyfish has no bones and no brain. | Some jellyfish can sting.
snail | slow animal with a shell | 0.01 | 0 | makes no sound | leaves and salad | gardens | hatchling | brown | crawl | A snail carries its house on its back. | It moves very slowly on one foot.
worm | small animal without bones | 0.005 | 0 | makes no sound | soil and dead leaves | the ground | hatchling | pink | crawl | Worms keep the soil healthy. | A worm has no eyes and no legs.
spider | arachnid | 0.001 | 8 | makes no sound | flies | webs in corners and gardens | spiderling | brown or black | climb | A spider has eight legs, so it is not an insect. | It spins a web to catch flies.
bee | insect | 0.0001 | 6 | buzzes | nectar and pollen | hives | larva | yellow and black | fly | Bees make honey. | A bee dances to show the others where the flowers are.
ant | insect | 0.00001 | 6 | makes no sound | seeds, crumbs, and insects | nests in the ground | larva | black or red | walk | An ant can carry many times its own weight. | Ants live together in big families.
butterfly | insect | 0.0005 | 6 | makes no sound | nectar from flowers | meadows and gardens | caterpillar | many colors | fly | A butterfly begins life as a caterpillar. | It tastes with its feet.
ladybug | insect | 0.00002 | 6 | makes no sound | tiny plant lice | gardens | larva | red with black dots | fly | A ladybug is a good friend of gardeners. | Its dots do not tell its age.
fly | insect | 0.00001 | 6 | buzzes | almost everything | everywhere | maggot | black | fly | A fly tastes with its feet. | It is very hard to catch.
mosquito | insect | 0.000002 | 6 | whines | nectar and blood | near water | larva | gray | fly | Only female mosquitoes bite. | A mosquito lays its eggs in water.
grasshopper | insect | 0.0003 | 6 | chirps | grass | meadows | nymph | green | hop | A grasshopper can jump very far. | It makes its song with its legs.
""",
    12,
)
COLUMNS = "name kind weight legs sound food home young color able fact more".split()
TABLE = {row[0]: dict(zip(COLUMNS, row)) for row in ANIMALS}
NAMES = tuple(TABLE)


def weight(name):
    """Kilograms, about."""
    return float(TABLE[name]["weight"])
