//! RWKV World (`tokenizer.ggml.model` = `rwkv`): tokens are byte strings, and the longest that fits is always taken.

use crate::TokenId;
use crate::error::TokenizerError;
use crate::from_gguf::printable;
use crate::texts::Texts;
use crate::trie::Trie;
use crate::vocabulary::{TokenKind, Vocabulary};

/// The encoder.
pub(crate) struct Rwkv {
    tokens: Trie,
    unk: Option<TokenId>,
}

impl Rwkv {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let mut texts = Texts::with_capacity(vocabulary.tokens.len());
        let mut bytes = Vec::new();
        for (index, text) in vocabulary.tokens.iter().enumerate() {
            bytes.clear();
            unescape(text, &mut bytes).ok_or_else(|| TokenizerError::BadEscape {
                index,
                text: printable(text),
            })?;
            texts.push(&[&bytes])?;
        }
        let plain = texts
            .iter()
            .zip(0..)
            .zip(&vocabulary.kinds)
            .filter(|(_, kind)| !matches!(kind, TokenKind::Control | TokenKind::Unknown));
        Ok(Self {
            tokens: Trie::new(plain.map(|(token, _)| token))?,
            unk: vocabulary.special.unk,
        })
    }

    /// Appends the tokens of a text without special tokens.
    pub(crate) fn encode(&self, text: &str, out: &mut Vec<TokenId>) -> Result<(), TokenizerError> {
        let mut rest = text.as_bytes();
        while let Some(&byte) = rest.first() {
            let (length, id) = match self.tokens.longest(rest) {
                Some((length, id)) => (length, TokenId(id)),
                None => (1, self.unk.ok_or(TokenizerError::NoToken { byte })?),
            };
            out.push(id);
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(())
    }
}

/// Appends the bytes that a token text stands for: as in a Python literal, `\t`, `\n`, `\r`, `\x` and two hexadecimal digits, any
/// other character after a backslash for itself. `None` when digits are missing or the text ends in a backslash.
pub(crate) fn unescape(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next()? {
            b't' => b'\t',
            b'n' => b'\n',
            b'r' => b'\r',
            b'x' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            other => other,
        });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_a_python_literal() {
        let cases: [(&[u8], Option<&[u8]>); 8] = [
            (br"a\tb\n\r", Some(b"a\tb\n\r")),
            (br"\x00\xff\xE9", Some(b"\x00\xff\xe9")),
            (br"\\x41", Some(br"\x41")),
            (br#"\'\""#, Some(br#"'""#)),
            ("é".as_bytes(), Some("é".as_bytes())),
            (br"\x4", None),
            (br"\xzz", None),
            (br"\", None),
        ];
        for (text, expected) in cases {
            let mut out = Vec::new();
            let found = unescape(text, &mut out).map(|()| out.as_slice());
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(text));
        }
    }
}
