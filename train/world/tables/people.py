"""Names, family words and jobs."""

from . import rows, words

NAMES = words("Anna, Ben, Clara, David, Ella, Finn, Grace, Henry, Ida, Jack, Kate, Leo, Mia, Noah, Olive, Paul, Rosa, Sam, Tina, Victor, Zoe, Max, Lily, Tom, Emma, Oscar, Nina, Hugo, Ruth, Peter, Maria, Omar, Aisha, Ali, Fatima, Yuki, Kenji, Wei, Lin, Raj, Priya, Carlos, Sofia, Juan, Elena, Ivan, Olga, Amir, Leila, Kofi, Ama, Liam, Nora, Theo, Alma, Felix, Jonas, Martha, Otto, Vera, Simon, Julia, Mark, Helen, George, Alice, Robert, Sarah, Daniel, Laura, Alex, Robin, Kim, Charlie, Erik, Astrid, Bruno, Camila, Diego, Esther, Frank, Gina, Hannah, Isaac, Jenny, Karl, Linda, Mohamed, Nadia, Pablo, Rita, Steven, Tamara, Ursula, William, Yusuf")
PET_NAMES = words("Rex, Bella, Luna, Milo, Coco, Max, Daisy, Rocky, Molly, Charlie, Lucy, Buddy, Nala, Simba, Oreo, Biscuit, Pepper, Ginger, Shadow, Snowy, Tiger, Cookie, Mimi, Peanut, Honey, Bruno, Kiki, Fluffy, Spot, Teddy")
FAMILY = rows(
    """
my mother's mother | grandmother
my mother's father | grandfather
my father's mother | grandmother
my father's father | grandfather
my mother's sister | aunt
my mother's brother | uncle
my father's sister | aunt
my father's brother | uncle
my aunt's son | cousin
my aunt's daughter | cousin
my uncle's son | cousin
my uncle's daughter | cousin
my sister's son | nephew
my sister's daughter | niece
my brother's son | nephew
my brother's daughter | niece
my son's son | grandson
my son's daughter | granddaughter
my daughter's son | grandson
my daughter's daughter | granddaughter
my wife's mother | mother-in-law
my husband's mother | mother-in-law
my wife's father | father-in-law
my husband's father | father-in-law
my wife's brother | brother-in-law
my husband's sister | sister-in-law
my parents' son | brother
my parents' daughter | sister
my grandmother's daughter | mother or aunt
my grandfather's son | father or uncle
""",
    2,
)
JOBS = rows(
    """
baker | bakes bread and cakes | early in the morning in a bakery
cook | prepares meals | in a kitchen
farmer | grows food and keeps animals | on a farm
teacher | helps children and grown-ups to learn | at a school
doctor | helps sick people to get well | in a hospital or an office
nurse | cares for sick people | in a hospital
gardener | looks after plants and flowers | in gardens and parks
carpenter | builds things from wood | in a workshop
plumber | repairs water pipes | in houses
painter | paints walls or pictures | in houses or a studio
firefighter | puts out fires and rescues people | at the fire station
police officer | helps to keep people safe | in the streets
postman | brings letters and parcels | from door to door
bus driver | drives a bus full of people | on the road
pilot | flies planes | high in the air
sailor | works on a ship | at sea
fisherman | catches fish | on a boat
librarian | takes care of books and helps readers | in a library
tailor | makes and mends clothes | in a workshop
shoemaker | makes and repairs shoes | in a workshop
musician | plays music | on a stage or in the street
writer | writes books and stories | at a desk
dentist | takes care of teeth | in an office
vet | helps sick animals | in an animal clinic
hairdresser | cuts hair | in a salon
waiter | brings food to the guests | in a restaurant
mechanic | repairs cars | in a garage
electrician | puts in wires and lamps | in houses
astronaut | travels into space | in a spaceship
scientist | tries to find out how things work | in a laboratory
judge | decides what is right by the law | in a court
miner | digs for coal and metals | under the ground
beekeeper | looks after bees and collects honey | by the hives
shepherd | looks after sheep | on the hills
miller | grinds grain into flour | in a mill
butcher | cuts and sells meat | in a butcher shop
shopkeeper | sells things | in a shop
lifeguard | watches over swimmers | at a pool or beach
""",
    3,
)
