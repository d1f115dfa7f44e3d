//! Checks every pre-tokenizer against the regular expressions that the field writes for it.

use fancy_regex::Regex;

use super::{PRE_TOKENIZERS, PreTokenizer};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// `(?i:...)` would also match the long s, which none of the engines in use treats alike.
const CONTRACTIONS: &str = "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]";
const LLAMA3_REST: &str = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const CJK_AND_KANA: &str = r"[一-龥\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+";
const ASCII_PUNCTUATION_WORD: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"##;
const CASED: &str = r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽ]+";

fn o200k(numbers: &str, suffix: &str) -> String {
    let (head, tail) = (r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}");
    let before = r"[^\r\n\p{L}\p{N}]?";
    format!(
        r"{before}[{head}]*[{tail}]+{suffix}|{before}[{head}]+[{tail}]*{suffix}|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
}

fn deepseek_word() -> String {
    format!(
        r"{ASCII_PUNCTUATION_WORD}|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+| ?[\p{{P}}\p{{S}}]+"
    )
}

/// The expressions for the first name of each row of the table, applied one after the other.
fn expressions(name: &str) -> Vec<String> {
    let llama3 = |numbers: &str| {
        format!(r"(?:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{numbers}{LLAMA3_REST}")
    };
    let strings = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect();
    let deepseek_word = deepseek_word();
    match name {
        "default" => strings(&[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]),
        "falcon" => strings(&[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
        "gpt-2" => strings(&[GPT2]),
        "smollm" => strings(&[r"\p{N}", GPT2]),
        "llama-bpe" | "dbrx" | "glm4" => vec![llama3(r"\p{N}{1,3}")],
        "minicpm5" => vec![r"\p{N}{1,3}".into(), llama3(r"\p{N}+")],
        "qwen2" => vec![llama3(r"\p{N}")],
        "qwen35" => vec![format!(
            r"(?:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )],
        "ufakzeka" => vec![format!(r"[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{LLAMA3_REST}")],
        "seed-coder" => vec![format!(
            r"(?:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"
        )],
        "laguna" => vec![r"[^\n]+|[\n]+".into(), llama3(r"\p{N}")],
        "jais-2" => vec![
            llama3(r"\p{N}{1,3}").replace(
                r"\s+(?!\S)|\s+",
                r"\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}",
            ),
        ],
        "exaone-moe" => vec![format!(
            r"(?:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
        )],
        "deepseek-llm" => strings(&[
            r"[\r\n]",
            CASED,
            r"\s?[!-/:-~！-／：-～‘-‟\x{3000}-。]+",
            r"\s+$",
            r"[一-龥\x{800}-一가-\x{D7FF}]+",
            r"\p{N}+",
        ]),
        "deepseek-coder" => strings(&[
            r"[\r\n]",
            r"\s?\p{L}+",
            r"\s?\p{P}+",
            r"[一-龥\x{800}-一가-\x{D7FF}]+",
            r"\p{N}",
        ]),
        "deepseek-v3" => vec![
            r"\p{N}{1,3}".into(),
            CJK_AND_KANA.into(),
            format!(r"{deepseek_word}[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
        ],
        "spark2_5" => vec![
            r"\p{N}{1,3}".into(),
            CJK_AND_KANA.into(),
            format!(r"{deepseek_word}|[\r\n]|\s+(?!\S)|\s+"),
            r"\p{N}".into(),
        ],
        "gpt-4o" | "granite-embed-multi-97m" => vec![o200k(r"\p{N}{1,3}", &format!("(?:{CONTRACTIONS})?"))],
        "tekken" => vec![o200k(r"\p{N}", "")],
        "bloom" => strings(&[" ?[^(\\s|.,!?…。，、।۔،)]+"]),
        "viking" => strings(&[" ?[^(\\s|.,!?…。，、।۔،)]+", r"\p{N}"]),
        "chameleon" => strings(&[
            "<sentinel:[0-9]+>",
            "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
            r"([\t\n]|    |  )",
            r"\p{N}",
            r"[\p{P}!-/:-@\[-`{-~]",
            GPT2,
        ]),
        other => more_expressions(other),
    }
}

/// The expressions of names that [`expressions`] leaves to this list.
fn more_expressions(name: &str) -> Vec<String> {
    let strings = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect();
    let deepseek_word = deepseek_word();
    match name {
        "afmoe" => vec![
            r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))".into(),
            "[一-鿿㐀-䶿\u{F900}-\u{FAFF}\u{3040}-ゟ゠-ヿ･-ﾟ⼀-\u{2FDF}เ-\u{E7F}\u{E80}-\u{EFF}ក-\u{17FF}က-႟ꩠ-ꩿꧠ-\u{A9FF}가-\u{D7AF}ᄀ-ᇿ]+"
                .into(),
            format!(r"{deepseek_word}[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
        ],
        "gemma4" | "sarvam-moe" => strings(&[r"[^\n]+|[\n]+"]),
        "kimi-k2" => {
            let head = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]";
            let tail = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]";
            let before = r"[^\r\n\p{L}\p{N}]?";
            vec![format!(
                r"[\p{{Han}}]+|{before}{head}*{tail}+(?:{CONTRACTIONS})?|{before}{head}+{tail}*(?:{CONTRACTIONS})?|\p{{N}}{{1,3}}{LLAMA3_REST}"
            )]
        }
        "superbpe" => strings(&[r"\p{N}+", r"(?=(\d{3})+(?!\d))"]),
        "tiny_aya" => vec![
            // `\b` at the end, by what the engine of the field takes for a word.
            r"\d{1,3}(?=(?:\d{3})*(?![\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼-¾]))".into(),
            o200k(r"\p{N}{1,3}", &format!("(?:{CONTRACTIONS})?")),
        ],
        "whitespace" => strings(&[r"\S+"]),
        "youtu" => vec![
            "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-\u{303F}\u{FE30}-\u{FE4F}]+|[ㄅ-ㄯ]+|[一-龥\u{3040}-ゟ゠-ヿ]+".into(),
            o200k(r"\p{N}", &format!("(?:{CONTRACTIONS})?")),
        ],
        other => panic!("`{other}` has no expression to check against"),
    }
}

/// Matches, and the text between matches, of each expression inside the pieces of the one before.
fn split_by_expressions<'t>(expressions: &[Regex], text: &'t str) -> Vec<&'t str> {
    let mut pieces = vec![text];
    for expression in expressions {
        let mut cut = Vec::new();
        for piece in pieces {
            let mut end = 0;
            for found in expression.find_iter(piece) {
                let found = found.unwrap();
                cut.push(&piece[end..found.start()]);
                cut.push(found.as_str());
                end = found.end();
            }
            cut.push(&piece[end..]);
        }
        cut.retain(|piece| !piece.is_empty());
        pieces = cut;
    }
    pieces
}

fn split<'t>(pre: &PreTokenizer, text: &'t str) -> Vec<&'t str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    pre.split(text, &mut |piece| {
        let end = start + piece.len();
        assert_eq!(&text[start..end], piece, "pieces follow each other");
        pieces.push(&text[start..end]);
        start = end;
    });
    assert_eq!(start, text.len(), "the pieces of {text:?} are the text");
    pieces
}

