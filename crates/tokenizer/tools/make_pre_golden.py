#!/usr/bin/env python3
"""Makes src/pre/splits.json: how the Python package `tokenizers` cuts texts by the expressions of some pre-tokenizers.

Run from the crate's folder with `tokenizers` installed (0.21 or later). Each text is followed by the lengths of its pieces in
characters.
"""
import json
import random

from tokenizers import Regex, pre_tokenizers

O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|NUMBERS| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
HEAD, TAIL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
DEEPSEEK = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
EXPRESSIONS = {
    "afmoe": [
        r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
        "[一-\u9fff㐀-\u4dbf\uf900-\ufaff\u3040-ゟ゠-ヿ･-ﾟ⼀-\u2fdf\u0e40-\u0e7f\u0e80-\u0effក-\u17ffက-႟ꩠ-ꩿꧠ-\ua9ff가-\ud7afᄀ-ᇿ]+",
        DEEPSEEK,
    ],
    "gemma4": [r"[^\n]+|[\n]+"],
    "kimi-k2": [
        r"[\p{Han}]+"
        rf"|[^\r\n\p{{L}}\p{{N}}]?{HEAD}*{TAIL}+{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?{HEAD}+{TAIL}*{CONTRACTIONS}"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", O200K.replace("NUMBERS", r"\p{N}{1,3}")],
    "whitespace": [r"\S+"],
    "youtu": [
        "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-\u303f︰-\ufe4f]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+",
        O200K.replace("NUMBERS", r"\p{N}"),
    ],
}
TEXTS = [
    "Hello, world! It's 1234567 o'clock.",
    "getUserName iPhone XMLHttpRequest helloWorld",
    "12 123 1234 12345 123456 1234567abc 12_345 1234\u200d 1234Ⓐ 1234\u0301",
    "1,234,567.89 and ٣٤٥٦٧ and ½1234 1234½ ⅧⅨ12",
    "中文和English混排，日本語のテキスト。한국어 문장입니다！ㄅㄆㄇ ㄱㄴ",
    "〇一二三 々〻 ⺀⼀ 㐀 𠀀 ｶﾅ ไทย ລາວ ខ្មែរ မြန်မာ",
    "  indented\n\n\tcode();\r\n// comment /// path/to/file\n",
    "DON'T don't I'LL we'Re 'tis ''s",
    "emoji 🦙🦙 👩‍👩‍👧 …“quoted”—dash ‘x’：；，、。",
    "naïve café Ελληνικά Русский हिन्दी عربي",
    " ",
    "   ",
    "\n",
    "\n\n\n",
    "a\n\nb \n c",
    "\u3000\u00a0\u2028x",
    "ǅabc ʰx \u0301\u0301abc A\u0301b",
    "x=1;y=[22,333,4444];z<<55555",
]
ATOMS = list("aZéÉ中々〇⺀あ한ㄱㄅไ1239٣½ \n\r\t'.,/_—、") + ["\u0301", "'s", "'LL", "  ", "\r\n", "123", "4567", "\u200d", "Ⓐ", "word", "Word", "…"]


def main():
    rng = random.Random(7)
    texts = TEXTS + ["".join(rng.choice(ATOMS) for _ in range(rng.randrange(3, 24))) for _ in range(120)]
    golden = {}
    for name, expressions in EXPRESSIONS.items():
        splitter = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(e), "isolated") for e in expressions])
        golden[name] = []
        for text in texts:
            pieces = [piece for piece, _ in splitter.pre_tokenize_str(text)]
            assert "".join(pieces) == text
            golden[name].append([len(piece) for piece in pieces])
    with open("src/pre/splits.json", "w", encoding="utf-8") as file:
        json.dump({"texts": texts, "lengths": golden}, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


main()
