"""10,000 lines of mixed text: `app/model/tests/common/mixed.rs` makes the same ones from the same list of fragments.

Fragments are words of many scripts, code, emoji, numbers, white space, names of control tokens, and what broken UTF-8 becomes.
Every fourth piece is characters at random from one block of Unicode; only characters that Unicode 3.2 and today's know alike,
because every tokenizer has tables of another version.
"""

import json
import pathlib
import unicodedata

HERE = pathlib.Path(__file__).resolve().parent
FILE = HERE.parent.parent / "app" / "model" / "tests" / "golden" / "mixed.json"
LINES = 10_000

FRAGMENTS = """\
The quick brown fox| jumps| over| the| lazy| dog| Hello| World|HTTPServer|getElementById|snake_case_name|camelCaseName|SCREAMING_CASE
I'll|you've|THEY'RE|it's|'tis|don't|L'été|o'clock|'S|'ſ|''ll|we'd've|rock'n'roll|CAN'T|d'Artagnan
 0| 1|12|123|1234|12345|1234567890|3.14159|1,000,000|0xDEADbeef|1e-9|½|²³|Ⅷ|١٢٣|१२३४|２０２６|①②|年2026年|v1.2.3|10%
 |  |   |    |        |                |\t|\t\t|\n|\n\n|\n\n\n|\r\n|\r\n\r\n| \n| \n |\n  |\t\n|\u00a0|\u3000|\u2028|\u0085|\u200b|\u200d
.|,|;|:|!|?|...|…|—|–|-|--|->|=>|==|!=|<=|>=|&&|\\|\\|++|+=|**|//|/*|*/|#|##|$|@|^|~|`|```|%|_|__|"|'|“|”|‘|’|«|»|¿|¡|(|)|[|]|{|}|<|>|</|/>|\\\\|\\n|€|£|¥|₹|°|§|©|™|×|÷|±|≤|≥|≠|∞|∑|√|→|⇒
def f(x):\n    return x ** 2\n|for (int i = 0; i < n; i++) {\n|\n\t\tif (a && b) {\n|<div class="x">|</div>\n|SELECT * FROM t WHERE id = 42;|#include <stdio.h>\n|println!("{}", x);|let mut v = vec![1, 2];\n|import os\nimport sys\n|{"key": "value", "n": [1, 2.5, null]}|https://example.org/a/b?c=d&e=%20f|user@example.org|C:\\\\Users\\\\x|$ ls -la \\| grep x\n|"""
WORDS = """\
Zwölf Boxkämpfer jagen Viktor|Äpfel, Öl und Übermut|ÜBERGRÖSSE|straße|façade naïve|Ça va?|ÉCOLE|Œuvre|İstanbul ığdır|Příliš žluťoučký kůň|Łódź zażółć gęślą|Tiếng Việt|Nguyễn
Съешь же ещё|этих мягких| французских булок|ДА ВЫПЕЙ ЧАЮ|Їжак|Ελληνικά| καλημέρα|ΚΟΣΜΕ|Հայերեն|ქართული
السلام عليكم|اللُّغَة العربية|فارسی|שלום עולם|שָׁלוֹם|हिन्दी में लिखा|नमस्ते|বাংলা|தமிழ்|తెలుగు|ไทย|สวัสดีครับ|ພາສາລາວ|ភាសាខ្មែរ|မြန်မာ|བོད་སྐད
我们一起吃饭|今天是二〇二六年|，。！？、；：「」《》|日本語のテキスト|カタカナ|ひらがな|ｶﾀｶﾅ|全角ＡＢＣ|한국어 텍스트|가나다라|안녕하세요|漢字とかな混じり|繁體中文|中文English混排
e\u0301|a\u0308o\u0308u\u0308|n\u0303|क\u094d\u0937|ﬁ ﬂ|ǅ ǆ Ǆ|ß ẞ|ſ|K|Å|x\u0336y\u0336
🦙|👩\u200d👩\u200d👧|🇩🇪|👍🏽|❤\ufe0f|🍲🥄|✅|☀|♠|🤷\u200d♀\ufe0f|😀😀😀|𝒳𝓎|𝔘𝔫𝔦|𐐀𐐨|𠀀𠮷
\ufffd|\ufffd\ufffd|caf\ufffd|\u0000|\u0001\u001b[0m|\u007f|\ufeff|\u00ad|\u2581|▁▁the|\ue000|\U000f0000
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa|==========|----------|??????|......................|    \n    \n|abcabcabcabcabcabcabcabc|the the the the
<s>|</s>|<unk>|<pad>|<bos>|<eos>|<|im_start|>|<|im_end|>|<|endoftext|>|<|eot_id|>|<|begin_of_text|>|<|start_header_id|>|<|user|>|<|assistant|>|<|end|>|<think>|</think>|<start_of_turn>|<|turn>|<turn|>|<|channel>|<0x0A>|<|START_OF_TURN_TOKEN|>|<fim_prefix>|<\uff5cend\u2581of\u2581sentence\uff5c>|[INST]|[/INST]|<mask>|<|im_|[gMASK]"""


