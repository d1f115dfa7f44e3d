//! Tokenizers as they lie beside a model on the Hugging Face hub, read into a [`Vocabulary`].
//!
//! A folder has one or more of `tokenizer.json`, `tokenizer.model` (`SentencePiece`), `vocab.json` with `merges.txt`, and
//! `vocab.txt`, and files that say which tokens have which role. What a [`Vocabulary`] cannot express is an error that says what was
//! found: a model converted with a wrong tokenizer is worse than none.

mod added;
mod bpe;
mod error;
mod plain_files;
mod pre_tokenizer;
mod roles;
mod sentencepiece;
mod tokenizer_json;
mod unigram;
mod wordpiece;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

pub use error::HfError;

use crate::vocabulary::Vocabulary;

/// Largest file that is read.
const LARGEST_FILE: u64 = 1 << 28;
/// Ids are smaller than this: a table has a place for each, and the largest vocabularies have a quarter of a million.
const MOST_TOKENS: usize = 1 << 21;

/// The files of a tokenizer, each as its bytes; absent ones are `None`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Files {
    /// `tokenizer.json`: everything in one file.
    pub tokenizer_json: Option<Vec<u8>>,
    /// `tokenizer_config.json`: roles of tokens, chat template.
    pub tokenizer_config: Option<Vec<u8>>,
    /// `special_tokens_map.json`: roles of tokens.
    pub special_tokens_map: Option<Vec<u8>>,
    /// `added_tokens.json`: tokens beyond the vocabulary.
    pub added_tokens: Option<Vec<u8>>,
    /// `config.json`: ids of roles, number of rows of the embedding.
    pub config: Option<Vec<u8>>,
    /// `tokenizer.model`: `SentencePiece`.
    pub tokenizer_model: Option<Vec<u8>>,
    /// `vocab.json`: byte-level BPE.
    pub vocab_json: Option<Vec<u8>>,
    /// `merges.txt`: byte-level BPE.
    pub merges_txt: Option<Vec<u8>>,
    /// `vocab.txt`: `WordPiece`.
    pub vocab_txt: Option<Vec<u8>>,
    /// `chat_template.jinja`.
    pub chat_template: Option<Vec<u8>>,
}

/// What was read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The vocabulary, as a GGUF file has it.
    pub vocabulary: Vocabulary,
    /// The chat template.
    pub chat_template: Option<String>,
    /// What the vocabulary leaves out, as sentences for the user.
    pub notes: Vec<String>,
}

impl Files {
    /// Reads the files of a folder.
    pub fn read(folder: &Path) -> Result<Self, HfError> {
        let read = |name: &str| -> Result<Option<Vec<u8>>, HfError> {
            let path = folder.join(name);
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(source) => return Err(HfError::Io { path, source }),
            };
            // Bounded by what is read: a device has no size, and a file may grow.
            let mut bytes = Vec::new();
            if let Err(source) = file.take(LARGEST_FILE + 1).read_to_end(&mut bytes) {
                return Err(HfError::Io { path, source });
            }
            let found = bytes.len() as u64;
            if found > LARGEST_FILE {
                return Err(HfError::TooLarge {
                    what: format!("bytes in {}", path.display()),
                    found,
                    limit: LARGEST_FILE,
                });
            }
            Ok(Some(bytes))
        };
        Ok(Self {
            tokenizer_json: read("tokenizer.json")?,
            tokenizer_config: read("tokenizer_config.json")?,
            special_tokens_map: read("special_tokens_map.json")?,
            added_tokens: read("added_tokens.json")?,
            config: read("config.json")?,
            tokenizer_model: read("tokenizer.model")?,
            vocab_json: read("vocab.json")?,
            merges_txt: read("merges.txt")?,
            vocab_txt: read("vocab.txt")?,
            chat_template: read("chat_template.jinja")?,
        })
    }

    /// Reads the vocabulary. `tokenizer.model` comes first, because it has the scores; then `tokenizer.json`, then the older files.
    pub fn load(&self) -> Result<Loaded, HfError> {
        let config = json_or_null("config.json", self.config.as_deref())?;
        let tokenizer_config =
            json_or_null("tokenizer_config.json", self.tokenizer_config.as_deref())?;
        let special_map = json_or_null(
            "special_tokens_map.json",
            self.special_tokens_map.as_deref(),
        )?;
        let json = json_or_null("tokenizer.json", self.tokenizer_json.as_deref())?;
        let mut notes = Vec::new();
        let mut table = self.read_table(&json, &tokenizer_config, &mut notes)?;
        let added = json_or_null("added_tokens.json", self.added_tokens.as_deref())?;
        table.add_from_config(&tokenizer_config, &added)?;
        let rows = config
            .get("vocab_size")
            .or_else(|| config.pointer("/text_config/vocab_size"))
            .and_then(Value::as_u64);
        let mut vocabulary = table.finish(rows, &mut notes)?;
        roles::read(
            &mut vocabulary,
            &roles::Sources {
                tokenizer_config: &tokenizer_config,
                special_map: &special_map,
                config: &config,
                tokenizer_json: &json,
            },
        );
        let template = match &self.chat_template {
            Some(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            None => roles::chat_template(&tokenizer_config),
        };
        Ok(Loaded {
            vocabulary,
            chat_template: template,
            notes,
        })
    }

    /// The tokens, from the first file that has them.
    fn read_table(
        &self,
        json: &Value,
        tokenizer_config: &Value,
        notes: &mut Vec<String>,
    ) -> Result<added::Table, HfError> {
        if let Some(bytes) = &self.tokenizer_model {
            match sentencepiece::read(bytes, notes) {
                Ok(mut table) => {
                    table.add_from_json(json, added::Names::Rename)?;
                    return Ok(table);
                }
                // Files of other kinds have this name too.
                Err(error @ HfError::SentencePiece { .. }) if !json.is_null() => {
                    notes.push(format!("{error}; tokenizer.json is read instead"));
                }
                Err(error) => return Err(error),
            }
        }
        if !json.is_null() {
            return tokenizer_json::read(json, notes);
        }
        if let (Some(vocab), Some(merges)) = (&self.vocab_json, &self.merges_txt) {
            return plain_files::byte_level_bpe(vocab, merges, notes);
        }
        match &self.vocab_txt {
            Some(vocab) => plain_files::wordpiece(vocab, tokenizer_config),
            None => Err(HfError::NoTokenizer),
        }
    }
}

/// A JSON file; `null` when it is absent.
fn json_or_null(file: &'static str, bytes: Option<&[u8]>) -> Result<Value, HfError> {
    match bytes {
        None => Ok(Value::Null),
        Some(bytes) => {
            serde_json::from_slice(bytes).map_err(|source| HfError::Json { file, source })
        }
    }
}
