//! The special tokens of a vocabulary, as texts to look for.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// What a template and this crate need to know about the vocabulary.
#[derive(Debug, Clone, Default)]
pub struct SpecialTokens {
    /// The texts of the tokens that the tokenizer recognises only where special tokens are asked for: the control tokens.
    pub texts: Vec<String>,
    /// What templates see as `bos_token`.
    pub bos: Option<String>,
    /// What templates see as `eos_token`.
    pub eos: Option<String>,
    /// Further variables that hold special tokens, such as `pad_token` and `unk_token`.
    pub named: Vec<(String, String)>,
}

/// An index over the texts of the special tokens.
#[derive(Debug, Default)]
pub(crate) struct SpecialIndex {
    by_len: BTreeMap<usize, HashSet<String>>, // byte length to texts
    first: HashSet<u8>,
    forwards: Vec<String>,     // sorted
    backwards: Vec<Vec<char>>, // reversed, sorted
    longest: usize,            // in characters
}

impl SpecialIndex {
    pub(crate) fn new(tokens: &SpecialTokens) -> Self {
        let mut index = Self::default();
        let variables = tokens.named.iter().map(|(_, text)| text);
        let all = tokens
            .texts
            .iter()
            .chain(&tokens.bos)
            .chain(&tokens.eos)
            .chain(variables);
        // Nothing but spaces has no place to carry a mark, and forges nothing.
        for text in all.filter(|text| !text.trim().is_empty()) {
            if index
                .by_len
                .entry(text.len())
                .or_default()
                .insert(text.clone())
            {
                index.first.extend(text.bytes().next());
                index.forwards.push(text.clone());
                index.backwards.push(text.chars().rev().collect());
            }
        }
        index.longest = index.backwards.iter().map(Vec::len).max().unwrap_or(0);
        index.forwards.sort_unstable();
        index.backwards.sort_unstable();
        index
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.forwards.is_empty()
    }

    /// Every place where a special token's text stands, by start and then by length; they may overlap.
    pub(crate) fn occurrences(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (start, byte) in text.bytes().enumerate() {
            if !self.first.contains(&byte) {
                continue;
            }
            for (len, texts) in &self.by_len {
                if text
                    .get(start..start + len)
                    .is_some_and(|part| texts.contains(part))
                {
                    found.push(start..start + len);
                }
            }
        }
        found
    }

    /// Whether some token's text begins with `text` and is longer.
    fn begins(&self, text: &str) -> bool {
        let at = self
            .forwards
            .partition_point(|token| token.as_str() <= text);
        self.forwards
            .get(at)
            .is_some_and(|token| token.starts_with(text))
    }

    /// Whether some token's text ends with these characters (given in reverse) and is longer.
    fn ends(&self, reversed: &[char]) -> bool {
        let at = self
            .backwards
            .partition_point(|token| token.as_slice() <= reversed);
        self.backwards
            .get(at)
            .is_some_and(|token| token.starts_with(reversed))
    }

    /// How many characters at the end of `text` could begin a special token that goes on behind it.
    pub(crate) fn open_end(&self, text: &[char]) -> usize {
        (1..=text.len().min(self.longest))
            .rev()
            .find(|&n| self.begins(&text.iter().skip(text.len() - n).collect::<String>()))
            .unwrap_or(0)
    }

    /// How many characters at the start of `text` could end a special token that began before it.
    pub(crate) fn open_start(&self, text: &[char]) -> usize {
        (1..=text.len().min(self.longest))
            .rev()
            .find(|&n| self.ends(&text.iter().take(n).rev().copied().collect::<Vec<_>>()))
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[&str]) -> SpecialIndex {
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        SpecialIndex::new(&SpecialTokens {
            texts,
            ..SpecialTokens::default()
        })
    }

    #[test]
    fn overlapping_occurrences_are_all_found() {
        let index = index(&["<a>", "<a><b>", "<b>", " "]);
        assert_eq!(index.occurrences("ü<a><b>"), [2..5, 2..8, 5..8]);
    }

    #[test]
    fn pieces_of_tokens_at_the_borders_are_found() {
        let index = index(&["<|user|>", "<s>"]);
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        for (text, start, end) in [
            ("x <|", 0, 2),
            ("|>\n", 2, 0),
            ("<s>", 0, 0),
            ("er|> <", 4, 1),
            ("", 0, 0),
        ] {
            assert_eq!(
                (index.open_start(&chars(text)), index.open_end(&chars(text))),
                (start, end),
                "{text}"
            );
        }
    }
}
