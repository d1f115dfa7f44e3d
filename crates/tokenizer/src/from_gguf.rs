//! Reads a [`Vocabulary`] from the `tokenizer.*` keys of a GGUF file.

use puna_gguf::{Metadata, StringArray};

use crate::TokenId;
use crate::error::TokenizerError;
use crate::texts::Texts;
use crate::vocabulary::{Model, SpecialIds, TokenKind, Vocabulary};

const MODEL: &str = "tokenizer.ggml.model";
const TOKENS: &str = "tokenizer.ggml.tokens";
const MERGES: &str = "tokenizer.ggml.merges";
const SCORES: &str = "tokenizer.ggml.scores";
const TOKEN_TYPE: &str = "tokenizer.ggml.token_type";

impl Vocabulary {
    /// Reads the vocabulary of a model file.
    ///
    /// Integers may have any width. Special ids that lie outside of the vocabulary are errors, as are arrays of the wrong
    /// element type or length.
    pub fn from_gguf(metadata: &Metadata) -> Result<Self, TokenizerError> {
        let name = metadata.str(MODEL)?.unwrap_or("missing");
        let model = match name {
            "llama" => Model::SentencePiece,
            "gpt2" => Model::ByteLevelBpe,
            "missing" | "none" | "no_vocab" => {
                return Err(TokenizerError::NoVocabulary {
                    found: name.to_owned(),
                });
            }
            other => {
                return Err(TokenizerError::UnsupportedModel {
                    model: printable(other.as_bytes()),
                });
            }
        };
        let mut vocabulary = Self::new(model, required(metadata, TOKENS, name)?);
        if model == Model::ByteLevelBpe {
            vocabulary.merges = required(metadata, MERGES, name)?;
        }
        vocabulary.scores = scores(metadata)?;
        vocabulary.kinds = kinds(metadata)?;
        vocabulary.pre_tokenizer = metadata.str("tokenizer.ggml.pre")?.map(str::to_owned);
        vocabulary.special = special_ids(metadata, vocabulary.tokens.len())?;
        vocabulary.add_bos = metadata.bool("tokenizer.ggml.add_bos_token")?;
        vocabulary.add_eos = metadata.bool("tokenizer.ggml.add_eos_token")?;
        vocabulary.add_space_prefix = metadata.bool("tokenizer.ggml.add_space_prefix")?;
        vocabulary.special_tokens_take_spaces_after = has_phi3_special_tokens(metadata);
        Ok(vocabulary)
    }
}

/// A text of the file as it may be shown: no control characters, not endless.
pub(crate) fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() {
        shown.push('…');
    }
    shown
}

fn required(metadata: &Metadata, key: &'static str, model: &str) -> Result<Texts, TokenizerError> {
    let strings: &StringArray =
        metadata
            .strings(key)?
            .ok_or_else(|| TokenizerError::MissingKey {
                key,
                model: model.to_owned(),
            })?;
    Texts::collect(strings.iter())
}

/// Scores, as floats or (in some old files) integers.
fn scores(metadata: &Metadata) -> Result<Vec<f32>, TokenizerError> {
    let wrong_type = match metadata.floats(SCORES) {
        Ok(scores) => return Ok(scores.unwrap_or_default()),
        Err(error) => error,
    };
    let is_i32 = metadata
        .array(SCORES)?
        .is_some_and(|array| array.element_type() == puna_gguf::ValueType::I32);
    match metadata.integers(SCORES) {
        Ok(Some(scores)) if is_i32 => Ok(scores.into_iter().map(|s| s as f32).collect()),
        _ => Err(wrong_type.into()),
    }
}

fn kinds(metadata: &Metadata) -> Result<Vec<TokenKind>, TokenizerError> {
    let numbers = metadata.integers(TOKEN_TYPE)?.unwrap_or_default();
    let kinds = numbers.into_iter().enumerate().map(|(index, found)| {
        TokenKind::from_number(found).ok_or(TokenizerError::BadTokenType { index, found })
    });
    kinds.collect()
}

fn special_ids(metadata: &Metadata, len: usize) -> Result<SpecialIds, TokenizerError> {
    let id = |key: &'static str| -> Result<Option<TokenId>, TokenizerError> {
        let Some(number) = metadata.i64(key)? else {
            return Ok(None);
        };
        match u32::try_from(number) {
            Ok(id) if (id as usize) < len => Ok(Some(TokenId(id))),
            _ => Err(TokenizerError::IdOutOfRange {
                key,
                id: number.to_string(),
                len,
            }),
        }
    };
    // The older names of the first three fill-in-the-middle ids win when both are there, as in llama.cpp.
    Ok(SpecialIds {
        bos: id("tokenizer.ggml.bos_token_id")?,
        eos: id("tokenizer.ggml.eos_token_id")?,
        eot: id("tokenizer.ggml.eot_token_id")?,
        eom: id("tokenizer.ggml.eom_token_id")?,
        unk: id("tokenizer.ggml.unknown_token_id")?,
        // The key is misspelt in the format.
        sep: id("tokenizer.ggml.seperator_token_id")?,
        pad: id("tokenizer.ggml.padding_token_id")?,
        mask: id("tokenizer.ggml.mask_token_id")?,
        fim_prefix: id("tokenizer.ggml.prefix_token_id")?
            .or(id("tokenizer.ggml.fim_pre_token_id")?),
        fim_suffix: id("tokenizer.ggml.suffix_token_id")?
            .or(id("tokenizer.ggml.fim_suf_token_id")?),
        fim_middle: id("tokenizer.ggml.middle_token_id")?
            .or(id("tokenizer.ggml.fim_mid_token_id")?),
        fim_pad: id("tokenizer.ggml.fim_pad_token_id")?,
        fim_repository: id("tokenizer.ggml.fim_rep_token_id")?,
        fim_separator: id("tokenizer.ggml.fim_sep_token_id")?,
    })
}

/// GGUF does not say which special tokens take the spaces after them; the field goes by the name of the model.
fn has_phi3_special_tokens(metadata: &Metadata) -> bool {
    let name = metadata
        .str("general.name")
        .ok()
        .flatten()
        .unwrap_or_default();
    let name = name.to_ascii_lowercase();
    name.contains("phi-3") || name.contains("phi3")
}
