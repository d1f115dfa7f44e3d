//! Pre-tokenizers: how byte-level BPE cuts text into the words inside which it merges.
//!
//! The field writes them as lists of regular expressions. Here each family of patterns is one file of plain scanning
//! code: linear in the text, no recursion on it, no backtracking beyond one remembered position. A pre-tokenizer is a list of
//! [`Pass`]es, each cutting every piece of the pass before it. `PRE_TOKENIZERS` lists every name that `tokenizer.ggml.pre` may have.

mod afmoe;
mod bloom;
mod chameleon;
mod deepseek;
mod deepseek_v3;
mod exaone;
mod gpt2;
mod gpt4o;
mod kimi_k2;
mod llama3;
mod punctuation;
#[cfg(test)]
mod regex_tests;
mod superbpe;
mod tiny_aya;
mod whitespace;
mod youtu;

use crate::unicode::Reader;

/// Takes the pieces of a text in order; together they are the text.
pub(crate) type Emit<'e> = &'e mut dyn FnMut(&str);

/// Cuts one piece of text into pieces.
pub(crate) type Pass = fn(&str, Emit<'_>);

/// What the symbols are that a word is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Bytes, each written as a printable character in the vocabulary.
    Bytes,
    /// Characters, written as they are.
    Characters,
    /// Characters, with U+2581 for the space.
    CharactersWithMarkedSpaces,
}

/// Whether BOS comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bos {
    /// Where the metadata says so.
    #[default]
    Asked,
    /// Unless the metadata says otherwise.
    Usual,
    /// Whatever the metadata says: it is wrong in many files of these models.
    Always,
}

/// One pre-tokenizer: what a name in `tokenizer.ggml.pre` stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreTokenizer {
    /// The names that mean it.
    pub(crate) names: &'static [&'static str],
    passes: &'static [Pass],
    /// A word that is in the vocabulary is that token, whatever the merges say.
    pub(crate) ignore_merges: bool,
    pub(crate) bos: Bos,
    pub(crate) alphabet: Alphabet,
    /// A run of newlines that is in the vocabulary is that token, whatever the merges say.
    pub(crate) whole_newlines: bool,
}

const PLAIN: PreTokenizer = PreTokenizer {
    names: &[],
    passes: &[],
    ignore_merges: false,
    bos: Bos::Asked,
    alphabet: Alphabet::Bytes,
    whole_newlines: false,
};

/// What a missing `tokenizer.ggml.pre` means.
pub(crate) const DEFAULT: &str = "default";

