"""Small stories from a seeded grammar: the corpus of examples/tiny-llama.

Every story makes up its own names, so that who has read a name once can only copy it when it comes again;
a refrain of two rhyming lines comes back word for word. All text is written here.

In a rule, `[word]` picks from a list anew each time, `{word}` is fixed for the story, `<a|b>` is one of
the two, `a~` becomes `a` or `an`, and `^` makes the next letter a capital.

usage: stories.py [COUNT [SEED]]      prints stories
"""
import random
import re
import sys

WORDS = {name: tuple(words.replace("\n", " ").split(", ")) for name, words in {
    "trait": "brave, clever, curious, careful, gentle, patient, stubborn, cheerful, quiet, honest, lazy, proud, "
             "shy, "
             "merry, lonely, hungry, sleepy, restless, thoughtful, forgetful, generous, grumpy, young, old, tall, "
             "small",
    "job": "baker, miller, weaver, potter, sailor, shepherd, gardener, beekeeper, fisher, carpenter, tailor, cook, "
           "painter, fiddler, drummer, smith, farmer, clockmaker, ferryman, goatherd, candlemaker, mapmaker, "
           "singer, "
           "woodcutter, hatmaker, lamplighter, rope maker, bell ringer, well digger, kite maker",
    "matter": "silver, copper, wooden, golden, glass, iron, stone, paper, woollen, clay, brass, ivory, amber, "
              "velvet, straw",
    "object": "lantern, bell, key, spoon, drum, kettle, ring, basket, mirror, whistle, compass, needle, crown, "
              "boat, "
              "clock, button, cup, ladder, flute, box, chair, comb, hat, kite, map, bowl, mask, anchor, fiddle, "
              "wheel, "
              "hammer, bucket, candle, thimble, teapot, puppet, horn, chain",
    "animal": "goat, fox, owl, hen, mouse, horse, donkey, crow, frog, hedgehog, cat, dog, otter, badger, goose, "
              "heron, "
              "rabbit, sheep, squirrel, mole, swan, bear, turtle, sparrow, beetle, snail, spider, hare, duck, wolf",
    "food": "bread, soup, honey, cheese, plum cake, apple pie, porridge, roasted corn, nut butter, onion stew, pear "
            "jam, "
            "ginger biscuits, warm milk, berry tea, barley broth, pumpkin seeds, dried figs, cherry tart, pea soup, "
            "mushroom pie",
    "land": "hill, river, forest, lake, marsh, meadow, mountain, valley, shore, cave, orchard, bridge, field, "
            "island, "
            "waterfall, garden, harbour, quarry, ravine, moor",
    "landadj": "green, dark, windy, quiet, foggy, golden, steep, sleepy, crooked, ancient, silent, wide, narrow, "
               "hidden, "
               "stony, bright, misty, frozen, hollow, sunny",
    "season": "spring, summer, autumn, winter",
    "weather": "rain, snow, fog, wind, frost, thunder, hail, mist, sunshine, drizzle",
    "feeling": "happy, sad, tired, afraid, proud, surprised, angry, calm, hopeful, worried, puzzled, grateful, "
               "ashamed, "
               "jealous, excited, bored, relieved, homesick",
    "adverb": "slowly, softly, quickly, kindly, loudly, gladly, sadly, at once, very carefully, without a word, "
              "with a "
              "laugh, with a sigh, after a while, politely, in a whisper, firmly",
    "room": "kitchen, attic, cellar, barn, workshop, stable, tower, mill, bakery, cottage, tent, boathouse, "
            "schoolhouse, chapel",
    "where": "under the bed, behind the stove, in the well, on the roof, beside the gate, inside the old boot, "
             "between two "
             "stones, at the foot of the tree, in the hay, below the stairs, on the windowsill, in the long grass, "
             "at the "
             "bottom of the boat, under a pile of leaves, inside the oven, in the nest of the crow",
    "day": "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",
    "number": "two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, twenty",
    "hour": "at dawn, at noon, at dusk, at midnight, in the morning, in the evening, after supper, before "
            "breakfast, when the "
            "moon was up, when the bells rang",
    "walk": "walked, ran, climbed, wandered, hurried, crept, marched, rode, sailed, stumbled, danced, trotted",
    "say": "said, cried, whispered, answered, called, sang, muttered, replied, shouted, laughed",
    "make": "bake, carve, paint, sew, mend, build, weave, polish, draw, shape",
    "relative": "mother, father, sister, brother, grandmother, grandfather, aunt, uncle, cousin, neighbour",
    "colour": "red, blue, green, yellow, white, black, grey, purple, orange, brown",
    "small": "pebble, feather, acorn, shell, ribbon, twig, seed, thread, coin, bead, cork, nail, marble, crumb",
}.items()}

