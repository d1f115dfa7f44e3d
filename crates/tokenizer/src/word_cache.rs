//! A small cache from word to token ids: text repeats its words.

/// Longest word that is kept, in bytes.
const KEY: usize = 23;
/// Most tokens of a word that is kept.
const IDS: usize = 5;
const SLOTS: usize = 1 << 13;

#[derive(Clone, Copy)]
struct Slot {
    /// The word, zeros, and its length in the last byte. No word is empty, so zero is free.
    key: [u64; 3],
    ids: [u32; IDS],
    len: u32,
}

/// Direct-mapped: a word has one place, and the latest word has it.
pub(crate) struct WordCache {
    slots: Vec<Slot>,
}

/// A word in the form that is compared, and its place.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    words: [u64; 3],
    slot: usize,
}

impl Default for WordCache {
    fn default() -> Self {
        let free = Slot {
            key: [0; 3],
            ids: [0; IDS],
            len: 0,
        };
        Self {
            slots: vec![free; SLOTS],
        }
    }
}

impl WordCache {
    /// The key of a word; `None` when it is too long to be kept, or empty.
    #[inline]
    pub(crate) fn key(word: &[u8]) -> Option<Key> {
        let mut bytes = [0; KEY + 1];
        bytes
            .get_mut(..word.len())
            .filter(|room| room.len() <= KEY && !room.is_empty())?
            .copy_from_slice(word);
        bytes[KEY] = word.len() as u8;
        let mut words = [0; 3];
        for (to, from) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *to = from.try_into().map_or(0, u64::from_le_bytes);
        }
        let [a, b, c] = words;
        let mixed = (a.rotate_left(5) ^ b)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29)
            .wrapping_add(c)
            .wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let slot = (mixed >> 40) as usize % SLOTS;
        Some(Key { words, slot })
    }

    /// The ids of a word, when they are known.
    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&[u32]> {
        let slot = self.slots.get(key.slot)?;
        if slot.key != key.words {
            return None;
        }
        slot.ids.get(..slot.len as usize)
    }

    /// Keeps the ids of a word, unless there are too many.
    #[inline]
    pub(crate) fn put(&mut self, key: Key, ids: &[u32]) {
        let Some(slot) = self.slots.get_mut(key.slot) else {
            return;
        };
        if let Some(room) = slot.ids.get_mut(..ids.len()) {
            room.copy_from_slice(ids);
            slot.len = ids.len() as u32;
            slot.key = key.words;
        }
    }
}
