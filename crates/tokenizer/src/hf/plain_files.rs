//! The files from before `tokenizer.json`: `vocab.json` with `merges.txt`, and `vocab.txt`.

use serde_json::Value;

use super::added::{Entry, Table};
use super::error::bad_field;
use super::{HfError, wordpiece as pieces};
use crate::texts::Texts;
use crate::vocabulary::{Model, TokenKind};

const VOCAB_JSON: &str = "vocab.json";
const MERGES: &str = "merges.txt";
const VOCAB_TXT: &str = "vocab.txt";

/// `vocab.json` and `merges.txt`: byte-level BPE with the pattern of GPT-2, which these files imply.
pub(super) fn byte_level_bpe(
    vocab: &[u8],
    merges: &[u8],
    notes: &mut Vec<String>,
) -> Result<Table, HfError> {
    let vocab: Value = serde_json::from_slice(vocab).map_err(|source| HfError::Json {
        file: VOCAB_JSON,
        source,
    })?;
    let mut table = Table::new(Model::Bpe);
    let object = vocab
        .as_object()
        .ok_or_else(|| bad_field(VOCAB_JSON, "", &vocab, "an object of tokens and ids"))?;
    for (text, id) in object {
        let index = id.as_u64().and_then(|id| usize::try_from(id).ok());
        let index = index.ok_or_else(|| bad_field(VOCAB_JSON, text.as_str(), id, "an id"))?;
        let entry = Entry {
            text: text.clone(),
            kind: TokenKind::Normal,
            score: 0.0,
        };
        table.insert(VOCAB_JSON, index, entry)?;
    }
    let mut lines = Vec::new();
    for (number, line) in text(MERGES, merges)?.lines().enumerate() {
        if line.is_empty() || (number == 0 && line.starts_with("#version")) {
            continue;
        }
        let two = line.split(' ').filter(|part| !part.is_empty()).count() == 2;
        if !two {
            let line = Value::from(line);
            return Err(bad_field(
                MERGES,
                format!("line {}", number + 1),
                &line,
                "two tokens",
            ));
        }
        lines.push(line);
    }
    table.rest.merges = Texts::collect(&lines)?;
    table.rest.pre_tokenizer = Some("gpt-2".to_owned());
    notes.push(
        "vocab.json and merges.txt do not say how text is cut into words: taken to be as in GPT-2"
            .to_owned(),
    );
    Ok(table)
}

/// `vocab.txt`: `WordPiece`, one piece a line.
pub(super) fn wordpiece(vocab: &[u8], tokenizer_config: &Value) -> Result<Table, HfError> {
    let mut table = Table::new(Model::WordPiece);
    let unknown = tokenizer_config["unk_token"].as_str().unwrap_or("[UNK]");
    for (id, line) in text(VOCAB_TXT, vocab)?.lines().enumerate() {
        pieces::insert(&mut table, VOCAB_TXT, id, line, unknown)?;
    }
    if tokenizer_config["tokenize_chinese_chars"].as_bool() == Some(false) {
        return Err(HfError::Unsupported {
            file: "tokenizer_config.json",
            what: "`tokenize_chinese_chars`",
            found: "false".to_owned(),
        });
    }
    table.rest.lowercase = Some(tokenizer_config["do_lower_case"].as_bool().unwrap_or(true));
    table.rest.strip_accents = tokenizer_config["strip_accents"].as_bool();
    for entry in table.entries_mut() {
        if matches!(entry.text.as_str(), "[CLS]" | "[SEP]" | "[PAD]" | "[MASK]") {
            entry.kind = TokenKind::Control;
        }
    }
    Ok(table)
}

fn text<'b>(file: &'static str, bytes: &'b [u8]) -> Result<&'b str, HfError> {
    std::str::from_utf8(bytes).map_err(|error| HfError::BadField {
        file,
        field: format!("byte {}", error.valid_up_to()),
        found: "not UTF-8".to_owned(),
        expected: "text in UTF-8",
    })
}
