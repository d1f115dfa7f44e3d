//! Reads the header, the metadata and the tensor descriptions of one file.
//!
//! Nothing is reserved on the word of the file alone: a count is first compared with the bytes that are left,
//! and lists whose elements take more memory than bytes in the file grow as they are read.

use std::sync::Arc;

use puna_quant::ElementType;

use crate::array::{Array, LENGTH_BYTES, ScalarArray, StringArray, decode};
use crate::bytes::{SharedBytes, Source};
use crate::cursor::Cursor;
use crate::error::{GgufError, Place, shown};
use crate::metadata::Metadata;
use crate::tensor::{self, MAX_DIMENSIONS, TensorInfo};
use crate::value::{GgufString, Value, ValueType};

/// The first four bytes of every file.
pub(crate) const MAGIC: [u8; 4] = *b"GGUF";
/// The key of the architecture.
pub(crate) const ARCHITECTURE_KEY: &str = "general.architecture";
/// The key of the alignment.
pub(crate) const ALIGNMENT_KEY: &str = "general.alignment";
/// The alignment of a file that has no such key.
pub(crate) const DEFAULT_ALIGNMENT: u32 = 32;
/// The longest key, bytes.
pub(crate) const MAX_KEY_BYTES: usize = 65_535;
/// How deep arrays may be nested: 1 is an array of scalars or strings.
pub const MAX_ARRAY_DEPTH: usize = 8;

/// Length of the key (an empty one is an error of its own), value type, value of one byte.
const MIN_ENTRY_BYTES: u64 = 8 + 4 + 1;
/// Length of the name, number of dimensions, element type, offset.
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 4 + 8;
/// Elements to reserve for at most, where an element takes more memory than bytes in the file.
const RESERVE: u64 = 1024;

/// What one file says.
pub(crate) struct ParsedFile {
    pub(crate) version: u32,
    pub(crate) metadata: Metadata,
    pub(crate) alignment: u32,
    pub(crate) tensors: Vec<TensorInfo>,
}

/// Reads and checks one file; `part` is its position in the split set.
pub(crate) fn parse(source: &Arc<Source>, part: usize) -> Result<ParsedFile, GgufError> {
    let bytes = source.as_slice();
    let mut cursor = Cursor::new(bytes);
    let version = read_magic(bytes, &mut cursor)?;
    let tensor_count = cursor.u64(Place::Header)?;
    let entry_count = cursor.u64(Place::Header)?;
    check_count(
        "metadata entries",
        entry_count,
        MIN_ENTRY_BYTES,
        cursor.left(),
    )?;
    check_count("tensors", tensor_count, MIN_TENSOR_BYTES, cursor.left())?;

    let mut entries = Vec::with_capacity(entry_count.min(RESERVE) as usize);
    for index in 0..entry_count {
        entries.push(read_entry(&mut cursor, source, index)?);
    }
    let metadata = Metadata::from_entries(entries)?;
    metadata.str(ARCHITECTURE_KEY)?;
    let alignment = alignment_of(&metadata)?;

    let mut tensors = Vec::with_capacity(tensor_count.min(RESERVE) as usize);
    for index in 0..tensor_count {
        tensors.push(read_tensor(&mut cursor, index, part)?);
    }
    tensor::check_unique(&tensors)?;
    // The position is below 2^63 and the alignment below 2^32.
    let data_start = (cursor.position() as u64).next_multiple_of(u64::from(alignment));
    tensor::place(
        &mut tensors,
        data_start,
        u64::from(alignment),
        bytes.len() as u64,
    )?;
    Ok(ParsedFile {
        version,
        metadata,
        alignment,
        tensors,
    })
}

/// Checks magic and version.
fn read_magic(bytes: &[u8], cursor: &mut Cursor<'_>) -> Result<u32, GgufError> {
    if !bytes.starts_with(&MAGIC) && (bytes.is_empty() || !MAGIC.starts_with(bytes)) {
        return Err(not_gguf(bytes));
    }
    cursor.take(MAGIC.len() as u64, Place::Header)?;
    match cursor.u32(Place::Header)? {
        version @ (2 | 3) => Ok(version),
        1 => Err(GgufError::Version1),
        version if version != 0 && version.trailing_zeros() >= 16 => Err(GgufError::BigEndian {
            version: version.swap_bytes(),
        }),
        version => Err(GgufError::UnsupportedVersion { version }),
    }
}

