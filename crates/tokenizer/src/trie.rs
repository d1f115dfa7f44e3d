//! Finds which texts of a set begin at a place: a byte trie whose children lie side by side.

use crate::error::TokenizerError;

const NONE: u32 = u32::MAX;

/// A trie from texts to numbers. Of equal texts the first stays; the empty text is not found.
#[derive(Clone, Debug)]
pub(crate) struct Trie {
    nodes: Vec<Node>,
    /// Last byte of the text of each node.
    labels: Vec<u8>,
    /// Child of the root by byte.
    roots: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    first_child: u32,
    children: u32,
    value: u32,
}

/// A place in a trie: the text that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u32);

/// The texts below a node that is still to be given its children.
struct Open {
    node: usize,
    texts: std::ops::Range<usize>,
    depth: usize,
}

impl Trie {
    const ROOT: Place = Place(0);

    /// A trie of texts with their numbers.
    pub(crate) fn new<'t>(
        texts: impl IntoIterator<Item = (&'t [u8], u32)>,
    ) -> Result<Self, TokenizerError> {
        let mut texts: Vec<(&[u8], u32)> =
            texts.into_iter().filter(|(t, _)| !t.is_empty()).collect();
        texts.sort();
        texts.dedup_by_key(|(text, _)| *text);
        let empty = Node {
            first_child: 0,
            children: 0,
            value: NONE,
        };
        let mut trie = Self {
            nodes: vec![empty],
            labels: vec![0],
            roots: vec![NONE; 256],
        };
        let mut open = std::collections::VecDeque::from([Open {
            node: 0,
            texts: 0..texts.len(),
            depth: 0,
        }]);
        while let Some(Open {
            node,
            texts: mut below,
            depth,
        }) = open.pop_front()
        {
            let first_child = trie.nodes.len();
            while let Some((text, value)) = texts.get(below.clone()).and_then(<[_]>::first) {
                let Some(&label) = text.get(depth) else {
                    // The text of the node itself: it is the shortest, and so the first.
                    if let Some(node) = trie.nodes.get_mut(node) {
                        node.value = *value;
                    }
                    below.start += 1;
                    continue;
                };
                let rest = texts.get(below.clone()).unwrap_or_default();
                let same = rest.partition_point(|(t, _)| t.get(depth) == Some(&label));
                open.push_back(Open {
                    node: trie.nodes.len(),
                    texts: below.start..below.start + same,
                    depth: depth + 1,
                });
                trie.nodes.push(empty);
                trie.labels.push(label);
                below.start += same;
            }
            let last = trie.nodes.len();
            if last >= NONE as usize {
                return Err(TokenizerError::TooLarge {
                    what: "bytes of tokens",
                    found: last,
                    limit: NONE as usize - 1,
                });
            }
            if let Some(node) = trie.nodes.get_mut(node) {
                node.first_child = first_child as u32;
                node.children = (last - first_child) as u32;
            }
        }
        for byte in 0..=u8::MAX {
            let child = trie.child(Self::ROOT, byte);
            if let Some(slot) = trie.roots.get_mut(usize::from(byte)) {
                *slot = child.map_or(NONE, |place| place.0);
            }
        }
        Ok(trie)
    }

    fn child(&self, place: Place, byte: u8) -> Option<Place> {
        let node = self.nodes.get(place.0 as usize)?;
        let (first, count) = (node.first_child as usize, node.children as usize);
        let labels = self.labels.get(first..first + count)?;
        let at = labels.binary_search(&byte).ok()?;
        Some(Place((first + at) as u32))
    }

    /// The place after one more byte.
    #[inline]
    fn step(&self, place: Place, byte: u8) -> Option<Place> {
        if place != Self::ROOT {
            return self.child(place, byte);
        }
        let child = *self.roots.get(usize::from(byte))?;
        (child != NONE).then_some(Place(child))
    }

    /// The number of the text that leads to a place.
    #[inline]
    fn value(&self, place: Place) -> Option<u32> {
        let value = self.nodes.get(place.0 as usize)?.value;
        (value != NONE).then_some(value)
    }

    /// Calls `found(length, number)` for every text that `bytes` begins with, the shortest first.
    #[inline]
    pub(crate) fn prefixes(&self, bytes: &[u8], mut found: impl FnMut(usize, u32)) {
        let mut place = Self::ROOT;
        for (&byte, length) in bytes.iter().zip(1..) {
            let Some(next) = self.step(place, byte) else {
                return;
            };
            place = next;
            if let Some(value) = self.value(place) {
                found(length, value);
            }
        }
    }

    /// The longest text that `bytes` begins with: its length and number.
    #[inline]
    pub(crate) fn longest(&self, bytes: &[u8]) -> Option<(usize, u32)> {
        let mut best = None;
        self.prefixes(bytes, |length, value| best = Some((length, value)));
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_that_begins_here_is_found() {
        let texts = ["b", "", "abc", "a", "ab", "a", "\u{e9}"];
        let trie = Trie::new(texts.iter().map(|t| t.as_bytes()).zip(0..)).unwrap();
        let prefixes = |text: &str| {
            let mut found = Vec::new();
            trie.prefixes(text.as_bytes(), |length, value| found.push((length, value)));
            found
        };
        assert_eq!(prefixes("abcd"), [(1, 3), (2, 4), (3, 2)]);
        assert_eq!(prefixes("abx"), [(1, 3), (2, 4)]);
        assert_eq!(prefixes("\u{e9}"), [(2, 6)]);
        assert_eq!(prefixes("\u{e8}"), []);
        assert_eq!(prefixes(""), []);
        assert_eq!(trie.longest(b"abcd"), Some((3, 2)));
        assert_eq!(trie.longest(b"x"), None);
    }
}
