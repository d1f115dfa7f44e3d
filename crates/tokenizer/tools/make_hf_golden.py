#!/usr/bin/env python3
"""Makes tests/data/hf: small tokenizers as files of the hub, and the ids that the Python packages give with them.

Run from the crate's folder with `tokenizers` (0.21 or later), `sentencepiece`, `protobuf` and `pyrwkv_tokenizer` installed. Every
tokenizer is a folder with its files and `golden.json`: texts with their ids, and for strings made of random atoms a checksum of
the ids of every hundred (the same strings are made in tests/hf_golden.rs).
"""
import base64
import json
import os
import random
import shutil

import pyrwkv_tokenizer
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = "tests/data/hf"
CORPUS = open("benches/english.txt", encoding="utf-8").read()
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEXTS = [
    "",
    " ",
    "   ",
    "Hello, world!",
    "The puna is a high grassland of the central Andes.",
    " leading and trailing  ",
    "two  spaces   three",
    "def f(x):\n\treturn x**2  # comment\r\n",
    "You can't; we'd; I'LL",
    "1998, 12.5 and 1234567890",
    "Grüße, naïve café, ΕΛΛΗΝΙΚΆΣ, Русский, İstanbul, ẞ",
    "中文和日本語と한국어",
    "हिन्दी ไทย العربية עברית",
    "emoji 🦙 and 😶‍🌫️ and ½ ² ٣ ㍿ ﬁ ①",
    "a\u0301 e\u0301 zero\u200bwidth soft\u00adhyphen nbsp\u00a0here\ufeff",
    "\x00\x01\x07\x1b\x7f\x85 control \ufffd",
    "grassland grasslandgrassland grass-land",
    "x" * 99 + " " + "x" * 100 + " " + "x" * 101,
    "$+<=>^`|~ $1.00 a+b=c",
    "▁marked ▁▁ text",
]
ATOMS = (
    list("abcdeghilnorstuyABTEÉéüßИяΣσİ中文日本あカ한글각ก1290½²Ⅷ.,!?'-_/()#$+▁")
    + [" ", " ", " ", "  ", "the", " and", "grass", "land", "ing", " puna", "Andes", "\u0301", "\u0327", "🦙", "👩‍👧", "ﬁ", "①", "㍿", "\u200b", "\u00ad", "\u3000", "\x07", "　"]
)
NEWLINES = ["\n", "\t", "\r\n", "\u00a0", "\u0085"]
STRINGS = 10000


class Random:
    def __init__(self):
        self.state = 0x9E3779B97F4A7C15

    def below(self, n):
        x = self.state
        x ^= (x << 13) & (1 << 64) - 1
        x ^= x >> 7
        x ^= (x << 17) & (1 << 64) - 1
        self.state = x
        return (x >> 33) % n


def strings(atoms):
    rng = Random()
    for _ in range(STRINGS):
        yield "".join(atoms[rng.below(len(atoms))] for _ in range(rng.below(12)))


def checksum(sums, ids):
    for number in ids + [0xFFFFFFFF]:
        sums = ((sums ^ number) * 0x100000001B3) & (1 << 64) - 1
    return sums