/// Says what the file is instead, for the mistakes that people make.
fn not_gguf(bytes: &[u8]) -> GgufError {
    let begin = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let hint = match bytes {
        [] => " (the file is empty)",
        [b'<', ..] => "; it looks like a web page: the download went wrong",
        [b'P', b'K', 3, 4, ..] => "; it looks like a PyTorch checkpoint: convert it first",
        [b'l' | b'f', b'm', b'g', b'g', ..] | [b't', b'j', b'g', b'g', ..] => {
            "; it is a GGML file, older than GGUF: convert the model again"
        }
        [_, _, _, _, _, _, _, _, b'{', ..] => {
            "; it looks like a safetensors file: convert it first"
        }
        _ if bytes.starts_with(b"version https://git-lfs") => {
            "; it is a Git LFS pointer: fetch the file itself with `git lfs pull`"
        }
        _ => "",
    };
    GgufError::NotGguf {
        found: format!("\"{}\"", begin.escape_ascii()),
        hint,
    }
}

fn check_count(what: &'static str, count: u64, min_bytes: u64, left: u64) -> Result<(), GgufError> {
    if count > left / min_bytes {
        return Err(GgufError::CountTooLarge { what, count, left });
    }
    Ok(())
}

fn read_entry(
    cursor: &mut Cursor<'_>,
    source: &Arc<Source>,
    index: u64,
) -> Result<(String, Value), GgufError> {
    let key = cursor.string(Place::Entry(index))?;
    let bad = |problem| GgufError::BadKey { index, problem };
    if key.is_empty() {
        return Err(bad("empty"));
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(bad("longer than 65535 bytes"));
    }
    let key = std::str::from_utf8(key).map_err(|_| bad("not UTF-8"))?;
    let place = Place::Value(index, key);
    let value_type = read_value_type(cursor, place)?;
    let value = match value_type {
        ValueType::String => {
            let bytes = cursor.string(place)?;
            Value::String(GgufString(view(source, cursor, bytes.len(), place)?))
        }
        ValueType::Array => Value::Array(read_array(cursor, source, place, 1)?),
        scalar => {
            let width = scalar.scalar_bytes().unwrap_or_default();
            let bytes = cursor.take(width as u64, place)?;
            check_bools(scalar, bytes, place)?;
            decode(scalar, bytes).ok_or_else(|| cursor.short(0, place))?
        }
    };
    Ok((key.to_owned(), value))
}

fn read_value_type(cursor: &mut Cursor<'_>, place: Place<'_>) -> Result<ValueType, GgufError> {
    let id = cursor.u32(place)?;
    ValueType::from_id(id).ok_or_else(|| GgufError::UnknownValueType {
        place: place.to_string(),
        id,
    })
}

/// A shared view of the `len` bytes before the cursor.
fn view(
    source: &Arc<Source>,
    cursor: &Cursor<'_>,
    len: usize,
    place: Place<'_>,
) -> Result<SharedBytes, GgufError> {
    let end = cursor.position();
    let start = end.saturating_sub(len);
    SharedBytes::new(source, start, end).ok_or_else(|| cursor.short(0, place))
}

fn check_bools(value_type: ValueType, bytes: &[u8], place: Place<'_>) -> Result<(), GgufError> {
    if value_type != ValueType::Bool {
        return Ok(());
    }
    match bytes.iter().find(|&&byte| byte > 1) {
        None => Ok(()),
        Some(&found) => Err(GgufError::BadBool {
            place: place.to_string(),
            found,
        }),
    }
}

