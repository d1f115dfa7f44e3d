//! Writes GGUF files: whole, without tensors, or as a split set.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use puna_quant::ElementType;

use crate::array::Array;
use crate::encode::{self, Description};
use crate::error::{GgufError, shown};
use crate::gguf::Gguf;
use crate::metadata::Metadata;
use crate::parse::{ALIGNMENT_KEY, ARCHITECTURE_KEY, MAX_ARRAY_DEPTH, MAX_KEY_BYTES, alignment_of};
use crate::split::{SPLIT_COUNT, SPLIT_NUMBER, SPLIT_TENSORS, SplitLimit, SplitName};
use crate::tensor;
use crate::unfinished::Unfinished;
use crate::value::Value;

/// The longest tensor name that every reader of the format takes, bytes.
pub const MAX_TENSOR_NAME_BYTES: usize = 63;

/// Builds a file: metadata in order, tensors in order, then one of [`write_to`](Self::write_to),
/// [`write_file`](Self::write_file) and [`write_split`](Self::write_split). What it writes, [`Gguf`] reads
/// back identical; keys and tensor names cannot occur twice. Without tensors it writes a metadata-only file.
///
/// ```
/// use puna_gguf::{ElementType, Gguf, GgufWriter};
/// let mut writer = GgufWriter::new();
/// writer.set("general.architecture", "llama")?.set("llama.block_count", 2u32)?;
/// writer.tensor("output_norm.weight", &[2], ElementType::F32, vec![0u8; 8])?;
/// let mut file = Vec::new();
/// writer.write_to(&mut file)?;
/// let gguf = Gguf::from_bytes(file)?;
/// assert_eq!(gguf.metadata().u32("llama.block_count")?, Some(2));
/// # Ok::<(), puna_gguf::GgufError>(())
/// ```
#[derive(Debug)]
pub struct GgufWriter<'a> {
    version: u32,
    metadata: Metadata,
    tensors: Vec<Pending<'a>>,
    names: HashSet<String>,
}

#[derive(Debug)]
struct Pending<'a> {
    name: String,
    dims: Vec<u64>,
    element_type: ElementType,
    byte_len: usize,
    data: Data<'a>,
}

type Stream<'a> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + 'a>;

enum Data<'a> {
    Bytes(Cow<'a, [u8]>),
    Stream(Stream<'a>),
}

impl fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Stream(_) => write!(f, "a stream"),
        }
    }
}

