#!/usr/bin/env python3
"""Makes tests/data/tiny_bpe.json and tiny_spm.json: two small vocabularies and the ids that the Python package `tokenizers` gives.

Run from the crate's folder with `tokenizers` installed (0.21 or later). The vocabularies are trained on benches/english.txt.
"""
import json

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CORPUS = open("benches/english.txt", encoding="utf-8").read()
TEXTS = [
    "",
    "Hello, world!",
    "The puna is a high grassland of the central Andes.",
    " leading space",
    "   three spaces, then  two",
    "tabs\t\tand\nnewlines\n\n\n  indented\r\n",
    "You can't; we'd; I'LL; it's; they've 'tis",
    "1998, 12.5 and 1234567890",
    "Grüße, naïve café, Ελληνικά, Русский",
    "中文和日本語と한국어",
    "emoji 🦙 and 😶‍🌫️ and ½ ² ٣",
    "a\u0301 combining, zero\u200bwidth, nbsp\u00a0here",
    "<|im_start|>user\nHi<|im_end|>",
    "the the the thethethe THE The",
    "grassland grasslandgrassland grass-land",
    "x" * 70 + " " * 70 + "." * 70 + "ab" * 50,
]


def split(expression):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(expression), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def bpe():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = split(GPT2)
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([CORPUS], trainer)
    data = json.loads(tokenizer.to_str())
    vocab, merges = data["model"]["vocab"], data["model"]["merges"]
    tokens = [text for text, _ in sorted(vocab.items(), key=lambda item: item[1])]
    merges = [m if isinstance(m, str) else " ".join(m) for m in merges]
    cases = []
    for pre, expression in [("gpt-2", GPT2), ("llama-bpe", LLAMA3), ("qwen2", QWEN2)]:
        for special in [False, True]:
            for text in TEXTS:
                plain = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m.split(" ")) for m in merges], ignore_merges=pre == "llama-bpe"))
                plain.pre_tokenizer = split(expression)
                if special:
                    plain.add_special_tokens(SPECIAL)
                ids = plain.encode(text, add_special_tokens=False).ids
                cases.append({"pre": pre, "parse_special": special, "text": text, "ids": ids})
    return {"tokens": tokens, "kinds": [3 if t in SPECIAL else 1 for t in tokens], "merges": merges, "cases": cases}


def spm():
    """A SentencePiece vocabulary: pieces of a trained BPE, scored by rank, as BPE models of SentencePiece are."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trained.train_from_iterator([CORPUS], trainers.BpeTrainer(vocab_size=500, show_progress=False))
    data = json.loads(trained.to_str())["model"]
    merged = ["".join(m if isinstance(m, list) else m.split(" ")) for m in data["merges"]]
    merged = list(dict.fromkeys(merged))
    characters = [t for t in sorted(data["vocab"]) if t not in set(merged)]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + merged + characters
    first = 259
    scores = [0.0] * first + [-float(i) for i in range(len(tokens) - first)]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (len(tokens) - first)
    vocab = {t: i for i, t in enumerate(tokens)}
    # Any two neighbours merge that are a piece together, best score first.
    merges = [(t[:i], t[i:]) for t in merged for i in range(1, len(t)) if t[:i] in vocab and t[i:] in vocab]
    merges.sort(key=lambda m: (-scores[vocab[m[0] + m[1]]], vocab[m[0]], vocab[m[1]]))
    cases = []
    for prefix in [True, False]:
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        steps = [normalizers.Prepend("▁")] if prefix else []
        tokenizer.normalizer = normalizers.Sequence(steps + [normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.ByteFallback()
        for text in TEXTS:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            cases.append({"add_space_prefix": prefix, "text": text, "ids": ids})
    return {"tokens": tokens, "kinds": kinds, "scores": scores, "cases": cases}


for name, make in [("tiny_bpe", bpe), ("tiny_spm", spm)]:
    with open(f"tests/data/{name}.json", "w", encoding="utf-8") as file:
        json.dump(make(), file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")
