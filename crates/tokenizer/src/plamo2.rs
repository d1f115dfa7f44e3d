//! `PLaMo` 2 (`tokenizer.ggml.model` = `plamo2`): of all ways to cut a text into tokens, the one of least cost. Costs are whole
//! numbers, ten thousandths of a score; a character without a token costs much, and is spelled in byte tokens.

use crate::TokenId;
use crate::error::TokenizerError;
use crate::trie::Trie;
use crate::vocabulary::{TokenKind, Vocabulary, byte_tokens};

/// What a character costs that has to be spelled.
const SPELLED: i64 = 10_000_000;
/// Tokens of this cost or more are not used.
const TOO_DEAR: i64 = 20_000_000;

/// The encoder.
pub(crate) struct Plamo2 {
    tokens: Trie,
    /// Cost by token.
    costs: Vec<i64>,
    /// Token by byte.
    bytes: Vec<Option<u32>>,
}

/// The best way from a place to the end of the text.
#[derive(Clone, Copy)]
struct Step {
    cost: i64,
    /// Bytes of the first token.
    length: u32,
    /// `None` for a character that is spelled.
    token: Option<u32>,
}

impl Plamo2 {
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        index: &crate::texts::TextIndex,
    ) -> Result<Self, TokenizerError> {
        let bytes = byte_tokens(vocabulary, index);
        if let Some(byte) = bytes.iter().position(Option::is_none) {
            return Err(TokenizerError::MissingByteToken { byte: byte as u8 });
        }
        let costs: Vec<i64> = vocabulary
            .scores
            .iter()
            .map(|&score| (f64::from(score) * -1e4).round().clamp(-1e12, 1e12) as i64)
            .collect();
        let usable = vocabulary
            .tokens
            .iter()
            .zip(0..)
            .zip(vocabulary.kinds.iter().zip(&costs))
            .filter(|(_, (kind, cost))| {
                !matches!(
                    kind,
                    TokenKind::Control | TokenKind::Unknown | TokenKind::Byte
                ) && **cost < TOO_DEAR
            });
        Ok(Self {
            tokens: Trie::new(usable.map(|(token, _)| token))?,
            costs,
            bytes,
        })
    }

    /// Appends the tokens of a text without special tokens.
    pub(crate) fn encode(&self, text: &str, out: &mut Vec<TokenId>) -> Result<(), TokenizerError> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let mut steps = vec![
            Step {
                cost: 0,
                length: 0,
                token: None
            };
            text.len() + 1
        ];
        for (at, c) in text.char_indices().rev() {
            let cost_after = |length: usize| steps.get(at + length).map_or(0, |step| step.cost);
            let mut best: Option<Step> = None;
            self.tokens.prefixes(
                text.as_bytes().get(at..).unwrap_or_default(),
                |length, token| {
                    // A token that is no text may end inside of a character.
                    if !text.is_char_boundary(at + length) {
                        return;
                    }
                    let cost = self.costs.get(token as usize).copied().unwrap_or(SPELLED);
                    let cost = cost_after(length).saturating_add(cost);
                    // Of equals the longest.
                    if best.is_none_or(|best| cost <= best.cost) {
                        best = Some(Step {
                            cost,
                            length: length as u32,
                            token: Some(token),
                        });
                    }
                },
            );
            let cost = cost_after(c.len_utf8()).saturating_add(SPELLED);
            let best = best.filter(|best| best.cost <= cost).unwrap_or(Step {
                cost,
                length: c.len_utf8() as u32,
                token: None,
            });
            if let Some(step) = steps.get_mut(at) {
                *step = best;
            }
        }
        let mut at = 0;
        while let Some(step) = steps.get(at).filter(|step| step.length > 0) {
            let end = at + step.length as usize;
            match step.token {
                Some(token) => out.push(TokenId(token)),
                None => self.spell(text.as_bytes().get(at..end).unwrap_or_default(), out)?,
            }
            at = end;
        }
        Ok(())
    }

    fn spell(&self, character: &[u8], out: &mut Vec<TokenId>) -> Result<(), TokenizerError> {
        for &byte in character {
            let id = self.bytes.get(usize::from(byte)).copied().flatten();
            out.push(TokenId(id.ok_or(TokenizerError::NoToken { byte })?));
        }
        Ok(())
    }
}