impl Default for GgufWriter<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> GgufWriter<'a> {
    /// An empty file of version 3 with the usual alignment of 32.
    pub fn new() -> Self {
        Self {
            version: 3,
            metadata: Metadata::default(),
            tensors: Vec::new(),
            names: HashSet::new(),
        }
    }

    /// A copy of an opened model: its version, metadata and tensors, as one file if it was split. The tensor
    /// data is not copied before it is written.
    pub fn from_gguf(gguf: &'a Gguf) -> Result<Self, GgufError> {
        let mut writer = Self::new();
        writer.version(gguf.version())?;
        for (key, value) in gguf.metadata().iter() {
            if !is_split_key(key) {
                writer.set(key, value.clone())?;
            }
        }
        for tensor in gguf.tensors() {
            writer.tensor(
                &tensor.name,
                &tensor.dims,
                tensor.element_type,
                gguf.data(tensor),
            )?;
        }
        Ok(writer)
    }

    /// The version to write: 2 or 3, which do not differ in little-endian files.
    pub fn version(&mut self, version: u32) -> Result<&mut Self, GgufError> {
        if !matches!(version, 2 | 3) {
            return Err(GgufError::UnsupportedVersion { version });
        }
        self.version = version;
        Ok(self)
    }

    /// Sets a key: a new one at the end, one that is there in its place. `general.alignment` is checked and
    /// written as u32; the `split.` keys are the writer's own.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> Result<&mut Self, GgufError> {
        if is_split_key(key) {
            return Err(GgufError::ReservedKey { key: shown(key) });
        }
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            return Err(GgufError::BadKey {
                index: self.metadata.len() as u64,
                problem: if key.is_empty() {
                    "empty"
                } else {
                    "longer than 65535 bytes"
                },
            });
        }
        let value = check_value(key, value.into())?;
        self.metadata.set(key, value);
        Ok(self)
    }

    /// Sets the alignment of tensor data: a power of two, in bytes.
    pub fn alignment(&mut self, alignment: u32) -> Result<&mut Self, GgufError> {
        self.set(ALIGNMENT_KEY, alignment)
    }

    /// The metadata so far.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Adds a tensor with its bytes. `dims`: innermost first, as in the file.
    pub fn tensor(
        &mut self,
        name: &str,
        dims: &[u64],
        element_type: ElementType,
        data: impl Into<Cow<'a, [u8]>>,
    ) -> Result<&mut Self, GgufError> {
        self.add(name, dims, element_type, Data::Bytes(data.into()))
    }

    /// Adds a tensor whose bytes `write` produces when the file is written, so that a model larger than the
    /// memory can be made. It must write exactly the bytes of the shape and type.
    pub fn stream(
        &mut self,
        name: &str,
        dims: &[u64],
        element_type: ElementType,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()> + 'a,
    ) -> Result<&mut Self, GgufError> {
        self.add(name, dims, element_type, Data::Stream(Box::new(write)))
    }

    fn add(
        &mut self,
        name: &str,
        dims: &[u64],
        element_type: ElementType,
        data: Data<'a>,
    ) -> Result<&mut Self, GgufError> {
        if name.is_empty() || name.len() > MAX_TENSOR_NAME_BYTES {
            return Err(GgufError::BadTensorName {
                index: self.tensors.len() as u64,
                problem: if name.is_empty() {
                    "empty"
                } else {
                    "longer than 63 bytes"
                },
            });
        }
        let byte_len = tensor::byte_len(name, dims, element_type)?;
        if let Data::Bytes(bytes) = &data {
            check_len(name, bytes.len() as u64, byte_len)?;
        }
        if !self.names.insert(name.to_owned()) {
            return Err(GgufError::DuplicateTensor {
                tensor: shown(name),
            });
        }
        self.tensors.push(Pending {
            name: name.to_owned(),
            dims: dims.to_vec(),
            element_type,
            byte_len,
            data,
        });
        Ok(self)
    }

    /// Writes the file and returns its size in bytes. The data of each tensor, the last one too, is padded
    /// with zeros to the alignment.
    pub fn write_to(self, out: &mut dyn Write) -> Result<u64, GgufError> {
        let alignment = alignment_of(&self.metadata)?;
        let mut descriptions = Vec::with_capacity(self.tensors.len());
        let mut offset = 0u64;
        for tensor in &self.tensors {
            descriptions.push(Description {
                name: &tensor.name,
                dims: &tensor.dims,
                type_id: tensor.element_type.id(),
                offset,
            });
            offset = padded_end(tensor, offset, alignment)?;
        }
        let header = encode::header(self.version, &self.metadata, &descriptions);
        let mut out = Counted { out, written: 0 };
        out.write_all(&header).map_err(GgufError::Write)?;
        pad(&mut out, alignment).map_err(GgufError::Write)?;
        for tensor in self.tensors {
            let before = out.written;
            match tensor.data {
                Data::Bytes(bytes) => out.write_all(&bytes),
                Data::Stream(write) => write(&mut out),
            }
            .map_err(GgufError::Write)?;
            check_len(&tensor.name, out.written - before, tensor.byte_len)?;
            pad(&mut out, alignment).map_err(GgufError::Write)?;
        }
        out.flush().map_err(GgufError::Write)?;
        Ok(out.written)
    }

    /// Writes the file beside `path` and renames it when it is complete: a model that is open under this
    /// name is not disturbed, and no half file is left when writing fails.
    pub fn write_file(self, path: &Path) -> Result<u64, GgufError> {
        Unfinished::write(self, path)?
            .finish()
            .map(|(_, byte_len)| byte_len)
    }

    /// Divides the file into the files of a split set, each ready to be written to
    /// [`SplitName::file_name`] of its number. The metadata goes into the first.
    pub fn split(self, limit: &SplitLimit) -> Result<Vec<GgufWriter<'a>>, GgufError> {
        limit.check()?;
        let alignment = alignment_of(&self.metadata)?;
        let alignment_set = self.metadata.contains(ALIGNMENT_KEY);
        let total = i32::try_from(self.tensors.len()).map_err(|_| GgufError::BadSplit {
            problem: "more than 2147483647 tensors",
        })?;
        let version = self.version;
        let mut parts: Vec<Self> = Vec::new();
        let mut part = Self {
            metadata: self.metadata,
            version,
            ..Self::new()
        };
        let mut bytes = 0;
        let mut room = !limit.metadata_alone;
        for tensor in self.tensors {
            let end = padded_end(&tensor, bytes, alignment)?;
            let fits = part.tensors.is_empty() || limit.allows(end, part.tensors.len());
            if !(room && fits) {
                parts.push(std::mem::replace(
                    &mut part,
                    Self {
                        version,
                        ..Self::new()
                    },
                ));
                if alignment_set {
                    part.alignment(alignment)?;
                }
                bytes = 0;
                room = true;
            }
            bytes = padded_end(&tensor, bytes, alignment)?;
            part.names.insert(tensor.name.clone());
            part.tensors.push(tensor);
        }
        parts.push(part);
        let count = u16::try_from(parts.len()).map_err(|_| GgufError::BadSplit {
            problem: "more than 65535 files; allow more in each",
        })?;
        for (part, number) in parts.iter_mut().zip(0u16..) {
            part.metadata.set(SPLIT_NUMBER, Value::U16(number));
            part.metadata.set(SPLIT_COUNT, Value::U16(count));
            part.metadata.set(SPLIT_TENSORS, Value::I32(total));
        }
        Ok(parts)
    }

    /// Writes a split set as `PREFIX-00001-of-00002.gguf` and so on, and returns the paths. The files get
    /// their names when all of them are complete.
    pub fn write_split(self, prefix: &Path, limit: &SplitLimit) -> Result<Vec<PathBuf>, GgufError> {
        let stem =
            prefix
                .file_name()
                .and_then(|name| name.to_str())
                .ok_or(GgufError::BadSplit {
                    problem: "the prefix has no file name, or one that is not UTF-8",
                })?;
        let parts = self.split(limit)?;
        let count = parts.len() as u32;
        let mut unfinished = Vec::with_capacity(parts.len());
        for (part, number) in parts.into_iter().zip(1..) {
            let name = SplitName::new(stem, number, count).ok_or(GgufError::BadSplit {
                problem: "more than 65535 files; allow more in each",
            })?;
            unfinished.push(Unfinished::write(
                part,
                &prefix.with_file_name(name.file_name()),
            )?);
        }
        let mut paths = Vec::with_capacity(unfinished.len());
        for file in unfinished {
            paths.push(file.finish()?.0);
        }
        Ok(paths)
    }
}