def unescape(text):
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape") if "\\" in text else text


def fragments():
    """The lists above; `|` separates, except where it is escaped or part of a token's name."""
    found = []
    for line in (FRAGMENTS + "\n" + WORDS).split("\n"):
        line = line.replace("\\|", "\ue001").replace("<|", "<\ue001").replace("|>", "\ue001>")
        found += [unescape(part).replace("\ue001", "|") for part in line.split("|") if part]
    return found


BLOCKS = [
    (0x20, 0x7E), (0xA1, 0xFF), (0x100, 0x24F), (0x250, 0x2AF), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF),
    (0x531, 0x587), (0x5B0, 0x5EA), (0x60C, 0x6D5), (0x901, 0x96F), (0x985, 0x9FA), (0xB82, 0xBF2), (0xE01, 0xE5B),
    (0xE81, 0xEDD), (0xF00, 0xFCF), (0x1000, 0x1059), (0x10A0, 0x10FB), (0x1100, 0x11F9), (0x13A0, 0x13F4),
    (0x1780, 0x17E9), (0x1E00, 0x1EF9), (0x1F00, 0x1FFE), (0x2000, 0x206F), (0x2070, 0x20B1), (0x2100, 0x2183),
    (0x2190, 0x23CE), (0x2460, 0x25FF), (0x2600, 0x27BE), (0x2E80, 0x2FD5), (0x3000, 0x303F), (0x3041, 0x30FF),
    (0x3105, 0x318E), (0x3400, 0x3600), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0xF900, 0xFA2D), (0xFB00, 0xFB4F),
    (0xFE30, 0xFE4F), (0xFF01, 0xFFE6), (0x10400, 0x1044D), (0x1D400, 0x1D7FF), (0x20000, 0x20100),
]


def ranges():
    """Of each block, the characters whose category has not changed since Unicode 3.2, as ranges."""
    old = unicodedata.ucd_3_2_0
    found = []
    for first, last in BLOCKS:
        block = []
        for code in range(first, last + 1):
            category = old.category(chr(code))
            if category != "Cn" and category == unicodedata.category(chr(code)):
                if block and block[-1][1] == code - 1:
                    block[-1][1] = code
                else:
                    block.append([code, code])
        if block:
            found.append(block)
    return found


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state + 0x9E3779B97F4A7C15) % (1 << 64)
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
        z = (z ^ z >> 27) * 0x94D049BB133111EB % (1 << 64)
        return (z ^ z >> 31) % limit


def lines():
    data = json.loads(FILE.read_text())
    blocks = [[chr(code) for first, last in block for code in range(first, last + 1)] for block in data["blocks"]]
    random = Random(data["seed"])
    found = []
    for _ in range(LINES):
        pieces = []
        for _ in range(1 + random.below(10)):
            if random.below(4) == 0:
                block = blocks[random.below(len(blocks))]
                pieces += [block[random.below(len(block))] for _ in range(1 + random.below(6))]
            else:
                pieces.append(data["fragments"][random.below(len(data["fragments"]))])
        found.append("".join(pieces))
    return found


def write():
    data = {"seed": 20261123, "fragments": fragments(), "blocks": ranges()}
    FILE.write_text(json.dumps(data, ensure_ascii=True, separators=(",", ":")) + "\n")