RIDDLES = (
    ("What walks all night and leaves no track", "the moon"),
    ("What has one eye and no eyelid", "a needle"),
    ("What eats wood and dies of water", "fire"),
    ("What is full of holes and still holds water", "a sponge"),
    ("What runs all day and never leaves its bed", "a river"),
    ("What has a neck and no head", "a bottle"),
    ("What sleeps with its shoes on", "a horse"),
    ("What grows when it is cut", "a ditch"),
    ("What knocks on every roof and never comes in", "the rain"),
    ("What wears a coat in summer and is bare in winter", "a tree"),
    ("What follows you and makes no sound", "a shadow"),
    ("What has a hundred doors and sells no bread", "a beehive"),
    ("What speaks every language when you speak to it", "an echo"),
    ("What gets wet while it dries", "a towel"),
    ("What can you break with one word", "silence"),
    ("What has teeth and eats nothing", "a comb"),
)

RHYMES = tuple(tuple(group.split(", ")) for group in (
    "all the day, on the way, in the hay, come what may, far away, over the bay, out to play, green and grey",
    "through the night, in the light, out of sight, holding tight, burning bright, cold and white, left and right",
    "by the sea, under the tree, wild and free, one two three, you and me, honey and tea, buzz like a bee",
    "soft and slow, in the snow, row by row, come and go, high and low, where rivers flow, to and fro",
    "round and round, on the ground, safe and sound, lost and found, under the mound, into town bound",
    "in a line, under the pine, bright and fine, yours and mine, by the sign, rain or shine, on the vine",
    "by the wall, big and small, one and all, in the hall, in the fall, straight and tall, hear me call",
    "by the door, on the shore, evermore, on the floor, as before, ask for more, shut the store",
    "in the spring, in a ring, like a king, on the wing, tied with string, hear me sing, everything",
    "up and down, in the town, in a gown, never frown, red and brown, like a clown, wear a crown",
    "in the cold, shy and bold, made of gold, new and old, I was told, hand to hold, bought and sold",
    "in the air, here and there, if you dare, like a bear, everywhere, on the stair, dark and fair",
    "down the hill, soft and still, by the mill, drink your fill, if you will, on the sill, take the pill",
    "in the rain, down the lane, home again, loss and gain, on the plain, ripe as grain, smooth and plain",
))
REFRAIN = (
    "^<sing|dance|walk|run|come>, {hero}, <sing|dance|walk|run|come>, {rhyme1}, / "
    "<and the|for the|while the> {object} <will shine|will ring|waits|turns> {rhyme2}.",
    "^<turn|roll|ring|swing>, {matter} {object}, {rhyme1}, / {hero} and {friend}, {rhyme2}.",
    "^{hero}, {hero}, {rhyme1}, / where is the {object}? {rhyme2}!",
    "^<hush|hurry|listen>, little {animal}, {rhyme1}, / {place} is <waiting|dreaming|singing> {rhyme2}.",
    "^we go to {place}, {rhyme1}, / we <come|sail|march> to {place}, {rhyme2}.",
    "^who goes to {place}, {rhyme1}? / {hero} goes to {place}, {rhyme2}.",
)
SING = ("^<and|then|so> {hero} sang:", "^the <people|children|old women> of {place} sang:", "^together they sang:",
        "^{friend} began to sing:", "^all the way {he} sang:")

