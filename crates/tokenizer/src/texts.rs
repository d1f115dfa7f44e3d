//! Many byte strings in one allocation, and an index from text to number.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::error::TokenizerError;

/// A list of byte strings in one allocation: 4 bytes of overhead each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: Vec<u8>,
    /// End of each text; the first begins at 0.
    ends: Vec<u32>,
}

impl Texts {
    /// An empty list with room for `texts` texts.
    pub(crate) fn with_capacity(texts: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(texts.saturating_mul(8)),
            ends: Vec::with_capacity(texts),
        }
    }

    /// Copies texts, in order. Fails when there are more than 4 GiB of them or more than 2^32 - 1.
    pub fn collect<T: AsRef<[u8]>>(
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Self, TokenizerError> {
        let texts = texts.into_iter();
        let mut all = Self::with_capacity(texts.size_hint().0.min(1 << 20));
        for text in texts {
            all.push(&[text.as_ref()])?;
        }
        Ok(all)
    }

    /// Appends one text, given in parts.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) -> Result<(), TokenizerError> {
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        let too_large = |what, found| TokenizerError::TooLarge {
            what,
            found,
            limit: u32::MAX as usize - 1,
        };
        let end = u32::try_from(self.bytes.len())
            .map_err(|_| too_large("bytes of text", self.bytes.len()))?;
        if self.ends.len() >= u32::MAX as usize - 1 {
            return Err(too_large("texts", self.ends.len()));
        }
        self.ends.push(end);
        Ok(())
    }

    /// The number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text with a number.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)? as usize;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)? as usize,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    /// All texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|i| self.get(i))
    }
}

/// Finds the number of a text: an open-addressing table of numbers into a [`Texts`], which it does not own.
#[derive(Clone, Debug)]
pub(crate) struct TextIndex {
    /// Number + 1 and the high half of the hash; (0, 0) is free. The length is a power of two, at most half full.
    slots: Vec<(u32, u32)>,
}

impl TextIndex {
    /// A table for at most `texts` texts.
    pub(crate) fn with_capacity(texts: usize) -> Self {
        let slots = texts.saturating_mul(2).max(8).next_power_of_two();
        Self {
            slots: vec![(0, 0); slots],
        }
    }

    fn hash(text: &[u8]) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write(text);
        hasher.finish()
    }

    /// The slot of a text: where it is, or the free one where it would be.
    #[inline]
    fn probe(&self, texts: &Texts, text: &[u8], hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let tag = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        // At most half of the slots are taken, so a free one ends every search.
        while let Some(&(number, found)) = self.slots.get(at) {
            let Some(index) = number.checked_sub(1) else {
                break;
            };
            if found == tag && texts.get(index as usize) == Some(text) {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    /// Adds text number `index` of `texts`, unless an equal text is there already: the first stays.
    pub(crate) fn insert(&mut self, texts: &Texts, index: usize) {
        let Some(text) = texts.get(index) else {
            return;
        };
        let hash = Self::hash(text);
        let at = self.probe(texts, text, hash);
        if let Some(slot) = self.slots.get_mut(at)
            && slot.0 == 0
        {
            *slot = (index as u32 + 1, (hash >> 32) as u32);
        }
    }

    /// The number of a text.
    #[inline]
    pub(crate) fn get(&self, texts: &Texts, text: &[u8]) -> Option<u32> {
        let at = self.probe(texts, text, Self::hash(text));
        self.slots.get(at)?.0.checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_texts_is_found() {
        let texts = Texts::collect(["a", "", "b", "a"]).unwrap();
        let mut index = TextIndex::with_capacity(texts.len());
        for i in 0..texts.len() {
            index.insert(&texts, i);
        }
        assert_eq!(index.get(&texts, b"a"), Some(0));
        assert_eq!(index.get(&texts, b""), Some(1));
        assert_eq!(index.get(&texts, b"b"), Some(2));
        assert_eq!(index.get(&texts, b"c"), None);
        assert_eq!(
            texts.iter().collect::<Vec<_>>(),
            [&b"a"[..], b"", b"b", b"a"]
        );
    }
}
