//! BPE with DNA (`tokenizer.ggml.model` = `hybriddna`): between `<dna>` and `</dna>` each six bases are a token, and what is not six of
//! A, C, G, T is `<oov>`.

use crate::TokenId;
use crate::bpe::{Bpe, Scratch};
use crate::error::TokenizerError;
use crate::texts::TextIndex;
use crate::vocabulary::{TokenKind, Vocabulary};

const OPEN: &str = "<dna>";
const CLOSE: &str = "</dna>";
/// Bases in a token.
const BASES: usize = 6;
/// What the texts of DNA tokens end with, so that they differ from words.
pub(crate) const MARK: char = '\u{E000}';

/// The tokens of DNA, when the vocabulary has them.
#[derive(Clone, Copy)]
struct Tokens {
    open: u32,
    close: u32,
    unknown: u32,
}

/// Appends the tokens of a text without special tokens.
pub(crate) fn encode(
    bpe: &Bpe,
    text: &str,
    vocabulary: &Vocabulary,
    index: &TextIndex,
    scratch: &mut Scratch,
    out: &mut Vec<TokenId>,
) -> Result<(), TokenizerError> {
    // Text never becomes a control token, so tags that are one are only text here.
    let find = |text: &str| {
        index
            .get(&vocabulary.tokens, text.as_bytes())
            .filter(|&id| vocabulary.kind(TokenId(id)) != TokenKind::Control)
    };
    let (Some(open), Some(close), Some(unknown)) = (find(OPEN), find(CLOSE), find("<oov>")) else {
        return bpe.encode(text, vocabulary, index, scratch, out);
    };
    let tokens = Tokens {
        open,
        close,
        unknown,
    };
    let mut rest = text;
    while let Some((words, after)) = rest.split_once(OPEN) {
        bpe.encode(words, vocabulary, index, scratch, out)?;
        out.push(TokenId(tokens.open));
        let (dna, after) = match after.split_once(CLOSE) {
            Some((dna, after)) => (dna, Some(after)),
            None => (after, None),
        };
        encode_dna(dna, tokens.unknown, vocabulary, index, out);
        if after.is_some() {
            out.push(TokenId(tokens.close));
        }
        rest = after.unwrap_or_default();
    }
    bpe.encode(rest, vocabulary, index, scratch, out)
}

/// Sixes of bases; the last is filled up with A.
fn encode_dna(
    dna: &str,
    unknown: u32,
    vocabulary: &Vocabulary,
    index: &TextIndex,
    out: &mut Vec<TokenId>,
) {
    let mut text = Vec::with_capacity(BASES + MARK.len_utf8());
    for bases in dna.as_bytes().chunks(BASES) {
        text.clear();
        text.extend(bases.iter().map(u8::to_ascii_uppercase));
        text.resize(BASES, b'A');
        text.extend_from_slice(MARK.encode_utf8(&mut [0; 4]).as_bytes());
        out.push(TokenId(
            index.get(&vocabulary.tokens, &text).unwrap_or(unknown),
        ));
    }
}