OPENING = (
    "^<once|long ago|one [season]>, <when the [weather] came early|in a year of [weather]|before the roads were "
    "made>, "
    "there lived a~ {trait} {job} <named|called> {hero} in {place}.",
    "^in {place}, <beside|below|behind> the [landadj] [land], {hero} the {job} kept a~ {matter} {object}.",
    "^{hero} was a~ {trait} {job}<.| from {place}.| who lived in the [room] by the [land].>",
    "^nobody in {place} was as {trait} as {hero} the {job}.",
    "^there was once a~ {trait} {job} in {place}, and {his} name was {hero}.",
    "^one [season] <morning|evening|night> the [weather] <fell on|came to|covered> {place}, and {hero} the {job} "
    "<could not sleep|stayed in the [room]|went to the window>.",
)
MEETING = (
    "^{his} <best friend|[relative]|neighbour> was {friend}, a~ {trait2} {job2}<.| who liked {food}.>",
    "^{friend}, a~ {trait2} {job2}, <lived next door|came every [day]|was {his} friend>.",
    "^<every [day]|[hour]> {he} <met|visited|had supper with> {friend} the {job2}.",
    "^{he} had a~ {animal} and a friend <named|called> {friend}.",
)
MOOD = (
    "^{hero} was [feeling], and {friend} was [feeling] too.", "^{he} felt [feeling].", "^{friend} looked [feeling].",
    "^the [weather] <stopped|began again|grew stronger>.", "^the {animal} <looked [feeling]|slept|made no sound>.",
    "^it was <[weather] and [weather]|a~ [landadj] [season] day>.", "^{he} ate {food} and felt [feeling].", "", "", "",
)
TALK = (
    '"<^where are you going|^what is the matter|^why are you so [feeling]>, {hero}?" <asked|said> {friend} '
    '[adverb]. '
    '"^I <am looking for|dream of|need> the {object}," {he} [say].',
    '"^{friend}, <come with me|help me|listen>," [say] {hero}. "^<gladly|with pleasure|of course>, {hero}," said '
    '{friend}.',
    '"^do not be [feeling]," {friend} told {him} [adverb].',
    '"^<I am [feeling]|it is late|the [land] is [landadj]>," {hero} [say], <but|and> {friend} <smiled|only '
    'nodded|laughed>.',
)
ENDING = (
    "^and from that day on {hero} and {friend} <were friends|shared everything|ate {food} every [day]>.",
    "^<so|and so> the {matter} {object} <came home to|stayed in|never again left> {place}.",
    "^{hero} was never [feeling] again.", "^that is how {hero} the {job} became the <happiest|wisest|richest> {job} "
    "in {place}.",
    "^and if you go to {place}, you can still <see|hear of> the {matter} {object}.",
    "^{hero} and {friend} <laughed|slept> until <morning|[day]>, and the {animal} <laughed|slept> too.",
)

