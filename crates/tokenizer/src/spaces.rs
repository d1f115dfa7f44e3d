//! The space that `SentencePiece` writes, and where a text may be cut at it without changing any merge.

use rustc_hash::FxHashSet;

/// What `SentencePiece` writes for a space: U+2581.
pub(crate) const SPACE: char = '▁';

/// Appends a text with every space replaced by its mark.
pub(crate) fn mark_spaces(text: &str, out: &mut String) {
    for (i, part) in text.split(' ').enumerate() {
        if i > 0 {
            out.push(SPACE);
        }
        out.push_str(part);
    }
}

/// Appends a text with every mark replaced by its space.
pub(crate) fn unmark_spaces(mut text: &[u8], out: &mut Vec<u8>) {
    const MARK: &[u8] = "▁".as_bytes();
    while let Some(&byte) = text.first() {
        if let Some(rest) = text.strip_prefix(MARK) {
            out.push(b' ');
            text = rest;
        } else {
            out.push(byte);
            text = text.get(1..).unwrap_or_default();
        }
    }
}

/// Where words end, when no merge reaches over the place: in front of a space, after a character that stands before a space in no
/// token.
#[derive(Clone, Debug)]
pub(crate) struct WordCuts {
    before_space: FxHashSet<char>,
}

impl WordCuts {
    /// Takes what [`Self::collect`] has found in every text that can come out of a merge.
    pub(crate) fn new(before_space: FxHashSet<char>) -> Self {
        Self { before_space }
    }

    /// Collects the characters other than the space that stand directly before a space in a text.
    pub(crate) fn collect(text: &[u8], found: &mut FxHashSet<char>) {
        let Ok(text) = std::str::from_utf8(text) else {
            return;
        };
        for (at, _) in text.match_indices(SPACE) {
            let before = text.get(..at).and_then(|t| t.chars().next_back());
            found.extend(before.filter(|&c| c != SPACE));
        }
    }

    /// Cuts a text with marked spaces.
    #[inline]
    pub(crate) fn cut(&self, text: &str, mut emit: impl FnMut(&str)) {
        let mut start = 0;
        for (at, _) in text.match_indices(SPACE) {
            let before = text
                .get(start..at)
                .and_then(|word| word.chars().next_back());
            if before.is_some_and(|c| c != SPACE && !self.before_space.contains(&c)) {
                emit(text.get(start..at).unwrap_or_default());
                start = at;
            }
        }
        if start < text.len() {
            emit(text.get(start..).unwrap_or_default());
        }
    }
}