fn check(pre: &PreTokenizer, expressions: &[Regex], text: &str) {
    let name = pre.names[0];
    assert_eq!(
        split(pre, text),
        split_by_expressions(expressions, text),
        "`{name}` cuts {text:?}"
    );
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }
}

/// At least one character of every class and of every literal in the expressions.
const ATOMS: &[&str] = &[
    "a",
    "b",
    "Z",
    "É",
    "é",
    "ǅ",
    "ʰ",
    "中",
    "龥",
    "あ",
    "カ",
    "한",
    "ก",
    "Б",
    "\u{301}",
    "\u{94D}",
    "1",
    "2",
    "9",
    "٣",
    "½",
    "²",
    " ",
    " ",
    " ",
    "  ",
    "    ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\u{a0}",
    "\u{3000}",
    "\u{85}",
    "'",
    "'s",
    "'S",
    "'Re",
    "'ll",
    "'d",
    "'x",
    ".",
    ",",
    "!",
    "(",
    "|",
    "/",
    "`",
    "$",
    "+",
    "^",
    "~",
    "-",
    "_",
    "…",
    "。",
    "।",
    "，",
    "‘",
    "！",
    "😀",
    "€",
    "\u{200d}",
    "\u{0}",
    "\u{10FFFF}",
    "<sentinel:",
    "<sentinel:12>",
    "IMGIMG",
    "IMGIMGABZ",
    "IMGIMGABCDEZ",
    "〇",
    "⺀",
    "々",
    "ㄅ",
    "ㆍ",
    "ไ",
    "ꩠ",
    "—",
    "123456",
    "Ⓐ",
    "Ⅷ",
    "Hello",
    " world",
    "DON'T",
    "iPhone",
];

#[test]
fn splitters_equal_the_expressions_of_the_field() {
    for pre in PRE_TOKENIZERS {
        let expressions: Vec<Regex> = expressions(pre.names[0])
            .iter()
            .map(|e| Regex::new(e).unwrap())
            .collect();
        for a in ATOMS {
            for b in ATOMS {
                check(pre, &expressions, &format!("{a}{b}"));
            }
        }
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        for _ in 0..4000 {
            let mut text = String::new();
            for _ in 0..random.below(14) {
                let atom = ATOMS[random.below(ATOMS.len())];
                for _ in 0..=(random.below(8) / 6) * random.below(5) {
                    text.push_str(atom);
                }
            }
            check(pre, &expressions, &text);
        }
        for len in 0..40 {
            check(pre, &expressions, &format!("a{}b", " ".repeat(len)));
            check(pre, &expressions, &"\t".repeat(len));
        }
        for len in [511, 512, 513, 514, 1025, 1300] {
            check(pre, &expressions, &format!("a{}b", " ".repeat(len)));
        }
    }
}

#[test]
fn names_are_known_once() {
    let mut names: Vec<&str> = PRE_TOKENIZERS
        .iter()
        .flat_map(|pre| pre.names)
        .copied()
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(PreTokenizer::by_name("Llama-BPE").is_none());
}

#[test]
fn splitters_equal_the_python_package() {
    // See `tools/make_pre_golden.py`.
    let data: serde_json::Value = serde_json::from_str(include_str!("splits.json")).unwrap();
    let lengths = data["lengths"].as_object().unwrap();
    for (name, lengths) in lengths {
        let pre = PreTokenizer::by_name(name).unwrap();
        let texts = data["texts"].as_array().unwrap();
        for (text, lengths) in texts.iter().zip(lengths.as_array().unwrap()) {
            let text = text.as_str().unwrap();
            let found: Vec<usize> = split(pre, text).iter().map(|p| p.chars().count()).collect();
            let expected: Vec<u64> = lengths
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_u64().unwrap())
                .collect();
            assert!(
                found.iter().map(|&n| n as u64).eq(expected.iter().copied()),
                "`{name}` cuts {text:?} into {found:?}, not {expected:?}"
            );
        }
    }
}
