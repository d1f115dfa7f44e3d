//! From tokens to text that is certain: whole characters, and nothing that may still become a stop text.

use crate::GenerationOptions;
use puna_tokenizer::{TokenId, TokenKind, Tokenizer};
use std::{borrow::Cow, mem};

/// Bytes of tokens to text, holding back what is not certain yet.
pub(crate) struct TextStream {
    stop: Vec<String>,
    show_special: bool,
    /// Bytes not given out yet.
    held: Vec<u8>,
}

impl TextStream {
    pub(crate) fn new(options: &GenerationOptions) -> Self {
        Self {
            stop: options.stop.clone(),
            show_special: options.show_special,
            held: Vec::new(),
        }
    }

    /// Text that is certain after `token`, and whether a stop text was met.
    pub(crate) fn push(
        &mut self,
        tokenizer: &Tokenizer,
        token: TokenId,
        ends: bool,
    ) -> (String, bool) {
        let hidden = ends || (!self.show_special && tokenizer.kind(token) == TokenKind::Control);
        if !hidden {
            self.held
                .extend_from_slice(tokenizer.piece(token).unwrap_or_default());
        }
        let stops = self
            .stop
            .iter()
            .filter_map(|s| find(&self.held, s.as_bytes()));
        if let Some(at) = stops.min() {
            self.held.truncate(at);
            return (self.finish(), true);
        }
        let certain = self.held.len() - self.possible_stop();
        let whole = certain - incomplete_tail(&self.held[..certain]);
        let rest = self.held.split_off(whole);
        let text = mem::replace(&mut self.held, rest);
        (to_text(&text), false)
    }

    /// Length of the longest end of the held bytes that begins a stop text.
    fn possible_stop(&self) -> usize {
        let starts = |s: &String| {
            (1..s.len().min(self.held.len() + 1))
                .rev()
                .find(|n| self.held.ends_with(&s.as_bytes()[..*n]))
        };
        self.stop.iter().filter_map(starts).max().unwrap_or(0)
    }

    /// All that is held; bytes that never became a character are shown as U+FFFD.
    pub(crate) fn finish(&mut self) -> String {
        to_text(&mem::take(&mut self.held))
    }
}

fn to_text(bytes: &[u8]) -> String {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|w| w == needle)
}

/// Bytes at the end that begin a character which may still become whole.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(3);
    (1..=longest)
        .find(|n| {
            let tail = &bytes[bytes.len() - n..];
            let error = std::str::from_utf8(tail).err();
            tail[0] >= 0xc0
                && error.is_some_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_characters_that_can_still_become_whole_are_held_back() {
        for (bytes, expected) in [
            (&b"abc"[..], 0),
            ("\u{20ac}".as_bytes(), 0),
            (&"\u{20ac}".as_bytes()[..2], 2),
            (&"\u{1f999}".as_bytes()[..3], 3),
            (b"a\xff", 0),
            (b"a\xe2", 1),
            (b"\xe2a", 0),
            (b"\x80", 0),
            (b"\xf8", 0),
        ] {
            assert_eq!(incomplete_tail(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_possible_stop_text_is_held_back_and_found_across_tokens() {
        let options = GenerationOptions {
            stop: vec!["DEFG".into(), "\u{3002}".into()],
            ..GenerationOptions::default()
        };
        let mut stream = TextStream::new(&options);
        stream.held.extend_from_slice(b"ABCDE");
        assert_eq!(stream.possible_stop(), 2);
        stream.held = b"x\xe3\x80".to_vec();
        assert_eq!(stream.possible_stop(), 2);
        stream.held = b"DEFH".to_vec();
        assert_eq!(stream.possible_stop(), 0);
        assert_eq!(find(b"ABCDEFGH", b"DEFG"), Some(3));
    }
}
