//! Builds the bytes of a file by hand, right or wrong, without the crate's own writer.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use puna_gguf::{Gguf, GgufError};

pub(crate) const U8: u32 = 0;
pub(crate) const U32: u32 = 4;
pub(crate) const I32: u32 = 5;
pub(crate) const BOOL: u32 = 7;
pub(crate) const STRING: u32 = 8;
pub(crate) const ARRAY: u32 = 9;
pub(crate) const U64: u32 = 10;

pub(crate) const TYPE_F32: u32 = 0;
pub(crate) const TYPE_Q4_0: u32 = 2;

/// Header, entries and tensors of a file, and what follows them.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) magic: [u8; 4],
    pub(crate) version: u32,
    pub(crate) entry_count: Option<u64>,
    pub(crate) tensor_count: Option<u64>,
    pub(crate) alignment: usize,
    pub(crate) entries: Vec<Vec<u8>>,
    pub(crate) tensors: Vec<Vec<u8>>,
    pub(crate) data: Vec<u8>,
}

impl Raw {
    pub(crate) fn new() -> Self {
        Self {
            magic: *b"GGUF",
            version: 3,
            entry_count: None,
            tensor_count: None,
            alignment: 32,
            entries: Vec::new(),
            tensors: Vec::new(),
            data: Vec::new(),
        }
    }

    /// An entry whose value is `value` after the type.
    pub(crate) fn entry(mut self, key: &[u8], value_type: u32, value: &[u8]) -> Self {
        let mut bytes = string(key);
        bytes.extend(value_type.to_le_bytes());
        bytes.extend(value);
        self.entries.push(bytes);
        self
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.entry(key.as_bytes(), U32, &value.to_le_bytes())
    }

    pub(crate) fn string(self, key: &str, value: &str) -> Self {
        self.entry(key.as_bytes(), STRING, &string(value.as_bytes()))
    }

    pub(crate) fn array(self, key: &str, element_type: u32, count: u64, elements: &[u8]) -> Self {
        self.entry(key.as_bytes(), ARRAY, &array(element_type, count, elements))
    }

    pub(crate) fn tensor(mut self, name: &str, dims: &[u64], type_id: u32, offset: u64) -> Self {
        let mut bytes = string(name.as_bytes());
        bytes.extend((dims.len() as u32).to_le_bytes());
        for dim in dims {
            bytes.extend(dim.to_le_bytes());
        }
        bytes.extend(type_id.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        self.tensors.push(bytes);
        self
    }

    /// Bytes of the data section.
    pub(crate) fn data(mut self, len: usize) -> Self {
        self.data = (0..len).map(|i| i as u8).collect();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = self.magic.to_vec();
        out.extend(self.version.to_le_bytes());
        let tensors = self.tensor_count.unwrap_or(self.tensors.len() as u64);
        out.extend(tensors.to_le_bytes());
        let entries = self.entry_count.unwrap_or(self.entries.len() as u64);
        out.extend(entries.to_le_bytes());
        for part in self.entries.iter().chain(&self.tensors) {
            out.extend(part);
        }
        if !self.data.is_empty() {
            out.resize(out.len().next_multiple_of(self.alignment), 0);
            out.extend(&self.data);
        }
        out
    }

    pub(crate) fn open(&self) -> Result<Gguf, GgufError> {
        Gguf::from_bytes(self.bytes())
    }

    /// The error of opening, which there must be.
    pub(crate) fn error(&self) -> GgufError {
        match self.open() {
            Err(error) => error,
            Ok(gguf) => panic!("opened, though it is wrong: {gguf:?}"),
        }
    }
}

pub(crate) fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = (bytes.len() as u64).to_le_bytes().to_vec();
    out.extend(bytes);
    out
}

pub(crate) fn array(element_type: u32, count: u64, elements: &[u8]) -> Vec<u8> {
    let mut out = element_type.to_le_bytes().to_vec();
    out.extend(count.to_le_bytes());
    out.extend(elements);
    out
}

/// A small file with a value of every type, an array of every kind and three tensors.
pub(crate) fn sample() -> Raw {
    let strings: Vec<u8> = ["<unk>", "", "▁the"]
        .iter()
        .flat_map(|s| string(s.as_bytes()))
        .collect();
    let nested: Vec<u8> = [
        array(U32, 2, &[1, 0, 0, 0, 2, 0, 0, 0]),
        array(STRING, 1, &string(b"x")),
        array(ARRAY, 1, &array(U8, 0, &[])),
    ]
    .concat();
    Raw::new()
        .string("general.architecture", "llama")
        .entry(b"u8", 0, &[200])
        .entry(b"i8", 1, &[0xff])
        .entry(b"u16", 2, &60_000u16.to_le_bytes())
        .entry(b"i16", 3, &(-2i16).to_le_bytes())
        .u32("u32", 4_000_000_000)
        .entry(b"i32", 5, &(-3i32).to_le_bytes())
        .entry(b"f32", 6, &1.5f32.to_le_bytes())
        .entry(b"bool", BOOL, &[1])
        .entry(b"u64", 10, &u64::MAX.to_le_bytes())
        .entry(b"i64", 11, &i64::MIN.to_le_bytes())
        .entry(b"f64", 12, &(-0.25f64).to_le_bytes())
        .array("tokens", STRING, 3, &strings)
        .array("flags", BOOL, 2, &[0, 1])
        .array("numbers", I32, 2, &[7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])
        .array("nested", ARRAY, 3, &nested)
        .tensor("a.weight", &[4, 2], TYPE_F32, 0)
        .tensor("b.weight", &[32], TYPE_Q4_0, 64)
        .tensor("scalar", &[], TYPE_F32, 32)
        .data(64 + 18)
}
