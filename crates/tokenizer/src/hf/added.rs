//! The table of tokens while it is being read: tokens by id, from the vocabulary and from the tokens that were added to it.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::error::bad_field;
use super::{HfError, MOST_TOKENS};
use crate::from_gguf::printable;
use crate::texts::Texts;
use crate::vocabulary::{Model, TokenKind, Vocabulary, byte_of_token};

/// A token.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) text: String,
    pub(super) kind: TokenKind,
    pub(super) score: f32,
}

impl Entry {
    /// One of the model's own tokens. With `bytes`, `<0x00>` to `<0xFF>` are bytes.
    pub(super) fn of_model(text: &str, unknown: bool, bytes: bool, score: f32) -> Self {
        let kind = if unknown {
            TokenKind::Unknown
        } else if bytes && byte_of_token(text.as_bytes()).is_some() {
            TokenKind::Byte
        } else {
            TokenKind::Normal
        };
        Self {
            text: text.to_owned(),
            kind,
            score,
        }
    }
}

/// What a token of a file means that has another text than the vocabulary's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// A contradiction.
    Keep,
    /// Its name, where the model's own file leaves it free.
    Rename,
}

/// Tokens by id, and everything else of the vocabulary.
#[derive(Debug)]
pub(super) struct Table {
    entries: Vec<Option<Entry>>,
    ids: FxHashMap<String, usize>,
    /// The vocabulary but for its tokens, kinds and scores.
    pub(super) rest: Vocabulary,
    /// Scores are part of this model.
    pub(super) has_scores: bool,
}

impl Table {
    pub(super) fn new(model: Model) -> Self {
        Self {
            entries: Vec::new(),
            ids: FxHashMap::default(),
            rest: Vocabulary::new(model, Texts::default()),
            has_scores: false,
        }
    }

    pub(super) fn id(&self, text: &str) -> Option<usize> {
        self.ids.get(text).copied()
    }