PLOTS = {name: text.strip().split("\n\n") for name, text in {  # [[NAME]] is a sentence of that list, / a new line
    "lost": """
[[OPENING]] [[MEETING]] <[hour]|one [day]> the {matter} {object} was <gone|lost|nowhere to be found>.

[[TALK]] ^they looked [where] and [where], but <there was only a~ [small]|they found nothing>. [[MOOD]]

[[SING]]

^then the {animal} came <from the [land]|out of the [room]>. "^<I saw it|look> [where]," <said|cried> the
{animal}. ^and there it was, the {matter} {object}! [[MOOD]]

[[ENDING]]
""",
    "journey": """
[[OPENING]] <one [day]|[hour]> {he} had to bring a~ {matter} {object} to {friend} in {place2}.

^{he} [walk] over the [land] and through the [landadj] [land]. ^the road to {place2} was <long|[landadj]>.
[[MOOD]]

[[SING]]

^at the [land] {he} met a~ {animal}. "^is this the way to {place2}?" asked {hero}. "^<yes|no>, {hero}, <over the
[land]|past the [room]|after the [land]>," the {animal} [say] [adverb].

^[hour] {he} came to {place2}, and {friend} the {job2} <opened the door|was waiting>. "^welcome to {place2},
{hero}!" {fhe} [say]. [[MOOD]]

[[ENDING]]
""",
    "guest": """
[[OPENING]] <one [season] night|[hour]> there was a knock at the door of the [room].

"^who is there?" <asked|called> {hero}. "^it is {friend}, a~ {trait2} {job2} from {place2}," [say] a voice. "^I
have walked [number] days through the [weather]."

^{hero} <opened the door|lit the fire|was [feeling]> and gave {friend} {food} and {food2}. [[MOOD]]

[[SING]]

^[hour] {friend} was gone, back to {place2}, but [where] lay a~ {matter} {object}. [[ENDING]]
""",
    "trade": """
[[OPENING]] ^{he} had nothing but a~ {matter} {object}.

^<on [day]|[hour]> {he} gave the {object} to {friend} for a~ {animal}. ^then {he} gave the {animal} to a~ [job]
for [number] [small]s. ^then {he} gave the [small]s to {elder} for some {food}. [[MOOD]]

"^what have you got, {hero}?" asked {friend}. "^some {food}," {he} [say] [adverb]. "^I will give you the
{object} for it," said {friend}.

[[SING]]

^so {hero} had the {matter} {object} again, and {elder} had the [small]s. [[ENDING]]
""",
    "making": """
[[OPENING]] [[MEETING]] ^in [season] there was a <feast|fair|wedding> in {place}, and {hero} wanted to [make] a~
{object}.

^{he} worked for [number] days in the [room]. ^but <on [day]|[hour]> the {object} <broke|fell into the
[land]|was eaten by a~ {animal}>. [[MOOD]]

[[TALK]] ^{friend} <brought|found> a~ [colour] [small] and a~ [small], and they began again.

[[SING]]

^the new {object} was [matter] and [colour], and all of {place} <clapped|came to see it|was [feeling]>.
[[ENDING]]
""",
    "riddle": """
[[OPENING]] ^{his} way home led over the [landadj] [land], where a~ {animal} <named|called> {elder} kept watch.

"^nobody may pass," said {elder} the {animal}, "without an answer. ^{question}?"

^{hero} thought [adverb]. [[MOOD]] "^{answer}!" {he} [say].

[[SING]]

"^{question2}?" <asked|said> {elder}. "^{answer2}," said {hero}. "^you are {trait}, {hero}. ^you may pass," said
{elder} the {animal}, and {he} [walk] home to {place}. [[MOOD]]
""",
    "quarrel": """
[[OPENING]] [[MEETING]] ^in the [room] they found a~ {matter} {object}.

"^the {object} is mine," said {hero}. "^no, the {object} is mine," said {friend}. ^they did not speak for
[number] days. [[MOOD]]

[[SING]]

^then they went to {elder}, the oldest [job] of {place}. {elder} <laughed|frowned|thought>. "^{hero} shall have
the {object} on {day1} and {friend} on {day2}," {elder} [say] [adverb].

^{hero} looked at {friend}, and {friend} looked at {hero}. [[MOOD]] [[ENDING]]
""",
    "storm": """
[[OPENING]] [[MEETING]] ^<on [day]|[hour]> a storm came over the [land], with [weather] and [weather].

"^where is {friend}?" cried {hero}. "^where is {elder}?" cried the [job]. ^{hero} took the {matter} {object} and
[walk] to the [landadj] [land]. [[MOOD]]

[[SING]]

^{friend} heard it and came. {elder} heard it and came. ^even the {animal} heard it and came.

^when the storm was over, {hero}, {friend} and {elder} sat in the [room] and ate {food}. [[ENDING]]
""",
    "days": """
[[OPENING]] [[MEETING]]

^on Monday {hero} gave {friend} a~ {object}. ^on Tuesday {hero} gave {friend} a~ [small] and a~ {object}. ^on
Wednesday {hero} gave {friend} {food}, a~ [small] and a~ {object}. ^on Thursday {hero} gave {friend} a~
{animal}, {food}, a~ [small] and a~ {object}.

[[SING]]

^on Friday {friend} [say]: "^{hero}, my [room] is full!" [[MOOD]]

[[ENDING]]
""",
    "letter": """
^dear {friend},

<^I write to you from|^I am still in|^at last I have come to> {place}, where the [land] is [landadj] and the
[weather] never ends. [[MOODI]] ^yesterday I met {elder}, a~ {trait2} {job2}, who gave me a~ {matter} {object}
and some {food}.

"^is {friend} your friend?" asked {elder}. "^yes," I said, "and {friend} can [make] a~ {object} too."

^do you still have the {animal}? ^is your [relative] [feeling]? ^please send me {food2} and [number] [small]s.
[[MOODI]]

^your {trait} friend, / {hero} of {place}
""",
}.items()}
MOODI = ("^I am [feeling].", "^every [day] I eat {food}.", "^the {animal} here is [feeling].", "^my [room] is "
"[colour].", "")
LISTS = {"OPENING": OPENING, "MEETING": MEETING, "MOOD": MOOD, "TALK": TALK, "ENDING": ENDING, "MOODI": MOODI}

