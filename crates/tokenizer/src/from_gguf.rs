//! Reads a [`Vocabulary`] from the `tokenizer.*` keys of a GGUF file.

use puna_gguf::{Metadata, StringArray, ValueType};

use crate::TokenId;
use crate::error::TokenizerError;
use crate::texts::Texts;
use crate::vocabulary::{Model, SpecialIds, TokenKind, Vocabulary};

const MODEL: &str = "tokenizer.ggml.model";
const TOKENS: &str = "tokenizer.ggml.tokens";
const MERGES: &str = "tokenizer.ggml.merges";
const SCORES: &str = "tokenizer.ggml.scores";
const TOKEN_TYPE: &str = "tokenizer.ggml.token_type";
const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";
/// A model of its own in the format; here BPE with the pre-tokenizer of this name.
pub(crate) const GEMMA4: &str = "gemma4";
/// Most tokens of a vocabulary without texts.
const NAMELESS: usize = 1 << 24;

impl Vocabulary {
    /// Reads the vocabulary of a model file.
    ///
    /// Integers may have any width. Special ids that lie outside of the vocabulary are errors, as are arrays of the wrong
    /// element type or length.
    pub fn from_gguf(metadata: &Metadata) -> Result<Self, TokenizerError> {
        let name = metadata.str(MODEL)?.unwrap_or("missing");
        if name == "missing" {
            return Err(TokenizerError::NoVocabulary {
                found: name.to_owned(),
            });
        }
        let model = Model::from_name(name).ok_or_else(|| TokenizerError::UnknownModel {
            model: printable(name.as_bytes()),
            known: Model::known_names(),
        })?;
        if model == Model::None {
            return Ok(Self::new(model, nameless(metadata)?));
        }
        let mut vocabulary = Self::new(model, required(metadata, TOKENS, name)?);
        if model.has_merges() {
            vocabulary.merges = required(metadata, MERGES, name)?;
        }
        vocabulary.scores = scores(metadata)?;
        vocabulary.kinds = kinds(metadata)?;
        vocabulary.pre_tokenizer = match name {
            GEMMA4 => Some(GEMMA4.to_owned()),
            _ => metadata.str("tokenizer.ggml.pre")?.map(str::to_owned),
        };
        vocabulary.special = special_ids(metadata, vocabulary.tokens.len())?;
        vocabulary.add_bos = metadata.bool("tokenizer.ggml.add_bos_token")?;
        vocabulary.add_eos = metadata.bool("tokenizer.ggml.add_eos_token")?;
        vocabulary.add_space_prefix = metadata.bool("tokenizer.ggml.add_space_prefix")?;
        vocabulary.add_sep = metadata.bool("tokenizer.ggml.add_sep_token")?;
        vocabulary.remove_extra_whitespaces =
            metadata.bool("tokenizer.ggml.remove_extra_whitespaces")?;
        vocabulary.lowercase = metadata.bool("tokenizer.ggml.normalizer.lowercase")?;
        vocabulary.strip_accents = metadata.bool("tokenizer.ggml.normalizer.strip_accents")?;
        vocabulary.precompiled_charsmap = charsmap(metadata)?;
        if model == Model::WordPiece && vocabulary.special.bos.is_none() {
            let len = vocabulary.tokens.len();
            vocabulary.special.bos = special_id(metadata, "tokenizer.ggml.cls_token_id", len)?;
        }
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
        .is_some_and(|array| array.element_type() == ValueType::I32);
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

/// As many empty texts as the file says that there are tokens.
fn nameless(metadata: &Metadata) -> Result<Texts, TokenizerError> {
    let architecture = metadata.str("general.architecture")?.unwrap_or_default();
    let found = metadata.u64(&format!("{architecture}.vocab_size"))?;
    let found = usize::try_from(found.unwrap_or(0)).unwrap_or(usize::MAX);
    if found > NAMELESS {
        return Err(TokenizerError::TooLarge {
            what: "tokens without texts",
            found,
            limit: NAMELESS,
        });
    }
    Texts::collect(std::iter::repeat_n("", found))
}

/// The bytes of the rules that rewrite characters; they are an array of bytes with or without sign.
fn charsmap(metadata: &Metadata) -> Result<Vec<u8>, TokenizerError> {
    let Some(array) = metadata.array(CHARSMAP)? else {
        return Ok(Vec::new());
    };
    match array {
        puna_gguf::Array::Scalars(bytes)
            if matches!(array.element_type(), ValueType::U8 | ValueType::I8) =>
        {
            Ok(bytes.as_bytes().to_vec())
        }
        _ => Err(TokenizerError::BadCharsmap {
            problem: "it is not an array of bytes",
        }),
    }
}

fn special_id(
    metadata: &Metadata,
    key: &'static str,
    len: usize,
) -> Result<Option<TokenId>, TokenizerError> {
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
}

fn special_ids(metadata: &Metadata, len: usize) -> Result<SpecialIds, TokenizerError> {
    let id = |key| special_id(metadata, key, len);
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
