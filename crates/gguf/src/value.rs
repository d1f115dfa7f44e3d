//! Metadata values and their types.

use std::fmt;
use std::str::Utf8Error;

use crate::array::Array;
use crate::bytes::SharedBytes;

/// The type of a metadata value, with the ids that the file uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ValueType {
    /// Unsigned, 8 bits.
    U8 = 0,
    /// Signed, 8 bits.
    I8 = 1,
    /// Unsigned, 16 bits.
    U16 = 2,
    /// Signed, 16 bits.
    I16 = 3,
    /// Unsigned, 32 bits.
    U32 = 4,
    /// Signed, 32 bits.
    I32 = 5,
    /// Floating point, 32 bits.
    F32 = 6,
    /// One byte, 0 or 1.
    Bool = 7,
    /// 64-bit length and that many bytes.
    String = 8,
    /// Element type, 64-bit count, elements.
    Array = 9,
    /// Unsigned, 64 bits.
    U64 = 10,
    /// Signed, 64 bits.
    I64 = 11,
    /// Floating point, 64 bits.
    F64 = 12,
}

impl ValueType {
    /// Every type, in the order of the ids.
    pub const ALL: [Self; 13] = [
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::Bool,
        Self::String,
        Self::Array,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// The type with this id in the file.
    pub fn from_id(id: u32) -> Option<Self> {
        usize::try_from(id)
            .ok()
            .and_then(|id| Self::ALL.get(id))
            .copied()
    }

    /// The id in the file.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// The name, as in `u32` or `string`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Array => "array",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F64 => "f64",
        }
    }

    /// Bytes of one value; `None` for strings and arrays, which vary.
    pub const fn scalar_bytes(self) -> Option<usize> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::String | Self::Array => None,
        }
    }

    /// Bytes that one value takes in the file at least.
    pub(crate) const fn min_bytes(self) -> usize {
        match self.scalar_bytes() {
            Some(bytes) => bytes,
            None if matches!(self, Self::String) => 8,
            None => 12,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A string as it lies in the file: bytes that should be UTF-8, but vocabularies and old files hold others too.
#[derive(Clone, PartialEq, Eq)]
pub struct GgufString(pub(crate) SharedBytes);

impl GgufString {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text; an error when the bytes are not UTF-8. Checked anew at each call, since the file is mapped.
    pub fn as_str(&self) -> Result<&str, Utf8Error> {
        std::str::from_utf8(&self.0)
    }
}

impl From<&str> for GgufString {
    fn from(text: &str) -> Self {
        Self(SharedBytes::from(text.as_bytes().to_vec()))
    }
}

impl From<String> for GgufString {
    fn from(text: String) -> Self {
        Self(SharedBytes::from(text.into_bytes()))
    }
}

impl From<Vec<u8>> for GgufString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(SharedBytes::from(bytes))
    }
}

impl fmt::Display for GgufString {
    /// The text, with replacement characters where the bytes are not UTF-8.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for GgufString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// One metadata value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Unsigned, 8 bits.
    U8(u8),
    /// Signed, 8 bits.
    I8(i8),
    /// Unsigned, 16 bits.
    U16(u16),
    /// Signed, 16 bits.
    I16(i16),
    /// Unsigned, 32 bits.
    U32(u32),
    /// Signed, 32 bits.
    I32(i32),
    /// Floating point, 32 bits.
    F32(f32),
    /// A boolean.
    Bool(bool),
    /// Text, not copied out of the file.
    String(GgufString),
    /// A list, not copied out of the file.
    Array(Array),
    /// Unsigned, 64 bits.
    U64(u64),
    /// Signed, 64 bits.
    I64(i64),
    /// Floating point, 64 bits.
    F64(f64),
}

impl Value {
    /// The type of the value.
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::Array(_) => ValueType::Array,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// The number, when the value is an integer of any width.
    pub const fn integer(&self) -> Option<i128> {
        match *self {
            Self::U8(n) => Some(n as i128),
            Self::I8(n) => Some(n as i128),
            Self::U16(n) => Some(n as i128),
            Self::I16(n) => Some(n as i128),
            Self::U32(n) => Some(n as i128),
            Self::I32(n) => Some(n as i128),
            Self::U64(n) => Some(n as i128),
            Self::I64(n) => Some(n as i128),
            _ => None,
        }
    }

    /// The number rounded to 32 bits, when the value is a floating-point number.
    pub const fn float(&self) -> Option<f32> {
        match *self {
            Self::F32(x) => Some(x),
            Self::F64(x) => Some(x as f32),
            _ => None,
        }
    }

    /// What to call it in an error message: `u32`, `array of string`.
    pub fn describe(&self) -> String {
        match self {
            Self::Array(array) => format!("array of {}", array.element_type()),
            other => other.value_type().name().to_owned(),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

value_from! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, bool => Bool,
    u64 => U64, i64 => I64, f64 => F64, &str => String, String => String, GgufString => String, Array => Array,
}
