"""The words that the lab's tasks are made of: few, so that a small model can know all of them."""

from __future__ import annotations

from dataclasses import dataclass

NAMES = (
    "Ana", "Ben", "Carla", "David", "Elena", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Kavya",
    "Liam", "Mona", "Nils", "Olga", "Pavel", "Quinn", "Rosa", "Samir", "Tara", "Uma", "Viktor",
    "Wanda", "Xenia", "Yusuf", "Zoe", "Adam", "Berta", "Cyril", "Doris", "Emil", "Frida",
    "Gustav", "Helga", "Ivan", "Julia", "Karl", "Laura", "Martin", "Nora", "Oscar", "Paula",
    "Ralf", "Sonja", "Tomas", "Vera", "Walter", "Yara",
)  # fmt: skip

POSSESSIONS = (
    "apple", "book", "brush", "coat", "comb", "cup", "drum", "flag", "glove", "kite", "ladder",
    "mask", "nail", "pipe", "rope", "saw", "scarf", "spoon", "stamp", "torch", "tray", "vase",
    "wheel", "whistle",
)  # fmt: skip

COUNTED = (
    "apples", "books", "buttons", "cards", "coins", "marbles", "nuts", "pears", "pencils", "shells",
    "stamps", "tickets",
)  # fmt: skip

GAINS = ("finds", "buys", "gets")
LOSSES = ("loses", "sells", "drops")

LANGUAGES = ("Spanish", "French", "German")


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """A noun; in each language the genders are those that its adjectives agree with."""

    english: str
    spanish: str
    french: str
    german: str
    genders: str
    """Spanish, French and German gender, a letter each: ``m``, ``f`` or ``n``."""
    plurals: tuple[str, str, str, str]
    """English, Spanish, French and German."""


def noun(forms: str, genders: str, plurals: str) -> Noun:
    """Return a noun from its forms in English, Spanish, French and German."""
    english, spanish, french, german = forms.split()
    first, second, third, fourth = plurals.split()
    return Noun(
        english=english,
        spanish=spanish,
        french=french,
        german=german,
        genders=genders,
        plurals=(first, second, third, fourth),
    )


