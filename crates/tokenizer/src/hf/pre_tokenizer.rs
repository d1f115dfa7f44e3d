//! Which of the pre-tokenizers of GGUF files a `tokenizer.json` has: found by its steps, which are written in few ways.

use serde_json::Value;

use super::HfError;
use super::error::shown;
use super::tokenizer_json::{pattern, pre_tokenizer_steps, type_of};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const DIGIT: &str = r"\p{N}";
const TRIPLES: &str = r"\p{N}{1,3}";
const CJK: &str = r"[一-龥ࠀ-一가-퟿]+";
const CJK_AND_KANA: &str = r"[一-龥\u3040-ゟ゠-ヿ]+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O_ONE_DIGIT: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK_WORDS: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;

/// A pre-tokenizer: its name, whether it belongs to vocabularies in which whole words win over merges, and its steps. A step is a regular expression; other kinds of steps are written as the expression that cuts the same.
struct Row {
    name: &'static str,
    ignore_merges: bool,
    steps: &'static [&'static str],
}

const fn whole_words(name: &'static str, steps: &'static [&'static str]) -> Row {
    Row {
        name,
        ignore_merges: true,
        steps,
    }
}

const fn merges(name: &'static str, steps: &'static [&'static str]) -> Row {
    Row {
        name,
        ignore_merges: false,
        steps,
    }
}

#[rustfmt::skip]
static ROWS: &[Row] = &[
    merges("gpt-2", &[GPT2]),
    merges("starcoder", &[DIGIT, GPT2]),
    whole_words("llama-bpe", &[LLAMA3]),
    merges("dbrx", &[LLAMA3]),
    whole_words("minicpm5", &[TRIPLES, r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    merges("qwen2", &[QWEN2]),
    merges("qwen35", &[r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    merges("ufakzeka", &[r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    merges("seed-coder", &[r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    merges("laguna", &[r"[^\n]+|[\n]+", QWEN2]),
    merges("jais-2", &[r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"]),
    merges("exaone-moe", &[r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"]),
    merges("deepseek-coder", &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, DIGIT]),
    merges("deepseek-v3", &[TRIPLES, CJK_AND_KANA, DEEPSEEK_WORDS]),
    merges("gpt-4o", &[GPT4O]),
    whole_words("granite-embed-multi-97m", &[GPT4O]),
    whole_words("tekken", &[r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    merges("kimi-k2", &[r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]),
    merges("superbpe", &[r"\p{N}+", r"(?=(\d{3})+(?!\d))"]),
    merges("tiny_aya", &[r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O]),
    whole_words("youtu", &["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u{3040}-ゟ゠-ヿ]+", GPT4O_ONE_DIGIT]),
    merges("bloom", &[r" ?[^(\s|[.,!?…。，、।۔،])]+"]),
    merges("bloom", &[r" ?[^(\s|.,!?…。，、।۔،)]+"]),
    merges("viking", &[r" ?[^(\s|[.,!?…。，、।۔،])]+", DIGIT]),
    merges("viking", &[r" ?[^(\s|.,!?…。，、।۔،)]+", DIGIT]),
    merges("falcon", &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
];

/// The name in GGUF files, with what is special about a vocabulary.
pub(super) fn name(json: &Value, ignore_merges: bool) -> Result<&'static str, HfError> {
    let steps = expressions(json)?;
    let row = ROWS.iter().find(|row| {
        row.ignore_merges == ignore_merges
            && row
                .steps
                .iter()
                .map(|step| canonical(step))
                .eq(steps.iter().cloned())
    });
    row.map(|row| row.name).ok_or_else(|| {
        let mut found = steps.join("\n");
        if ignore_merges {
            found.push_str("\n(whole words win over merges)");
        }
        HfError::UnknownPreTokenizer { found }
    })
}

/// The steps as regular expressions, each in one way of writing. What does not cut is left out.
fn expressions(json: &Value) -> Result<Vec<String>, HfError> {
    let mut found = Vec::new();
    for step in pre_tokenizer_steps(json) {
        let unknown = || HfError::UnknownPreTokenizer { found: shown(step) };
        let expression = match type_of(step) {
            "Split" => {
                // Matches and what is between them are both pieces; an inverted pattern that is kept says the same.
                let isolated = step["behavior"].as_str() == Some("Isolated");
                let inverted = step["behavior"].as_str() == Some("Removed")
                    && step["invert"].as_bool() == Some(true);
                let is_regex = step["pattern"].get("Regex").is_some();
                match pattern(step).filter(|_| (isolated || inverted) && is_regex) {
                    Some(pattern) => canonical(pattern),
                    None => return Err(unknown()),
                }
            }
            "Digits" if step["individual_digits"].as_bool() == Some(true) => canonical(DIGIT),
            "ByteLevel" => {
                if step["add_prefix_space"].as_bool() == Some(true) {
                    return Err(HfError::Unsupported {
                        file: super::tokenizer_json::FILE,
                        what: "a space before text",
                        found: shown(step),
                    });
                }
                if step["use_regex"].as_bool() == Some(false) {
                    continue;
                }
                canonical(GPT2)
            }
            "Punctuation" if step["behavior"].as_str() == Some("Contiguous") => {
                canonical(r"[\p{P}\$\+<=>\^~\|`]+")
            }
            _ => return Err(unknown()),
        };
        found.push(expression);
    }
    Ok(found)
}

/// One way of writing an expression of which there are several.
fn canonical(expression: &str) -> String {
    const SUFFIXES: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)";
    let mut text = expression
        .replace(
            r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
            SUFFIXES,
        )
        .replace(r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])", SUFFIXES)
        .replace(r"'(?i:[sdmt]|ll|ve|re)", SUFFIXES)
        .replace(r"\p{N}{1}", r"\p{N}")
        // Nothing that follows could match what these give up, so holding on to it changes nothing.
        .replace("?+", "?")
        .replace("++", "+")
        // Spaces up to the last newline either way.
        .replace(r"\s*[\r\n]|", r"\s*[\r\n]+|")
        .replace("\\u3040", "\u{3040}");
    // Newlines are written as such in some files.
    text = text.replace('\r', "\\r").replace('\n', "\\n");
    // A single group around the whole expression says nothing.
    if let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'))
        && !inner.starts_with('?')
        && !inner.contains(['(', ')'])
    {
        text = inner.to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pre::PreTokenizer;

    #[test]
    fn every_name_is_one_of_a_gguf_pre_tokenizer() {
        for row in ROWS {
            let pre = PreTokenizer::by_name(row.name);
            let pre = pre.unwrap_or_else(|| panic!("{}", row.name));
            assert_eq!(row.ignore_merges, pre.ignore_merges, "{}", row.name);
        }
    }

    #[test]
    fn an_expression_is_recognized_in_every_way_of_writing() {
        let json = |pattern: &str| {
            serde_json::json!({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
                {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
            ]}})
        };
        assert_eq!(name(&json(QWEN2), false).unwrap(), "qwen2");
        let other = QWEN2.replace(
            "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
            "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
        );
        assert_eq!(name(&json(&other), false).unwrap(), "qwen2");
        let ling = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+";
        assert_eq!(name(&json(ling), false).unwrap(), "qwen2");
        assert_eq!(name(&json(LLAMA3), true).unwrap(), "llama-bpe");
        assert_eq!(name(&json(LLAMA3), false).unwrap(), "dbrx");
        let error = name(&json(r"\w+"), false).unwrap_err().to_string();
        assert!(error.contains(r"\w+"), "{error}");
    }
}
