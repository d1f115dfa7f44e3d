//! Arrays of metadata values, left where they are in the file and decoded when asked for.

use std::fmt;

use crate::bytes::SharedBytes;
use crate::value::{GgufString, Value, ValueType};

/// An array value.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Numbers or booleans.
    Scalars(ScalarArray),
    /// Strings.
    Strings(StringArray),
    /// Arrays, which need not be of one type or length.
    Arrays(Vec<Array>),
}

impl Array {
    /// The type of the elements.
    pub fn element_type(&self) -> ValueType {
        match self {
            Self::Scalars(scalars) => scalars.element_type,
            Self::Strings(_) => ValueType::String,
            Self::Arrays(_) => ValueType::Array,
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Scalars(scalars) => scalars.len(),
            Self::Strings(strings) => strings.len(),
            Self::Arrays(arrays) => arrays.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`.
    pub fn get(&self, index: usize) -> Option<Value> {
        match self {
            Self::Scalars(scalars) => scalars.get(index),
            Self::Strings(strings) => strings.shared(index).map(|s| Value::String(GgufString(s))),
            Self::Arrays(arrays) => arrays.get(index).cloned().map(Value::Array),
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        (0..self.len()).map_while(|index| self.get(index))
    }
}

/// An array of numbers or booleans of one type.
#[derive(Clone, PartialEq)]
pub struct ScalarArray {
    element_type: ValueType,
    /// Little-endian, a whole number of elements.
    bytes: SharedBytes,
}

impl ScalarArray {
    /// `None` when the type is no scalar or the bytes are not whole elements.
    pub(crate) fn new(element_type: ValueType, bytes: SharedBytes) -> Option<Self> {
        let width = element_type.scalar_bytes()?;
        bytes.len().is_multiple_of(width).then_some(Self {
            element_type,
            bytes,
        })
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ValueType {
        self.element_type
    }

    /// The elements as they lie in the file: little-endian, without gaps.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The element at `index`.
    pub fn get(&self, index: usize) -> Option<Value> {
        let start = index.checked_mul(self.width())?;
        let end = start.checked_add(self.width())?;
        decode(self.element_type, self.bytes.get(start..end)?)
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        self.bytes
            .chunks_exact(self.width())
            .map_while(|bytes| decode(self.element_type, bytes))
    }

    /// A value of the element type, to ask the type what it is.
    pub(crate) fn zero(&self) -> Value {
        let zeros = [0; 8];
        let bytes = zeros.get(..self.width()).unwrap_or_default();
        decode(self.element_type, bytes).unwrap_or(Value::U8(0))
    }

    fn width(&self) -> usize {
        self.element_type.scalar_bytes().unwrap_or(1)
    }
}

impl fmt::Debug for ScalarArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A scalar from exactly its bytes; `None` for strings, arrays and a wrong number of bytes.
pub(crate) fn decode(value_type: ValueType, bytes: &[u8]) -> Option<Value> {
    Some(match value_type {
        ValueType::U8 => Value::U8(u8::from_le_bytes(bytes.try_into().ok()?)),
        ValueType::I8 => Value::I8(i8::from_le_bytes(bytes.try_into().ok()?)),
        ValueType::U16 => Value::U16(u16::from_le_bytes(bytes.try_into().ok()?)),
        ValueType::I16 => Value::I16(i16::from_le_bytes(bytes.try_into().ok()?)),
        ValueType::U32 => Value::U32(u32::from_le_bytes(bytes.try_into().ok()?)),
        ValueType::I32 => Value::I32(i32::from_le_bytes(bytes.try_into().ok()?)),
        ValueType::F32 => Value::F32(f32::from_le_bytes(bytes.try_into().ok()?)),
        ValueType::Bool => Value::Bool(u8::from_le_bytes(bytes.try_into().ok()?) != 0),
        ValueType::U64 => Value::U64(u64::from_le_bytes(bytes.try_into().ok()?)),
        ValueType::I64 => Value::I64(i64::from_le_bytes(bytes.try_into().ok()?)),
        ValueType::F64 => Value::F64(f64::from_le_bytes(bytes.try_into().ok()?)),
        ValueType::String | ValueType::Array => return None,
    })
}

macro_rules! array_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<&[$from]> for Array {
            fn from(values: &[$from]) -> Self {
                Self::Scalars(ScalarArray {
                    element_type: ValueType::$variant,
                    bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().into(),
                })
            }
        }
        impl From<&[$from]> for Value {
            fn from(values: &[$from]) -> Self {
                Self::Array(values.into())
            }
        }
    )*};
}

array_from! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, u64 => U64, i64 => I64, f64 => F64,
}

impl From<&[bool]> for Array {
    fn from(values: &[bool]) -> Self {
        Self::Scalars(ScalarArray {
            element_type: ValueType::Bool,
            bytes: values
                .iter()
                .map(|&b| u8::from(b))
                .collect::<Vec<u8>>()
                .into(),
        })
    }
}

impl From<&[bool]> for Value {
    fn from(values: &[bool]) -> Self {
        Self::Array(values.into())
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for StringArray {
    fn from_iter<I: IntoIterator<Item = T>>(strings: I) -> Self {
        let mut bytes = Vec::new();
        let mut starts = Vec::new();
        for string in strings {
            let string = string.as_ref();
            bytes.extend_from_slice(&(string.len() as u64).to_le_bytes());
            starts.push(bytes.len());
            bytes.extend_from_slice(string);
        }
        starts.push(bytes.len().saturating_add(LENGTH_BYTES));
        Self {
            bytes: bytes.into(),
            starts,
        }
    }
}

impl From<StringArray> for Value {
    fn from(strings: StringArray) -> Self {
        Self::Array(Array::Strings(strings))
    }
}

/// Bytes of the length before each string.
pub(crate) const LENGTH_BYTES: usize = 8;

/// An array of strings: the bytes stay in the file, only where each string begins is kept (8 bytes a string),
/// so that a vocabulary of 150,000 entries costs about a millisecond to open.
#[derive(Clone)]
pub struct StringArray {
    /// Lengths and strings in turn, as in the file.
    bytes: SharedBytes,
    /// Where each string begins in `bytes`, and where a further one would: one more than there are strings.
    /// String `i` ends where the length of the next begins.
    starts: Vec<usize>,
}

impl StringArray {
    /// Takes what the reader has checked: `starts` ascending by at least the bytes of a length.
    pub(crate) fn new(bytes: SharedBytes, starts: Vec<usize>) -> Self {
        Self { bytes, starts }
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the string at `index`.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = self.range(index)?;
        self.bytes.get(start..end)
    }

    /// The strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// Lengths and strings in turn, as in the file.
    pub(crate) fn as_file_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn shared(&self, index: usize) -> Option<SharedBytes> {
        let (start, end) = self.range(index)?;
        self.bytes.slice(start, end)
    }

    fn range(&self, index: usize) -> Option<(usize, usize)> {
        let start = *self.starts.get(index)?;
        let end = self
            .starts
            .get(index.checked_add(1)?)?
            .checked_sub(LENGTH_BYTES)?;
        Some((start, end))
    }
}

impl PartialEq for StringArray {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Debug for StringArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(String::from_utf8_lossy))
            .finish()
    }
}