fn read_array(
    cursor: &mut Cursor<'_>,
    source: &Arc<Source>,
    place: Place<'_>,
    depth: usize,
) -> Result<Array, GgufError> {
    if depth > MAX_ARRAY_DEPTH {
        return Err(GgufError::NestedTooDeep {
            place: place.to_string(),
            limit: MAX_ARRAY_DEPTH,
        });
    }
    let element_type = read_value_type(cursor, place)?;
    let count = cursor.u64(place)?;
    let min_bytes = count.saturating_mul(element_type.min_bytes() as u64);
    if min_bytes > cursor.left() {
        return Err(cursor.short(min_bytes, place));
    }
    match element_type {
        ValueType::String => read_strings(cursor, source, count, place).map(Array::Strings),
        ValueType::Array => {
            let mut arrays = Vec::with_capacity(count.min(RESERVE) as usize);
            for _ in 0..count {
                arrays.push(read_array(cursor, source, place, depth + 1)?);
            }
            Ok(Array::Arrays(arrays))
        }
        scalar => {
            let bytes = cursor.take(min_bytes, place)?;
            check_bools(scalar, bytes, place)?;
            let bytes = view(source, cursor, bytes.len(), place)?;
            let array = ScalarArray::new(scalar, bytes).ok_or_else(|| cursor.short(0, place))?;
            Ok(Array::Scalars(array))
        }
    }
}

/// One pass over the lengths; the strings themselves are not looked at.
fn read_strings(
    cursor: &mut Cursor<'_>,
    source: &Arc<Source>,
    count: u64,
    place: Place<'_>,
) -> Result<StringArray, GgufError> {
    let start = cursor.position();
    // The caller checked that `count` lengths fit in what is left, so this is at most the size of the file.
    let mut starts = Vec::with_capacity((count as usize).saturating_add(1));
    for _ in 0..count {
        let string = cursor.string(place)?;
        starts.push(cursor.position() - start - string.len());
    }
    let len = cursor.position() - start;
    starts.push(len.saturating_add(LENGTH_BYTES));
    Ok(StringArray::new(view(source, cursor, len, place)?, starts))
}

/// The alignment that the metadata asks for: an integer of any width that is a power of two.
pub(crate) fn alignment_of(metadata: &Metadata) -> Result<u32, GgufError> {
    let Some(value) = metadata.get(ALIGNMENT_KEY) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    let Some(number) = value.integer() else {
        return Err(GgufError::WrongType {
            key: ALIGNMENT_KEY.to_owned(),
            expected: "u32",
            found: value.describe(),
        });
    };
    u32::try_from(number)
        .ok()
        .filter(|n| n.is_power_of_two())
        .ok_or_else(|| GgufError::BadAlignment {
            found: number.to_string(),
        })
}

fn read_tensor(cursor: &mut Cursor<'_>, index: u64, part: usize) -> Result<TensorInfo, GgufError> {
    let name = cursor.string(Place::Tensor(index))?;
    let bad = |problem| GgufError::BadTensorName { index, problem };
    if name.is_empty() {
        return Err(bad("empty"));
    }
    if name.len() > MAX_KEY_BYTES {
        return Err(bad("longer than 65535 bytes"));
    }
    let name = std::str::from_utf8(name).map_err(|_| bad("not UTF-8"))?;
    let place = Place::TensorInfo(index, name);
    let found = cursor.u32(place)?;
    if found > MAX_DIMENSIONS as u32 {
        return Err(GgufError::TooManyDimensions {
            tensor: shown(name),
            found,
        });
    }
    let mut dims = Vec::with_capacity(found as usize);
    for _ in 0..found {
        dims.push(cursor.u64(place)?);
    }
    let id = cursor.u32(place)?;
    let element_type = ElementType::from_id(id).ok_or_else(|| GgufError::UnknownElementType {
        tensor: shown(name),
        id,
        note: retired(id),
    })?;
    let offset = cursor.u64(place)?;
    Ok(TensorInfo {
        byte_len: tensor::byte_len(name, &dims, element_type)?,
        name: name.to_owned(),
        dims,
        element_type,
        part,
        offset,
        start: 0,
        end: 0,
    })
}

/// What is known of ids that GGUF once had and dropped.
fn retired(id: u32) -> &'static str {
    match id {
        4 | 5 => " (Q4_2 and Q4_3 were removed from the format): quantize the model again",
        31..=33 => {
            " (Q4_0_4_4, Q4_0_4_8 and Q4_0_8_8 were removed from the format): use the Q4_0 file of the model"
        }
        36..=38 => {
            " (IQ4_NL_4_4, IQ4_NL_4_8 and IQ4_NL_8_8 were removed from the format): use the IQ4_NL file of the model"
        }
        _ => "; the file is damaged or made by a newer program",
    }
}
