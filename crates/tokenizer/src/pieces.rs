//! What each token decodes to.

use crate::encoder::Spelling;
use crate::error::TokenizerError;
use crate::spaces::unmark_spaces;
use crate::texts::Texts;
use crate::vocabulary::{Model, TokenKind, Vocabulary, byte_of_token};
use crate::{byte_chars, hybrid_dna, rwkv};

/// The bytes of each token, by id.
pub(crate) fn pieces(
    vocabulary: &Vocabulary,
    spelling: Spelling,
    warnings: &mut Vec<String>,
) -> Result<Texts, TokenizerError> {
    let mut pieces = Texts::with_capacity(vocabulary.tokens.len());
    let mut buffer = Vec::new();
    let mut bad_bytes = 0;
    for (text, &kind) in vocabulary.tokens.iter().zip(&vocabulary.kinds) {
        buffer.clear();
        match kind {
            TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined => {
                buffer.extend_from_slice(text);
            }
            TokenKind::Byte if let Some(byte) = byte_of_token(text) => buffer.push(byte),
            _ => {
                bad_bytes += usize::from(kind == TokenKind::Byte);
                let text = without_mark(text, vocabulary.model);
                if spell(text, spelling, &mut buffer).is_none() {
                    buffer.clear();
                    buffer.extend_from_slice(text);
                }
            }
        }
        pieces.push(&[&buffer])?;
    }
    if bad_bytes > 0 {
        warnings.push(format!(
            "{bad_bytes} tokens of type byte are not written as <0x00> to <0xFF>; they are taken as text"
        ));
    }
    Ok(pieces)
}

/// The bases of a DNA token.
fn without_mark(text: &[u8], model: Model) -> &[u8] {
    let mark = hybrid_dna::MARK;
    let bare = text.strip_suffix(mark.encode_utf8(&mut [0; 4]).as_bytes());
    bare.filter(|bare| model == Model::HybridDna && !bare.is_empty())
        .unwrap_or(text)
}

/// Appends what a text stands for; `None` when it is not spelled so.
fn spell(text: &[u8], spelling: Spelling, out: &mut Vec<u8>) -> Option<()> {
    match spelling {
        Spelling::Plain => out.extend_from_slice(text),
        Spelling::MarkedSpaces => unmark_spaces(text, out),
        Spelling::ByteCharacters => return byte_chars::decode(text, out).then_some(()),
        Spelling::Escapes => return rwkv::unescape(text, out),
    }
    Some(())
}
