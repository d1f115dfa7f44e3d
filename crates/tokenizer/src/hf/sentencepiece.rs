//! `tokenizer.model`: the protocol buffer of `SentencePiece` (`sentencepiece_model.proto`). Only the fields that matter are read;
//! lengths are checked against what is there.

use super::HfError;
use super::added::{Entry, Table};
use crate::TokenId;
use crate::vocabulary::{Model, TokenKind};

const FILE: &str = "tokenizer.model";

/// A value of a field.
#[derive(Clone, Copy)]
enum Field<'b> {
    Number(u64),
    Bits32(u32),
    Bytes(&'b [u8]),
    Other,
}

/// Reads fields one by one.
struct Reader<'b> {
    bytes: &'b [u8],
    /// Where `bytes` begins in the file.
    base: usize,
    pos: usize,
}

impl<'b> Reader<'b> {
    fn new(bytes: &'b [u8], base: usize) -> Self {
        Self {
            bytes,
            base,
            pos: 0,
        }
    }

    fn error(&self, problem: &'static str) -> HfError {
        HfError::SentencePiece {
            offset: self.base + self.pos,
            problem,
        }
    }

    fn varint(&mut self) -> Result<u64, HfError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.bytes.get(self.pos).copied();
            let byte = byte.ok_or_else(|| self.error("the file ends inside of a number"))?;
            self.pos += 1;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error("a number has more than 64 bits"))
    }

    fn take(&mut self, length: u64) -> Result<&'b [u8], HfError> {
        let end = usize::try_from(length)
            .ok()
            .and_then(|n| self.pos.checked_add(n));
        let taken = end.and_then(|end| self.bytes.get(self.pos..end));
        let taken = taken.ok_or_else(|| self.error("a field is longer than the file"))?;
        self.pos += taken.len();
        Ok(taken)
    }

    /// The next field: its number, its value, and where that begins in the file.
    fn next(&mut self) -> Result<Option<(u64, Field<'b>, usize)>, HfError> {
        if self.pos >= self.bytes.len() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Field::Number(self.varint()?),
            1 => {
                self.take(8)?;
                Field::Other
            }
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => {
                let bytes = self.take(4)?;
                Field::Bits32(bytes.try_into().map_or(0, u32::from_le_bytes))
            }
            _ => return Err(self.error("a field has a type that is not used")),
        };
        let start = match value {
            Field::Bytes(bytes) => self.pos - bytes.len(),
            _ => self.pos,
        };
        Ok(Some((tag >> 3, value, self.base + start)))
    }
}

/// What the file says of the tokenizer as a whole, with the defaults of the format.
struct Settings {
    model_type: u64,
    bos: u64,
    eos: u64,
    unk: u64,
    pad: u64,
    charsmap: Vec<u8>,
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
    /// Spaces are marked, and belong to the word behind them.
    usual_spaces: bool,
}

/// Reads the pieces and the settings.
pub(super) fn read(bytes: &[u8], notes: &mut Vec<String>) -> Result<Table, HfError> {
    let mut table = Table::new(Model::SentencePiece);
    table.has_scores = true;
    let mut settings = Settings {
        model_type: 1,
        bos: 1,
        eos: 2,
        unk: 0,
        pad: u64::MAX,
        charsmap: Vec::new(),
        add_dummy_prefix: true,
        remove_extra_whitespaces: true,
        usual_spaces: true,
    };
    let mut reader = Reader::new(bytes, 0);
    let mut pieces = 0;
    while let Some((number, value, start)) = reader.next()? {
        match (number, value) {
            (1, Field::Bytes(piece)) => {
                let entry = read_piece(&mut Reader::new(piece, start))?;
                table.insert(FILE, pieces, entry)?;
                pieces += 1;
            }
            (2, Field::Bytes(spec)) => read_trainer(&mut Reader::new(spec, start), &mut settings)?,
            (3, Field::Bytes(spec)) => {
                read_normalizer(&mut Reader::new(spec, start), &mut settings)?;
            }
            _ => {}
        }
    }
    if pieces == 0 {
        return Err(reader.error("the file has no pieces"));
    }
    finish(&mut table, settings, notes)?;
    Ok(table)
}

