"""Text from the gathered corpus: questions of strangers to say "I do not know" to, and prose to season the stories."""

import json
import lzma
import os
import re
import subprocess

from .grammar import plural
from .tables.animals import NAMES
from .tables.food import DISHES, INGREDIENTS
from .tables.things import THINGS

QUESTION_SETS = (("dolly_15k.jsonl.zst", "know"), ("opentriviaqa.jsonl.zst", "know"), ("gsm8k_train.jsonl.zst", "know"))
PROSE_SETS = ("fairytaleqa_stories.txt.zst", "storybooks_asp_pratham_en.txt.zst", "aesop_for_children.txt.zst", "lcats_gutenberg_short_stories.txt.zst", "onestopenglish_ele_int.txt.zst")
CHAT_SETS = ("tinytalks.jsonl.zst",)
_COMMON = frozenset("""rain snow wind storm thunder lightning cloud sun moon star sky water ice sea river winter summer spring fall weather day week month year hour mother father sister brother grandmother grandfather
aunt uncle cousin son daughter friend neighbor kid kids child children baby family sad happy angry tired lonely bored feel feeling thank thanks please sorry hello color red blue green yellow orange purple pink
apple apples banana bananas cookie cookies cake bread soup egg eggs milk cheese potato potatoes onion onions pizza pancake pancakes cook cooking bake dish meal eat eats food phone laptop computer browser
animal animals pet pets house kitchen garden school story poem joke opposite rhyme word letters count plus minus times fox mice wolf dragon king queen name sleep dream heart brain bone teeth light sound glass wood paper
wool honey tree trees flower flowers leaf leaves seed seeds bird birds insect fruit vegetable vegetables polite politely party birthday gift magnet music money air fire job work bag ball toy toys candy candies marbles
pencil pencils book books ate dinner lunch breakfast salad chocolate sugar salt tea coffee juice hungry boil fry""".split())
_INSIDE = _COMMON | frozenset(w for entry in [*NAMES, *(r[0] for r in THINGS), *(d[0] for d in DISHES), *INGREDIENTS] for w in (entry, plural(entry)) if " " not in w)


_SIMPLE = re.compile(r"capital of|what is a |what is an |what are |how do i (make|cook)|recipe|rainbow|opposite|ingredients|days of|months|name (a|an|some|the|two|three|four|five)|list of|potluck|joke|poem|story|fruit|vegetable|which is (bigger|larger|taller)|color|colour|how many (legs|days|hours|minutes|months)|animal|bird|dog|cat|cook|bake|food|birthday|party|friend|language is spoken|odd", re.I)


def _read(path):
    return subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout.decode()


def questions(folder):
    """`(text, source)` of first user turns that lie outside the small world; the most natural ones three times."""
    out = []
    for name, _ in QUESTION_SETS:
        for line in _read(os.path.join(folder, name)).rstrip("\n").split("\n"):
            text = json.loads(line)["messages"][0]["content"].strip()
            if not 12 <= len(text) <= 320:
                continue
            words = set(re.findall(r"[a-z]+", text.lower()))
            if _SIMPLE.search(text) or words & _INSIDE:
                continue
            source = name.split("_")[0].split(".")[0]
            if source != "gsm8k" or len(text) > 160:
                out += [(text, source)] * (3 if source == "dolly" else 1)
    return out


def prose(folder):
    """Stories and articles in plain English, whole documents."""
    out = []
    for name in PROSE_SETS:
        for doc in _read(os.path.join(folder, name)).split("<|endoftext|>"):
            doc = doc.strip()
            if len(doc) > 200:
                out.append(doc)
    return out


def pack(folder, path):
    """Writes what training needs of the corpus to one small file, JSON compressed by xz."""
    data = json.dumps({"questions": questions(folder), "prose": prose(folder)}).encode()
    with lzma.open(path, "wb", preset=6) as file:
        file.write(data)


def load(path):
    """What `pack` wrote; an empty season without a path."""
    if not path:
        return {"questions": [], "prose": []}
    with lzma.open(path) as file:
        return json.load(file)
