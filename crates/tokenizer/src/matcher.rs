//! Finds special tokens in text: leftmost, longest first, in one pass.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::TokenId;
use crate::vocabulary::{TokenKind, Vocabulary};

/// A part of a text: a special token, or text in between (a byte range).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    Token(TokenId),
    Text(Range<usize>),
}

/// A trie of the texts of control, unknown and user-defined tokens.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    /// Node after the first byte of a text, 0 for none.
    roots: Vec<u32>,
    nodes: Vec<Node>,
    edges: FxHashMap<(u32, u8), u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    token: Option<TokenId>,
    /// User-defined: matched in every text, not only where special tokens are parsed.
    everywhere: bool,
    takes_spaces_after: bool,
}

impl Matcher {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Self {
        let mut matcher = Self {
            roots: vec![0; 256],
            nodes: vec![Node::default()],
            edges: FxHashMap::default(),
        };
        for (number, &kind) in vocabulary.kinds.iter().enumerate() {
            let everywhere = kind == TokenKind::UserDefined;
            if !everywhere && !matches!(kind, TokenKind::Control | TokenKind::Unknown) {
                continue;
            }
            // A text that is not UTF-8 cannot occur in a text that is.
            let text = vocabulary.tokens.get(number).map(std::str::from_utf8);
            let Some(Ok(text)) = text else {
                continue;
            };
            let takes_spaces_after = vocabulary.special_tokens_take_spaces_after
                && !matches!(text, "<unk>" | "<s>" | "<|endoftext|>");
            matcher.insert(
                text.as_bytes(),
                Node {
                    token: Some(TokenId(number as u32)),
                    everywhere,
                    takes_spaces_after,
                },
            );
        }
        matcher
    }

    fn insert(&mut self, text: &[u8], node: Node) {
        let mut at = 0;
        for &byte in text {
            let fresh = self.nodes.len() as u32;
            let next = if at == 0 {
                let Some(root) = self.roots.get_mut(usize::from(byte)) else {
                    return;
                };
                if *root == 0 {
                    *root = fresh;
                }
                *root
            } else {
                *self.edges.entry((at, byte)).or_insert(fresh)
            };
            if next == fresh {
                self.nodes.push(Node::default());
            }
            at = next;
        }
        // The empty text would match everywhere; of equal texts the first token stays.
        if let Some(last) = self.nodes.get_mut(at as usize)
            && at != 0
            && last.token.is_none()
        {
            *last = node;
        }
    }

    /// Cuts `text` at special tokens. Control and unknown tokens count only where they lie within one of `regions` (ascending,
    /// apart from each other); user-defined tokens count everywhere.
    pub(crate) fn split(&self, text: &str, regions: &[Range<usize>]) -> Vec<Fragment> {
        let mut fragments = Vec::new();
        let mut regions = regions.iter().peekable();
        let bytes = text.as_bytes();
        let mut text_start = 0;
        let mut pos = 0;
        while let Some(&byte) = bytes.get(pos) {
            let root = self.roots.get(usize::from(byte)).copied().unwrap_or(0);
            if root == 0 {
                pos += 1;
                continue;
            }
            while regions.next_if(|region| region.end <= pos).is_some() {}
            let special_until = regions
                .peek()
                .map_or(0, |r| if r.start <= pos { r.end } else { 0 });
            let Some((node, end)) = self.longest(bytes, pos, root, special_until) else {
                pos += 1;
                continue;
            };
            if text_start < pos {
                fragments.push(Fragment::Text(text_start..pos));
            }
            fragments.extend(node.token.map(Fragment::Token));
            pos = end;
            if node.takes_spaces_after {
                while bytes.get(pos).is_some_and(u8::is_ascii_whitespace) {
                    pos += 1;
                }
            }
            text_start = pos;
        }
        if text_start < bytes.len() {
            fragments.push(Fragment::Text(text_start..bytes.len()));
        }
        fragments
    }

    fn longest(
        &self,
        bytes: &[u8],
        pos: usize,
        root: u32,
        special_until: usize,
    ) -> Option<(Node, usize)> {
        let mut best = None;
        let mut at = root;
        let mut end = pos + 1;
        loop {
            let node = *self.nodes.get(at as usize)?;
            if node.token.is_some() && (node.everywhere || end <= special_until) {
                best = Some((node, end));
            }
            let next = bytes.get(end).and_then(|&byte| self.edges.get(&(at, byte)));
            match next {
                Some(&next) => at = next,
                None => return best,
            }
            end += 1;
        }
    }
}
