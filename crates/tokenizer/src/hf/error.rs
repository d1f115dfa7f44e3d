//! What can be wrong with the files of a tokenizer.

use std::path::PathBuf;

use crate::error::TokenizerError;

/// An error of reading a tokenizer from the files of a Hugging Face folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HfError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// A file is not JSON.
    #[error("{file}: {source}")]
    Json {
        /// The file.
        file: &'static str,
        /// Where and why.
        source: serde_json::Error,
    },
    /// No file has a vocabulary.
    #[error(
        "no tokenizer found: expected tokenizer.json, tokenizer.model, vocab.json with merges.txt, or vocab.txt"
    )]
    NoTokenizer,
    /// A part of a file is missing or of the wrong kind.
    #[error("{file}: `{field}` is {found}, expected {expected}")]
    BadField {
        /// The file.
        file: &'static str,
        /// Where in the file.
        field: String,
        /// What is there, cut short.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
    /// Something that a GGUF vocabulary cannot express, or that this crate does not know.
    #[error("{file}: {what} is not supported: {found}")]
    Unsupported {
        /// The file.
        file: &'static str,
        /// What kind of part.
        what: &'static str,
        /// What is there, cut short.
        found: String,
    },
    /// A pre-tokenizer that has no name in GGUF files.
    #[error(
        "tokenizer.json: no known pre-tokenizer cuts text by these steps; a name and a splitter have to be added:\n{found}"
    )]
    UnknownPreTokenizer {
        /// The steps, one a line.
        found: String,
    },
    /// `tokenizer.model` is not what `SentencePiece` writes.
    #[error("tokenizer.model: byte {offset}: {problem}")]
    SentencePiece {
        /// Where.
        offset: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// Two tokens have one id, or one token two ids.
    #[error("{file}: token \"{text}\" has id {id}, but {other}")]
    Contradiction {
        /// The file.
        file: &'static str,
        /// The token.
        text: String,
        /// Its id.
        id: usize,
        /// What it contradicts.
        other: String,
    },
    /// More of something than can be right.
    #[error("{found} {what}, expected at most {limit}")]
    TooLarge {
        /// Of what.
        what: String,
        /// How many.
        found: u64,
        /// How many may be.
        limit: u64,
    },
    /// The parts do not make a vocabulary.
    #[error(transparent)]
    Vocabulary(#[from] TokenizerError),
}

/// A JSON value as it may be shown: not endless.
pub(super) fn shown(value: &serde_json::Value) -> String {
    let text = value.to_string();
    let mut shown: String = text.chars().take(300).collect();
    if text.chars().nth(300).is_some() {
        shown.push('…');
    }
    shown
}

/// The error of a field that is not what it should be.
pub(super) fn bad_field(
    file: &'static str,
    field: impl Into<String>,
    found: &serde_json::Value,
    expected: &'static str,
) -> HfError {
    HfError::BadField {
        file,
        field: field.into(),
        found: shown(found),
        expected,
    }
}