def golden(folder, encode, special=False, texts=TEXTS, atoms=ATOMS + NEWLINES):
    sums = []
    for i, text in enumerate(strings(atoms)):
        if i % 100 == 0:
            sums.append(0xCBF29CE484222325)
        sums[-1] = checksum(sums[-1], encode(text))
    data = {
        "special": special,
        "cases": [{"text": text, "ids": encode(text)} for text in texts],
        "atoms": atoms,
        "sums": [f"{s:016x}" for s in sums],
    }
    write(folder, "golden.json", json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")


def write(folder, name, content):
    os.makedirs(f"{OUT}/{folder}", exist_ok=True)
    mode = "wb" if isinstance(content, bytes) else "w"
    with open(f"{OUT}/{folder}/{name}", mode, **({} if mode == "wb" else {"encoding": "utf-8"})) as file:
        file.write(content)


def save(folder, tokenizer, config=None, **options):
    write(folder, "tokenizer.json", tokenizer.to_str() + "\n")
    if config:
        write(folder, "tokenizer_config.json", json.dumps(config) + "\n")
    golden(folder, lambda text: tokenizer.encode(text, add_special_tokens=False).ids, special=True, **options)


def wordpiece(folder, lowercase):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    alphabet = [c for c in dict.fromkeys("".join(ATOMS)) if not c.isspace()]
    trainer = trainers.WordPieceTrainer(vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([CORPUS], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    save(folder, tokenizer, {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]"})
    if lowercase:
        vocab = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        write("wordpiece-txt", "vocab.txt", "".join(f"{text}\n" for text, _ in vocab))
        write("wordpiece-txt", "tokenizer_config.json", json.dumps({"do_lower_case": True, "unk_token": "[UNK]"}) + "\n")
        shutil.copy(f"{OUT}/{folder}/golden.json", f"{OUT}/wordpiece-txt/golden.json")


def byte_level(folder, expression, ignore_merges, add_bos):
    special = ["<|bos|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if expression is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        split = pre_tokenizers.Split(Regex(expression), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([CORPUS], trainer)
    tokenizer.decoder = decoders.ByteLevel()
    if add_bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<|bos|> $A", special_tokens=[("<|bos|>", 0)])
    save(folder, tokenizer, {"bos_token": "<|bos|>", "eos_token": {"content": "<|im_end|>"}}, texts=TEXTS + ["<|im_start|>user\nHi<|im_end|>"])
    if expression is None:
        model = json.loads(tokenizer.to_str())["model"]
        write("bpe-plain-files", "vocab.json", json.dumps(model["vocab"], ensure_ascii=False))
        merges = "".join(" ".join(m) + "\n" for m in model["merges"])
        write("bpe-plain-files", "merges.txt", "#version: 0.2\n" + merges)
        write("bpe-plain-files", "added_tokens.json", json.dumps({t: i for i, t in enumerate(special)}))
        golden("bpe-plain-files", lambda text: tokenizer.encode(text, add_special_tokens=False).ids)


def marked(folder, prefix):
    """BPE over characters, as `tokenizers` trains it; with `prefix`, its merges are completed to what `SentencePiece` does."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trained.train_from_iterator([CORPUS.replace("\n", " ")], trainers.BpeTrainer(vocab_size=400, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(m) for m in model["merges"]]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + sorted(model["vocab"], key=model["vocab"].get)
    vocab = {text: i for i, text in enumerate(tokens)}
    if prefix:
        merged = list(dict.fromkeys("".join(m) for m in merges))
        merges = [(t[:i], t[i:]) for t in merged for i in range(1, len(t)) if t[:i] in vocab and t[i:] in vocab]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    steps = [normalizers.Prepend("▁")] if prefix else []
    tokenizer.normalizer = normalizers.Sequence(steps + [normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    save(folder, tokenizer, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"})


def words(folder):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator([CORPUS], trainer)
    save(folder, tokenizer, {"unk_token": "<unk>"})


RULES = {
    "\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u3000": " ", "\u0085": " ", "\x07": "", "\u00ad": "", "\u200b": " ",
    "ﬁ": "fi", "①": "1", "㍿": "株式会社", "½": "1\u20442", "²": "2", "Ⅷ": "VIII", "e\u0301": "é", "a\u0301": "á", "E\u0301": "É", "…": "...",
    "ก\u0301": "x y",
}  # fmt: skip


def sentence_piece(folder, kind, rules=True, **options):
    write(folder, "rules.tsv", "".join(
        " ".join(f"{ord(c):X}" for c in k) + "\t" + " ".join(f"{ord(c):X}" for c in v) + "\n" for k, v in RULES.items()
    ))  # fmt: skip
    write(folder, "corpus.txt", CORPUS)
    prefix = f"{OUT}/{folder}/tokenizer"
    normalization = {"normalization_rule_tsv": f"{OUT}/{folder}/rules.tsv"} if rules else {"normalization_rule_name": "identity"}
    sentencepiece.SentencePieceTrainer.train(
        input=f"{OUT}/{folder}/corpus.txt", model_prefix=prefix, model_type=kind, vocab_size=options.pop("vocab_size", 300),
        hard_vocab_limit=False, num_threads=1, minloglevel=2, **normalization, **options
    )  # fmt: skip
    for name in ["rules.tsv", "corpus.txt", "tokenizer.vocab"]:
        os.remove(f"{OUT}/{folder}/{name}")
    processor = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    golden(folder, lambda text: processor.encode(text))
    return processor


def unigram(folder):
    """Unigram of `tokenizers`, with the rules and pieces of a `SentencePiece` file. No rule joins characters: there the two differ."""
    proto = sentencepiece_model_pb2.ModelProto()
    with open(f"{OUT}/sp-unigram/tokenizer.model", "rb") as file:
        proto.ParseFromString(file.read())
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    joining = {"\u0301", "\u0327", "\u0085", "👩‍👧", "▁"}
    texts = [t for t in TEXTS if not joining & set(t) and "‍" not in t and "\x85" not in t]
    save(folder, tokenizer, {"eos_token": "</s>", "unk_token": "<unk>"}, texts=texts, atoms=[a for a in ATOMS if a not in joining])


def rwkv(folder):
    rng = random.Random(3)
    chunks = {CORPUS[i : i + rng.randrange(2, 9)].encode() for i in (rng.randrange(len(CORPUS)) for _ in range(220))}
    chunks |= {"中文".encode(), "中".encode(), "é".encode(), "🦙".encode(), b"\n\n", b"\t\t", b"'\"", b"\\x", b"\xe4\xb8"}
    tokens = [bytes([b]) for b in range(256)] + sorted(chunks)
    os.makedirs(f"{OUT}/{folder}", exist_ok=True)
    path = f"{OUT}/{folder}/vocab.txt"
    with open(path, "w", encoding="utf-8") as file:
        for i, token in enumerate(tokens, 1):
            try:
                shown = repr(token.decode())
            except UnicodeDecodeError:
                shown = repr(token)
            file.write(f"{i} {shown} {len(token)}\n")
    tokenizer = pyrwkv_tokenizer.RWKVTokenizer(vocab_filepath=path)
    os.remove(path)
    write(folder, "tokens.json", json.dumps(["<s>"] + [repr(token)[2:-1] for token in tokens]))
    golden(folder, tokenizer.encode)


def plamo2(folder):
    """The least cost of all ways, by trying each: what the tokenizer is defined by."""
    rng = random.Random(5)
    chunks = {CORPUS[i : i + rng.randrange(1, 9)] for i in (rng.randrange(len(CORPUS)) for _ in range(300))}
    chunks |= set("中文日本éüß한글") | {"中文", "日本", "🦙", " 中", "\n\n"}
    tokens = ["<unk>", "<s>", "</s>", "<pad>"] + [f"<0x{b:02X}>" for b in range(256)] + sorted(chunks)
    scores = [0.0] * 260 + [-round(rng.uniform(2, 14), 2) for _ in chunks]
    ids = {text: i for i, text in enumerate(tokens) if i >= 260}

    def encode(text):
        text = text.removeprefix("\ufeff")
        ways = [(0, [])]  # from the end: cost and ids
        for at in range(len(text) - 1, -1, -1):
            best = None
            for length in range(min(10, len(text) - at), 0, -1):
                piece = text[at : at + length]
                if piece in ids:
                    cost, rest = ways[len(text) - at - length]
                    cost += -round(scores[ids[piece]] * 1e4)
                    if best is None or cost < best[0]:
                        best = (cost, [ids[piece]] + rest)
            cost, rest = ways[len(text) - at - 1]
            if best is None or cost + 10_000_000 < best[0]:
                best = (cost + 10_000_000, [4 + b for b in text[at].encode()] + rest)
            ways.append(best)
        return ways[-1][1]

    write(folder, "tokens.json", json.dumps({"tokens": tokens, "scores": scores}, ensure_ascii=False))
    golden(folder, encode)


if __name__ == "__main__":
    shutil.rmtree(OUT, ignore_errors=True)
    wordpiece("wordpiece-uncased", True)
    wordpiece("wordpiece-cased", False)
    byte_level("bpe-gpt2", None, False, False)
    byte_level("bpe-llama3", LLAMA3, True, True)
    marked("bpe-complete-merges", True)
    marked("bpe-merges", False)
    words("bpe-words")
    sentence_piece("sp-unigram", "unigram")
    sentence_piece("sp-unigram-bytes", "unigram", byte_fallback=True, vocab_size=556, remove_extra_whitespaces=False)
    sentence_piece("sp-bpe", "bpe", rules=False, byte_fallback=True, vocab_size=556, remove_extra_whitespaces=False)
    unigram("unigram")
    rwkv("rwkv")
    plamo2("plamo2")
