//! The size of the vocabulary, which a file tells in several places that have to agree.

use crate::{Keys, ModelError};
use puna_gguf::{Array, Gguf, Metadata, Value};

const EMBEDDING: &str = "token_embd.weight";
const TOKENS: &str = "tokenizer.ggml.tokens";
const SCORES: &str = "tokenizer.ggml.scores";

/// Rows of the token embedding; `vocab_size` where there is none, which is an error of its own.
///
/// # Errors
/// [`ModelError::InvalidKey`] where `vocab_size` or the list of tokens says something else, or a score is not a number.
pub(crate) fn size(gguf: &Gguf, keys: &Keys<'_>) -> Result<usize, ModelError> {
    let told = keys.size("vocab_size")?;
    let Some(rows) = gguf.tensor(EMBEDDING).and_then(|t| t.dims.get(1)) else {
        return Ok(told.unwrap_or(0));
    };
    let rows = usize::try_from(*rows).unwrap_or(0);
    let differs = |key: String, found: String| {
        Err(ModelError::InvalidKey {
            key,
            found,
            expected: format!("{rows}, the rows of `{EMBEDDING}`"),
        })
    };
    if let Some(told) = told.filter(|n| *n != rows) {
        return differs(keys.full("vocab_size"), told.to_string());
    }
    let metadata = gguf.metadata();
    if let Some(tokens) = array(metadata, TOKENS).filter(|t| t.len() != rows) {
        return differs(TOKENS.to_owned(), format!("{} entries", tokens.len()));
    }
    let scores = array(metadata, SCORES).and_then(|scores| {
        let is_nan = |v: Value| v.float().is_some_and(f32::is_nan);
        scores.iter().position(is_nan)
    });
    match scores {
        Some(index) => Err(ModelError::InvalidKey {
            key: SCORES.to_owned(),
            found: format!("NaN for token {index}"),
            expected: "numbers".to_owned(),
        }),
        None => Ok(rows),
    }
}

/// The list of that key; of another type it is the tokenizer's business.
fn array<'a>(metadata: &'a Metadata, key: &str) -> Option<&'a Array> {
    match metadata.get(key) {
        Some(Value::Array(array)) => Some(array),
        _ => None,
    }
}
