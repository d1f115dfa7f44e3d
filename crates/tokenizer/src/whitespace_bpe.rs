//! BPE over the words between spaces (`tokenizer.ggml.model` = `whitespace`): spaces are dropped, letters may be made small.

use crate::TokenId;
use crate::bpe::{Bpe, Scratch};
use crate::error::TokenizerError;
use crate::texts::TextIndex;
use crate::unicode::Class;
use crate::vocabulary::Vocabulary;

/// Appends the tokens of a text without special tokens.
pub(crate) fn encode(
    bpe: &Bpe,
    text: &str,
    vocabulary: &Vocabulary,
    index: &TextIndex,
    scratch: &mut Scratch,
    out: &mut Vec<TokenId>,
) -> Result<(), TokenizerError> {
    let small = vocabulary.lowercase.unwrap_or(false);
    let words = text.split(|c| Class::of(c).is(Class::SPACE));
    for word in words.filter(|word| !word.is_empty()) {
        if small {
            let word: String = word.chars().flat_map(char::to_lowercase).collect();
            bpe.encode(&word, vocabulary, index, scratch, out)?;
        } else {
            bpe.encode(word, vocabulary, index, scratch, out)?;
        }
    }
    Ok(())
}