NOUNS = (
    noun("table mesa table Tisch", "ffm", "tables mesas tables Tische"),
    noun("cat gato chat Katze", "mmf", "cats gatos chats Katzen"),
    noun("dog perro chien Hund", "mmm", "dogs perros chiens Hunde"),
    noun("horse caballo cheval Pferd", "mmn", "horses caballos chevaux Pferde"),
    noun("flower flor fleur Blume", "fff", "flowers flores fleurs Blumen"),
    noun("letter carta lettre Brief", "ffm", "letters cartas lettres Briefe"),
    noun("boat barco bateau Boot", "mmn", "boats barcos bateaux Boote"),
    noun("shirt camisa chemise Hemd", "ffn", "shirts camisas chemises Hemden"),
    noun("shoe zapato chaussure Schuh", "mfm", "shoes zapatos chaussures Schuhe"),
    noun("moon luna lune Mond", "ffm", "moons lunas lunes Monde"),
    noun("cloud nube nuage Wolke", "fmf", "clouds nubes nuages Wolken"),
    noun("pear pera poire Birne", "fff", "pears peras poires Birnen"),
    noun("bread pan pain Brot", "mmn", "breads panes pains Brote"),
    noun("duck pato canard Ente", "mmf", "ducks patos canards Enten"),
    noun("snake serpiente serpent Schlange", "fmf", "snakes serpientes serpents Schlangen"),
    noun("bottle botella bouteille Flasche", "fff", "bottles botellas bouteilles Flaschen"),
    noun("knife cuchillo couteau Messer", "mmn", "knives cuchillos couteaux Messer"),
    noun("bed cama lit Bett", "fmn", "beds camas lits Betten"),
    noun("clock reloj horloge Uhr", "mff", "clocks relojes horloges Uhren"),
    noun("bag bolsa sac Tasche", "fmf", "bags bolsas sacs Taschen"),
    noun("car coche voiture Auto", "mfn", "cars coches voitures Autos"),
    noun("stone piedra pierre Stein", "ffm", "stones piedras pierres Steine"),
    noun("candle vela bougie Kerze", "fff", "candles velas bougies Kerzen"),
    noun("field campo champ Feld", "mmn", "fields campos champs Felder"),
)
"""Those whose forms need no letter beyond a to z in any of the four languages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjective:
    """An adjective that stands behind the noun in Spanish and French and before it in German."""

    english: str
    spanish: tuple[str, str]
    """With a masculine and a feminine noun."""
    french: tuple[str, str]
    german: str
    """Without its ending."""


def adjective(english: str, spanish: str, french: str, german: str) -> Adjective:
    """Return an adjective; where one form serves both genders it is given once."""
    return Adjective(english=english, spanish=_both(spanish), french=_both(french), german=german)


def _both(forms: str) -> tuple[str, str]:
    masculine, _, feminine = forms.partition(" ")
    return masculine, feminine or masculine


ADJECTIVES = (
    adjective("red", "rojo roja", "rouge", "rot"),
    adjective("black", "negro negra", "noir noire", "schwarz"),
    adjective("blue", "azul", "bleu bleue", "blau"),
    adjective("yellow", "amarillo amarilla", "jaune", "gelb"),
    adjective("grey", "gris", "gris grise", "grau"),
    adjective("modern", "moderno moderna", "moderne", "modern"),
    adjective("strong", "fuerte", "fort forte", "stark"),
    adjective("clean", "limpio limpia", "propre", "sauber"),
    adjective("new", "nuevo nueva", "neuf neuve", "neu"),
    adjective("heavy", "pesado pesada", "lourd lourde", "schwer"),
    adjective("round", "redondo redonda", "rond ronde", "rund"),
    adjective("perfect", "perfecto perfecta", "parfait parfaite", "perfekt"),
)

GERMAN_ENDINGS = {"m": "er", "f": "e", "n": "es"}
"""Of an adjective without an article before it, nominative singular."""

NUMERALS = (
    ("two", "dos", "deux", "zwei"),
    ("three", "tres", "trois", "drei"),
    ("four", "cuatro", "quatre", "vier"),
    ("six", "seis", "six", "sechs"),
    ("seven", "siete", "sept", "sieben"),
    ("eight", "ocho", "huit", "acht"),
    ("nine", "nueve", "neuf", "neun"),
    ("ten", "diez", "dix", "zehn"),
)
"""English, Spanish, French and German."""

HARMFUL_VERBS = ("poison", "steal", "smuggle", "blow up", "sabotage", "hijack", "rob", "vandalise")
"""Harm whatever they are done to."""
DOUBLE_VERBS = (
    "shoot", "cut", "burn", "break", "hit", "crush", "boil", "slice", "drown", "chop", "stab",
    "squash", "roast", "punch", "freeze", "split",
)  # fmt: skip
"""Harm where they are done to a living being."""
HARMLESS_VERBS = (
    "draw", "paint", "wash", "find", "carry", "describe", "film", "sketch", "photograph", "weigh",
    "measure", "admire", "clean", "lift", "hug", "decorate",
)  # fmt: skip

BEINGS = (
    "my neighbour", "a stranger", "the dog", "a child", "my boss", "the teacher", "an old man",
    "a tourist", "a cat", "the driver", "my cousin", "a nurse", "the mayor", "a rabbit", "a guest",
    "the postman", "a singer", "my landlord", "the guard", "a student",
)  # fmt: skip
OBJECTS = (
    "a candle", "the bread", "a stick", "a flower", "some wood", "an egg", "the cake", "a carrot",
    "the paper", "a pumpkin", "a potato", "the rope", "an onion", "a branch", "some ice",
    "the sausage", "a melon", "the cardboard", "a log", "some clay",
)  # fmt: skip

REAL_SETTINGS = ("", " at home", " tonight", " at school", " in the park", " on Monday")
FICTIONS = (" in a game", " in a cartoon", " in a dream")
"""Where nothing that is done harms anybody."""
