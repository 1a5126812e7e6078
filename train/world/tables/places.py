"""Countries, capitals, continents, languages and a few other places."""

from . import rows

COUNTRIES = rows(
    """
France | Paris | Europe | French
Germany | Berlin | Europe | German
Italy | Rome | Europe | Italian
Spain | Madrid | Europe | Spanish
Portugal | Lisbon | Europe | Portuguese
the United Kingdom | London | Europe | English
England | London | Europe | English
Scotland | Edinburgh | Europe | English
Wales | Cardiff | Europe | English and Welsh
Ireland | Dublin | Europe | English and Irish
the Netherlands | Amsterdam | Europe | Dutch
Belgium | Brussels | Europe | Dutch and French
Luxembourg | Luxembourg City | Europe | Luxembourgish
Switzerland | Bern | Europe | German, French, and Italian
Austria | Vienna | Europe | German
Denmark | Copenhagen | Europe | Danish
Norway | Oslo | Europe | Norwegian
Sweden | Stockholm | Europe | Swedish
Finland | Helsinki | Europe | Finnish
Iceland | Reykjavik | Europe | Icelandic
Poland | Warsaw | Europe | Polish
the Czech Republic | Prague | Europe | Czech
Slovakia | Bratislava | Europe | Slovak
Hungary | Budapest | Europe | Hungarian
Romania | Bucharest | Europe | Romanian
Bulgaria | Sofia | Europe | Bulgarian
Greece | Athens | Europe | Greek
Croatia | Zagreb | Europe | Croatian
Serbia | Belgrade | Europe | Serbian
Slovenia | Ljubljana | Europe | Slovene
Albania | Tirana | Europe | Albanian
Estonia | Tallinn | Europe | Estonian
Latvia | Riga | Europe | Latvian
Lithuania | Vilnius | Europe | Lithuanian
Ukraine | Kyiv | Europe | Ukrainian
Russia | Moscow | Europe and Asia | Russian
Turkey | Ankara | Asia and Europe | Turkish
Malta | Valletta | Europe | Maltese and English
Cyprus | Nicosia | Europe | Greek and Turkish
China | Beijing | Asia | Chinese
Japan | Tokyo | Asia | Japanese
South Korea | Seoul | Asia | Korean
North Korea | Pyongyang | Asia | Korean
India | New Delhi | Asia | Hindi and English
Pakistan | Islamabad | Asia | Urdu and English
Bangladesh | Dhaka | Asia | Bengali
Nepal | Kathmandu | Asia | Nepali
Sri Lanka | Colombo | Asia | Sinhala and Tamil
Thailand | Bangkok | Asia | Thai
Vietnam | Hanoi | Asia | Vietnamese
Cambodia | Phnom Penh | Asia | Khmer
Laos | Vientiane | Asia | Lao
Malaysia | Kuala Lumpur | Asia | Malay
Singapore | Singapore | Asia | English, Malay, Chinese, and Tamil
Indonesia | Jakarta | Asia | Indonesian
the Philippines | Manila | Asia | Filipino and English
Mongolia | Ulaanbaatar | Asia | Mongolian
Kazakhstan | Astana | Asia | Kazakh and Russian
Afghanistan | Kabul | Asia | Pashto and Dari
Iran | Tehran | Asia | Persian
Iraq | Baghdad | Asia | Arabic and Kurdish
Saudi Arabia | Riyadh | Asia | Arabic
Jordan | Amman | Asia | Arabic
Lebanon | Beirut | Asia | Arabic
Syria | Damascus | Asia | Arabic
Qatar | Doha | Asia | Arabic
Kuwait | Kuwait City | Asia | Arabic
Oman | Muscat | Asia | Arabic
Egypt | Cairo | Africa | Arabic
Morocco | Rabat | Africa | Arabic and Berber
Algeria | Algiers | Africa | Arabic and Berber
Tunisia | Tunis | Africa | Arabic
Libya | Tripoli | Africa | Arabic
Sudan | Khartoum | Africa | Arabic and English
Ethiopia | Addis Ababa | Africa | Amharic
Kenya | Nairobi | Africa | Swahili and English
Uganda | Kampala | Africa | English and Swahili
Tanzania | Dodoma | Africa | Swahili and English
Rwanda | Kigali | Africa | Kinyarwanda
Nigeria | Abuja | Africa | English
Ghana | Accra | Africa | English
Senegal | Dakar | Africa | French
Mali | Bamako | Africa | French
Cameroon | Yaounde | Africa | French and English
Zambia | Lusaka | Africa | English
Zimbabwe | Harare | Africa | English and Shona
Angola | Luanda | Africa | Portuguese
Mozambique | Maputo | Africa | Portuguese
Namibia | Windhoek | Africa | English
Botswana | Gaborone | Africa | English and Setswana
Madagascar | Antananarivo | Africa | Malagasy and French
Somalia | Mogadishu | Africa | Somali and Arabic
the United States | Washington, D.C. | North America | English
Canada | Ottawa | North America | English and French
Mexico | Mexico City | North America | Spanish
Guatemala | Guatemala City | North America | Spanish
Honduras | Tegucigalpa | North America | Spanish
Nicaragua | Managua | North America | Spanish
Costa Rica | San Jose | North America | Spanish
Panama | Panama City | North America | Spanish
Cuba | Havana | North America | Spanish
Jamaica | Kingston | North America | English
Haiti | Port-au-Prince | North America | Haitian Creole and French
Brazil | Brasilia | South America | Portuguese
Argentina | Buenos Aires | South America | Spanish
Chile | Santiago | South America | Spanish
Peru | Lima | South America | Spanish
Colombia | Bogota | South America | Spanish
Venezuela | Caracas | South America | Spanish
Ecuador | Quito | South America | Spanish
Bolivia | Sucre | South America | Spanish
Paraguay | Asuncion | South America | Spanish and Guarani
Uruguay | Montevideo | South America | Spanish
Australia | Canberra | Oceania | English
New Zealand | Wellington | Oceania | English and Maori
Fiji | Suva | Oceania | English and Fijian
""",
    4,
)
ALIASES = {
    "the United States": ("the USA", "the US", "the United States of America", "America"),
    "the United Kingdom": ("the UK", "Great Britain", "Britain"),
    "the Netherlands": ("Holland",),
    "the Czech Republic": ("Czechia",),
}
CONTINENTS = ("Africa", "Antarctica", "Asia", "Europe", "North America", "Oceania", "South America")