fn is_split_key(key: &str) -> bool {
    [SPLIT_NUMBER, SPLIT_COUNT, SPLIT_TENSORS].contains(&key)
}

/// Refuses what the reader would refuse.
fn check_value(key: &str, value: Value) -> Result<Value, GgufError> {
    if let Value::Array(array) = &value
        && depth(array) > MAX_ARRAY_DEPTH
    {
        return Err(GgufError::NestedTooDeep {
            place: format!("metadata key `{}`", shown(key)),
            limit: MAX_ARRAY_DEPTH,
        });
    }
    if key != ALIGNMENT_KEY && key != ARCHITECTURE_KEY {
        return Ok(value);
    }
    let mut alone = Metadata::default();
    alone.set(key, value.clone());
    alone.str(ARCHITECTURE_KEY)?;
    let alignment = alignment_of(&alone)?;
    Ok(if key == ALIGNMENT_KEY {
        Value::U32(alignment)
    } else {
        value
    })
}

/// How deep arrays are nested, counted no further than one beyond the limit.
fn depth(array: &Array) -> usize {
    fn count(array: &Array, left: usize) -> usize {
        match array {
            Array::Arrays(arrays) if left > 0 => {
                1 + arrays
                    .iter()
                    .map(|array| count(array, left - 1))
                    .max()
                    .unwrap_or(0)
            }
            _ => 1,
        }
    }
    count(array, MAX_ARRAY_DEPTH)
}

fn check_len(name: &str, found: u64, expected: usize) -> Result<(), GgufError> {
    if found == expected as u64 {
        return Ok(());
    }
    Err(GgufError::DataLength {
        tensor: shown(name),
        found,
        expected: expected as u64,
    })
}

/// Where the tensor after one at `offset` begins.
fn padded_end(tensor: &Pending<'_>, offset: u64, alignment: u32) -> Result<u64, GgufError> {
    offset
        .checked_add(tensor.byte_len as u64)
        .and_then(|end| end.checked_next_multiple_of(u64::from(alignment)))
        .ok_or_else(|| GgufError::OffsetTooLarge {
            tensor: shown(&tensor.name),
            offset,
            len: tensor.byte_len as u64,
        })
}

fn pad(out: &mut Counted<'_>, alignment: u32) -> io::Result<()> {
    let alignment = u64::from(alignment);
    let missing = out.written.next_multiple_of(alignment) - out.written;
    io::copy(&mut io::Read::take(io::repeat(0), missing), out).map(|_| ())
}

/// Counts what passes.
struct Counted<'w> {
    out: &'w mut dyn Write,
    written: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.written = self.written.saturating_add(n as u64);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