/// Every known pre-tokenizer. The first name of the first row is the default.
pub(crate) static PRE_TOKENIZERS: &[PreTokenizer] = &[
    PreTokenizer {
        names: &[DEFAULT],
        passes: &[
            punctuation::without_backtick,
            gpt2::words,
            punctuation::number_runs,
            punctuation::digit_triples,
        ],
        ..PLAIN
    },
    PreTokenizer {
        names: &["falcon"],
        passes: &[
            punctuation::with_backtick,
            gpt2::words,
            punctuation::digit_triples,
        ],
        ..PLAIN
    },
    PreTokenizer {
        names: &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "gigachat",
            "jina-v2-es",
            "jina-v2-de",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "exaone4",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
        ],
        passes: &[gpt2::words],
        ..PLAIN
    },
    PreTokenizer {
        names: &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        passes: &[punctuation::single_numbers, gpt2::words],
        ..PLAIN
    },
    PreTokenizer {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        passes: &[llama3::three_digits],
        ignore_merges: true,
        bos: Bos::Usual,
        ..PLAIN
    },
    PreTokenizer {
        names: &["dbrx", "smaug-bpe", "chatglm-bpe"],
        passes: &[llama3::three_digits],
        ..PLAIN
    },
    PreTokenizer {
        names: &["glm4", "glm5"],
        passes: &[llama3::three_digits],
        ignore_merges: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &["minicpm5"],
        passes: &[punctuation::number_triples, llama3::any_digits],
        ignore_merges: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
            "bailingmoe",
            "bailingmoe2",
            "llada-moe",
        ],
        passes: &[llama3::one_digit],
        ..PLAIN
    },
    PreTokenizer {
        names: &["qwen35"],
        passes: &[llama3::one_digit_with_marks],
        ..PLAIN
    },
    PreTokenizer {
        names: &["ufakzeka"],
        passes: &[llama3::one_digit_without_contractions],
        ..PLAIN
    },
    PreTokenizer {
        names: &["seed-coder"],
        passes: &[llama3::one_digit_newlines_apart],
        ..PLAIN
    },
    PreTokenizer {
        names: &["laguna"],
        passes: &[punctuation::newline_runs, llama3::one_digit],
        ..PLAIN
    },
    PreTokenizer {
        names: &["jais-2"],
        passes: &[llama3::three_digits, llama3::powers_of_two_spaces],
        ..PLAIN
    },
    PreTokenizer {
        names: &["exaone-moe"],
        passes: &[exaone::phrases],
        ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-llm"],
        passes: &[
            deepseek::newlines,
            deepseek::cased_letters,
            deepseek::western_punctuation,
            deepseek::trailing_spaces,
            deepseek::cjk,
            punctuation::number_runs,
        ],
        ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-coder"],
        passes: &[
            deepseek::newlines,
            deepseek::letters,
            deepseek::punctuation,
            deepseek::cjk,
            punctuation::single_numbers,
        ],
        ..PLAIN
    },
    PreTokenizer {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        passes: &[
            punctuation::number_triples,
            deepseek_v3::cjk_and_kana,
            deepseek_v3::words,
        ],
        ..PLAIN
    },
    PreTokenizer {
        names: &["spark2_5"],
        passes: &[
            punctuation::number_triples,
            deepseek_v3::cjk_and_kana,
            deepseek_v3::words_newlines_apart,
            punctuation::single_numbers,
        ],
        ..PLAIN
    },
    PreTokenizer {
        names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        passes: &[gpt4o::words],
        ..PLAIN
    },
    PreTokenizer {
        names: &["granite-embed-multi-97m"],
        passes: &[gpt4o::words],
        ignore_merges: true,
        ..PLAIN
    },
    PreTokenizer {
        names: &["tekken"],
        passes: &[gpt4o::words_one_digit_without_contractions],
        ignore_merges: true,
        bos: Bos::Usual,
        ..PLAIN
    },
    PreTokenizer {
        names: &["bloom", "gpt3-finnish", "poro-chat"],
        passes: &[bloom::words],
        ..PLAIN
    },
    PreTokenizer {
        names: &["viking"],
        passes: &[bloom::words, punctuation::single_numbers],
        ..PLAIN
    },
    PreTokenizer {
        names: &["chameleon"],
        passes: &[
            chameleon::sentinels,
            chameleon::images,
            chameleon::blanks,
            punctuation::single_numbers,
            chameleon::single_punctuation,
            gpt2::words,
        ],
        bos: Bos::Usual,
        ..PLAIN
    },
    PreTokenizer {
        names: &["afmoe"],
        passes: &[
            afmoe::number_groups,
            afmoe::scripts_without_spaces,
            deepseek_v3::words,
        ],
        ..PLAIN
    },
    PreTokenizer {
        names: &["gemma4", "granite-embed-multi-311m"],
        passes: &[punctuation::newline_runs],
        alphabet: Alphabet::CharactersWithMarkedSpaces,
        whole_newlines: true,
        bos: Bos::Always,
        ..PLAIN
    },
    PreTokenizer {
        names: &["sarvam-moe"],
        passes: &[punctuation::newline_runs],
        alphabet: Alphabet::CharactersWithMarkedSpaces,
        ..PLAIN
    },
    PreTokenizer {
        names: &["kimi-k2"],
        passes: &[kimi_k2::words],
        ..PLAIN
    },
    PreTokenizer {
        names: &["superbpe"],
        passes: &[punctuation::number_runs, superbpe::digit_groups],
        ..PLAIN
    },
    PreTokenizer {
        names: &["tiny_aya", "cohere2moe"],
        passes: &[tiny_aya::digit_groups, gpt4o::words],
        ..PLAIN
    },
    PreTokenizer {
        names: &["whitespace"],
        passes: &[whitespace::words],
        alphabet: Alphabet::Characters,
        ..PLAIN
    },
    PreTokenizer {
        names: &["youtu"],
        passes: &[youtu::scripts, gpt4o::words_one_digit],
        ignore_merges: true,
        ..PLAIN
    },
];

impl PreTokenizer {
    /// The pre-tokenizer of a name, if it is known.
    pub(crate) fn by_name(name: &str) -> Option<&'static PreTokenizer> {
        PRE_TOKENIZERS.iter().find(|p| p.names.contains(&name))
    }

    /// All names, for an error message.
    pub(crate) fn known_names() -> String {
        let names: Vec<&str> = PRE_TOKENIZERS
            .iter()
            .flat_map(|p| p.names.iter().copied())
            .collect();
        names.join(", ")
    }

    /// Cuts a text into words.
    #[inline]
    pub(crate) fn split(&self, text: &str, emit: Emit<'_>) {
        apply(self.passes, text, emit);
    }
}

/// Applies passes one inside the other; as deep as there are passes, whatever the text.
fn apply(passes: &[Pass], text: &str, emit: Emit<'_>) {
    match passes {
        [] => emit(text),
        [pass] => pass(text, emit),
        [pass, rest @ ..] => pass(text, &mut |piece| apply(rest, piece, emit)),
    }
}

/// Emits every match of a pattern, and the text between matches, as pieces.
///
/// `end_of_match(reader, pos)` gives the end of the match that starts at `pos`, or `pos` when none starts there.
#[inline]
fn cut(text: &str, emit: Emit<'_>, end_of_match: impl Fn(Reader<'_>, usize) -> usize) {
    let reader = Reader::new(text);
    let mut gap = 0;
    let mut pos = 0;
    while pos < text.len() {
        let end = end_of_match(reader, pos);
        if end == pos {
            pos = reader.char(pos).map_or(text.len(), |(_, next)| next);
            continue;
        }
        if gap < pos {
            emit(text.get(gap..pos).unwrap_or_default());
        }
        emit(text.get(pos..end).unwrap_or_default());
        pos = end;
        gap = end;
    }
    if gap < text.len() {
        emit(text.get(gap..).unwrap_or_default());
    }
}