fn finish(table: &mut Table, settings: Settings, notes: &mut Vec<String>) -> Result<(), HfError> {
    let unsupported = |what, found: String| HfError::Unsupported {
        file: FILE,
        what,
        found,
    };
    table.rest.model = match settings.model_type {
        1 => Model::Unigram,
        2 => Model::SentencePiece,
        other => {
            let found = match other {
                3 => "words".to_owned(),
                4 => "characters".to_owned(),
                other => format!("type {other}"),
            };
            return Err(unsupported("the model", found));
        }
    };
    if !settings.usual_spaces {
        let found = "spaces behind words, or spaces that are not marked";
        return Err(unsupported("the handling of spaces", found.to_owned()));
    }
    table.rest.add_space_prefix = Some(settings.add_dummy_prefix);
    if table.rest.model == Model::Unigram {
        table.rest.remove_extra_whitespaces = Some(settings.remove_extra_whitespaces);
        table.rest.precompiled_charsmap = settings.charsmap;
    } else {
        if !settings.charsmap.is_empty() {
            notes.push(
                "tokenizer.model rewrites characters before anything else (NFKC or the like); GGUF files of this tokenizer model \
                 cannot say so, and texts with such characters get other ids"
                    .to_owned(),
            );
        }
        if settings.remove_extra_whitespaces {
            notes.push(
                "tokenizer.model makes one space of several; GGUF files of this tokenizer model cannot say so, and texts with \
                 such spaces get other ids"
                    .to_owned(),
            );
        }
    }
    let id = |id: u64| {
        let id = u32::try_from(id).ok()?;
        table.entry(id as usize).is_some().then_some(TokenId(id))
    };
    let special = (
        id(settings.bos),
        id(settings.eos),
        id(settings.unk),
        id(settings.pad),
    );
    let to = &mut table.rest.special;
    (to.bos, to.eos, to.unk, to.pad) = special;
    Ok(())
}

fn read_piece(reader: &mut Reader<'_>) -> Result<Entry, HfError> {
    let mut entry = Entry {
        text: String::new(),
        kind: TokenKind::Normal,
        score: 0.0,
    };
    while let Some((number, value, _)) = reader.next()? {
        match (number, value) {
            (1, Field::Bytes(text)) => {
                let text = std::str::from_utf8(text);
                let text = text.map_err(|_| reader.error("the text of a piece is not UTF-8"))?;
                text.clone_into(&mut entry.text);
            }
            (2, Field::Bits32(bits)) => entry.score = f32::from_bits(bits),
            (3, Field::Number(kind)) => {
                let kind = i64::try_from(kind).ok().filter(|&kind| kind > 0);
                entry.kind = kind
                    .and_then(TokenKind::from_number)
                    .ok_or_else(|| reader.error("a piece is of a type that is not known"))?;
            }
            _ => {}
        }
    }
    Ok(entry)
}

fn read_trainer(reader: &mut Reader<'_>, settings: &mut Settings) -> Result<(), HfError> {
    while let Some((number, value, _)) = reader.next()? {
        let Field::Number(value) = value else {
            continue;
        };
        match number {
            3 => settings.model_type = value,
            24 => settings.usual_spaces &= value == 0,
            40 => settings.unk = value,
            41 => settings.bos = value,
            42 => settings.eos = value,
            43 => settings.pad = value,
            _ => {}
        }
    }
    Ok(())
}

fn read_normalizer(reader: &mut Reader<'_>, settings: &mut Settings) -> Result<(), HfError> {
    while let Some((number, value, _)) = reader.next()? {
        match (number, value) {
            (2, Field::Bytes(bytes)) => settings.charsmap = bytes.to_vec(),
            (3, Field::Number(value)) => settings.add_dummy_prefix = value != 0,
            (4, Field::Number(value)) => settings.remove_extra_whitespaces = value != 0,
            (5, Field::Number(value)) => settings.usual_spaces &= value != 0,
            _ => {}
        }
    }
    Ok(())
}