HELLO = rows(
    """
French | bonjour | merci | au revoir | oui | non | s'il vous plait
Spanish | hola | gracias | adios | si | no | por favor
German | hallo | danke | auf Wiedersehen | ja | nein | bitte
Italian | ciao | grazie | arrivederci | si | no | per favore
Portuguese | ola | obrigado | adeus | sim | nao | por favor
Dutch | hallo | dank je | tot ziens | ja | nee | alsjeblieft
Swedish | hej | tack | hej da | ja | nej | snalla
Danish | hej | tak | farvel | ja | nej | vaer sa god
Polish | dzien dobry | dziekuje | do widzenia | tak | nie | prosze
Turkish | merhaba | tesekkurler | hosca kal | evet | hayir | lutfen
Japanese | konnichiwa | arigato | sayonara | hai | iie | onegaishimasu
Swahili | jambo | asante | kwaheri | ndiyo | hapana | tafadhali
""",
    7,
)
PHRASES = ("hello", "thank you", "goodbye", "yes", "no", "please")

BUILDINGS = rows(
    """
school | children learn to read, write, and count | teachers and children
hospital | sick people get help | doctors and nurses
library | you can read and borrow books | readers and librarians
bakery | bread and cakes are baked | a baker
market | people buy and sell food | farmers and shoppers
farm | food is grown and animals are kept | farmers and animals
zoo | people can see animals from far away | animals and keepers
park | people walk, play, and rest under trees | families, dogs, and birds
kitchen | people cook and bake | whoever is hungry
garden | flowers and vegetables grow | gardeners and bees
bank | people keep their money safe | clerks and customers
post office | people send letters and parcels | letters and clerks
restaurant | people sit down and eat meals made by a cook | cooks, waiters, and guests
museum | old and beautiful things are shown | visitors and guides
station | trains or buses stop | travellers
airport | planes take off and land | pilots and passengers
harbor | ships and boats come in | sailors and gulls
beach | the sand meets the sea | swimmers, crabs, and gulls
forest | many trees grow close together | deer, foxes, and owls
desert | there is very little rain and a lot of sand | camels and lizards
mountain | the land rises very high | goats, eagles, and climbers
river | fresh water flows to the sea | fish, frogs, and ducks
lake | fresh water lies in one big place | ducks, fish, and boats
island | land is surrounded by water on all sides | birds and sometimes people
sea | there is salt water as far as you can see | fish, whales, and ships
village | a small number of people live close together | neighbors who know each other
city | very many people live and work | many people
bedroom | people sleep | a bed and someone sleepy
bathroom | people wash themselves | a bath, a sink, and soap
living room | the family sits together | a sofa and a lamp
playground | children climb, swing, and slide | children
swimming pool | people swim in clean water | swimmers
cinema | people watch films on a big screen | film lovers
theater | actors play stories on a stage | actors and an audience
shop | people buy things | a shopkeeper and shoppers
pharmacy | people buy medicine | a pharmacist
fire station | fire trucks wait for a call | firefighters
workshop | things are built and repaired | tools and people who make things
""",
    3,
)