    pub(super) fn entry(&self, id: usize) -> Option<&Entry> {
        self.entries.get(id)?.as_ref()
    }

    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().flatten()
    }

    /// Adds a token of the vocabulary.
    pub(super) fn insert(
        &mut self,
        file: &'static str,
        id: usize,
        entry: Entry,
    ) -> Result<(), HfError> {
        if id >= MOST_TOKENS {
            return Err(HfError::TooLarge {
                what: format!(
                    "as id of token \"{}\" in {file}",
                    printable(entry.text.as_bytes())
                ),
                found: id as u64,
                limit: MOST_TOKENS as u64 - 1,
            });
        }
        if id >= self.entries.len() {
            self.entries.resize(id + 1, None);
        }
        let Some(slot) = self.entries.get_mut(id) else {
            return Ok(());
        };
        if let Some(other) = slot {
            return Err(HfError::Contradiction {
                file,
                text: printable(entry.text.as_bytes()),
                id,
                other: format!("so has \"{}\"", printable(other.text.as_bytes())),
            });
        }
        self.ids.entry(entry.text.clone()).or_insert(id);
        *slot = Some(entry);
        Ok(())
    }

    /// Adds a token beyond the vocabulary, or says more of one that is in it. What is special is a control token; what was special
    /// stays so.
    fn add(
        &mut self,
        file: &'static str,
        names: Names,
        id: usize,
        text: &str,
        special: bool,
    ) -> Result<(), HfError> {
        let kind = if special {
            TokenKind::Control
        } else {
            TokenKind::UserDefined
        };
        if let Some(Some(entry)) = self.entries.get_mut(id) {
            if entry.text != text {
                // A piece of WordPiece is written with its space, an added token is not; and the pieces that a `SentencePiece`
                // file keeps free are named by the configuration.
                let same = entry.text.strip_prefix('▁') == Some(text);
                let renamed = self.rest.model != Model::Bpe && names == Names::Rename;
                if !(renamed || same && self.rest.model == Model::WordPiece) {
                    return Err(HfError::Contradiction {
                        file,
                        text: printable(text.as_bytes()),
                        id,
                        other: format!("so has \"{}\"", printable(entry.text.as_bytes())),
                    });
                }
                text.clone_into(&mut entry.text);
                self.ids.insert(text.to_owned(), id);
            }
            if matches!(entry.kind, TokenKind::Normal | TokenKind::UserDefined) {
                entry.kind = kind;
            }
            return Ok(());
        }
        if let Some(other) = self.id(text) {
            return Err(HfError::Contradiction {
                file,
                text: printable(text.as_bytes()),
                id,
                other: format!("{other} in the vocabulary"),
            });
        }
        let entry = Entry {
            text: text.to_owned(),
            kind,
            score: 0.0,
        };
        self.insert(file, id, entry)
    }

    /// Adds the `added_tokens` of a `tokenizer.json`.
    pub(super) fn add_from_json(&mut self, json: &Value, names: Names) -> Result<(), HfError> {
        let file = super::tokenizer_json::FILE;
        let Some(added) = json.get("added_tokens").filter(|v| !v.is_null()) else {
            return Ok(());
        };
        let list = added
            .as_array()
            .ok_or_else(|| bad_field(file, "added_tokens", added, "a list"))?;
        for token in list {
            let id = token.get("id").and_then(Value::as_u64);
            let text = token.get("content").and_then(Value::as_str);
            let (Some(id), Some(text)) = (id, text) else {
                return Err(bad_field(
                    file,
                    "added_tokens",
                    token,
                    "a token with `id` and `content`",
                ));
            };
            let special = token.get("special").and_then(Value::as_bool);
            self.add(file, names, number(id), text, special.unwrap_or(false))?;
        }
        Ok(())
    }

    /// Adds the `added_tokens_decoder` of a `tokenizer_config.json` and the tokens of an `added_tokens.json`.
    pub(super) fn add_from_config(
        &mut self,
        tokenizer_config: &Value,
        added_tokens: &Value,
    ) -> Result<(), HfError> {
        const CONFIG: &str = "tokenizer_config.json";
        const ADDED: &str = "added_tokens.json";
        let decoder = tokenizer_config.get("added_tokens_decoder");
        for (id, token) in decoder.and_then(Value::as_object).into_iter().flatten() {
            let text = token.get("content").and_then(Value::as_str);
            let (Ok(id), Some(text)) = (id.parse(), text) else {
                let expected = "ids with a token that has `content`";
                return Err(bad_field(CONFIG, "added_tokens_decoder", token, expected));
            };
            let special = token.get("special").and_then(Value::as_bool);
            self.add(CONFIG, Names::Rename, id, text, special.unwrap_or(false))?;
        }
        for (text, id) in added_tokens.as_object().into_iter().flatten() {
            let Some(id) = id.as_u64().map(number) else {
                return Err(bad_field(ADDED, text.as_str(), id, "an id"));
            };
            if self.entry(id).is_none() {
                // The file does not say what is special; it looks like it.
                let special = text.starts_with('<') && text.ends_with('>');
                self.add(ADDED, Names::Rename, id, text, special)?;
            }
        }
        Ok(())
    }

    /// The vocabulary. Ids without a token up to the number of rows of the embedding become unused tokens.
    pub(super) fn finish(
        self,
        rows: Option<u64>,
        notes: &mut Vec<String>,
    ) -> Result<Vocabulary, HfError> {
        let rows = rows.map_or(0, number);
        if rows > MOST_TOKENS {
            return Err(HfError::TooLarge {
                what: "tokens by `vocab_size` in config.json".to_owned(),
                found: rows as u64,
                limit: MOST_TOKENS as u64,
            });
        }
        let mut vocabulary = self.rest;
        let mut entries = self.entries;
        if rows > 0 && rows < entries.len() {
            notes.push(format!(
                "config.json has {rows} as `vocab_size`, but the tokenizer has {} tokens",
                entries.len()
            ));
        }
        entries.resize(rows.max(entries.len()), None);
        let mut texts = Vec::with_capacity(entries.len());
        for (id, entry) in entries.into_iter().enumerate() {
            let entry = entry.unwrap_or_else(|| Entry {
                text: format!("[PAD{id}]"),
                kind: TokenKind::Unused,
                score: -1000.0,
            });
            // Text is searched for these before its spaces are marked.
            let text = match entry.kind {
                TokenKind::UserDefined => entry.text.replace('▁', " "),
                _ => entry.text,
            };
            texts.push(text);
            vocabulary.kinds.push(entry.kind);
            if self.has_scores {
                vocabulary.scores.push(entry.score);
            }
        }
        vocabulary.tokens = Texts::collect(&texts)?;
        Ok(vocabulary)
    }
}

/// A number of a file as an index; too large ones stay too large.
fn number(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