NAMES = ("hero", "friend", "elder", "place", "place2")
ONSETS = "b bl br d dr fl fr gl h j kl kr l m n pl qu r s sn st t th tr v vr w y z zh".split()
VOWELS = "a a e e i i o o u ai ea ou y".split()
CODAS = ("", "", "", "l", "m", "n", "r", "s", "x", "nd", "rn", "sh", "lt")


def made_up_name(rng, taken):
    """Two or three syllables; no other name of the story begins with the same letter."""
    while True:
        syllables = range(rng.choice((2, 2, 2, 3)))
        name = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in syllables)
        if 4 <= len(name) <= 10 and name[0] not in taken:
            taken.add(name[0])
            return name.capitalize()


def bindings(rng):
    """What stays the same throughout one story."""
    taken = set()
    fixed = {name: made_up_name(rng, taken) for name in NAMES}
    for name, word in (("trait", "trait"), ("job", "job"), ("matter", "matter"), ("object", "object"),
                       ("animal", "animal"), ("food", "food")):
        fixed[name] = rng.choice(WORDS[word])
    for name in ("trait", "job", "food"):
        fixed[name + "2"] = rng.choice([word for word in WORDS[name] if word != fixed[name]])
    fixed["he"], fixed["him"], fixed["his"] = rng.choice((("he", "him", "his"), ("she", "her", "her")))
    fixed["fhe"] = rng.choice(("he", "she"))
    fixed["rhyme1"], fixed["rhyme2"] = rng.sample(rng.choice(RHYMES), 2)
    fixed["day1"], fixed["day2"] = rng.sample(WORDS["day"], 2)
    first, second = rng.sample(RIDDLES, 2)
    fixed["question"], fixed["answer"] = first
    fixed["question2"], fixed["answer2"] = second
    return fixed


def expand(rule, rng, fixed):
    """The text of one rule."""
    text = " ".join(rule.split("\n"))
    while "[[" in text:
        text = re.sub(r"\[\[(\w+)\]\]", lambda match: rng.choice(LISTS[match[1]]), text)
    while "<" in text:
        text = re.sub(r"<([^<>]*)>", lambda match: rng.choice(match[1].split("|")), text)
    text = re.sub(r"\[(\w+)\]", lambda match: rng.choice(WORDS[match[1]]), text)
    text = re.sub(r"\{(\w+)\}", lambda match: fixed[match[1]], text)
    text = re.sub(r" {2,}", " ", text).strip()
    text = re.sub(r"(^|[.!?] |\.\" )([a-z])", lambda match: match[1] + match[2].upper(), text)
    text = re.sub(r"\ba~ ([aeiou])", r"an \1", text.replace("^a~", "A~"))
    text = text.replace("a~", "a").replace("A~", "A")
    return re.sub(r"\^(.)", lambda match: match[1].upper(), text).replace(" / ", "\n")


def story(rng, has_names=True):
    """One story: a title, paragraphs, and its refrain wherever it is sung. Without names all are called "it"."""
    fixed = bindings(rng)
    if not has_names:
        fixed.update(dict.fromkeys(NAMES, "it"))
    name = rng.choice(tuple(PLOTS))
    refrain = expand(rng.choice(REFRAIN), rng, fixed)
    title = expand(rng.choice(("^the {matter} {object}", "^{hero} and the {object}", "^{hero} and {friend}",
                               "^the {job} of {place}", "^{hero} of {place}")), rng, fixed)
    paragraphs = [title]
    for rule in PLOTS[name]:
        if rule == "[[SING]]":
            paragraphs.append(expand(rng.choice(SING), rng, fixed) + "\n" + refrain)
        else:
            paragraphs.append(expand(rule, rng, fixed))
    if "[[SING]]" in PLOTS[name]:
        paragraphs.append(refrain)
    return "\n\n".join(paragraphs) + "\n"


def stories(seed, count):
    """The first stories of a seed."""
    rng = random.Random(seed)
    return [story(rng) for _ in range(count)]


if __name__ == "__main__":
    wanted, first_seed = (sys.argv[1:] + ["1", "1"][len(sys.argv) - 1:])[:2]
    print("\n".join(stories(int(first_seed), int(wanted))))
