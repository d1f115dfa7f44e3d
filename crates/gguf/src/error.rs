//! What can be wrong with a GGUF file, and the words for it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be read, a key had no such value, or a file could not be written.
///
/// Errors of [`Gguf::open`](crate::Gguf::open) are wrapped in [`GgufError::InFile`], which names the file;
/// [`GgufError::root`] looks through it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The operating system refused to open, read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The path is a folder, a pipe or a device.
    #[error("{}: not a regular file; give the path of a .gguf file", path.display())]
    NotAFile {
        /// The path as given.
        path: PathBuf,
    },
    /// Something is wrong inside the file named here.
    #[error("{}: {problem}{hint}", file.display())]
    InFile {
        /// The file.
        file: PathBuf,
        /// What is wrong in it.
        problem: Box<GgufError>,
        /// What to do about it, as far as the name of the file tells; may be empty.
        hint: &'static str,
    },

    /// The file does not begin with `GGUF`.
    #[error("not a GGUF file: it begins with {found}, expected \"GGUF\"{hint}")]
    NotGguf {
        /// The first bytes, printable.
        found: String,
        /// What the file seems to be instead; may be empty.
        hint: &'static str,
    },
    /// The file has the first version of the format, which had 32-bit lengths and was never widely used.
    #[error(
        "GGUF version 1 is not supported (versions 2 and 3 are); convert the model again with a current converter"
    )]
    Version1,
    /// The file was written for a machine of the other byte order.
    #[error(
        "a big-endian GGUF file (version {version}); only little-endian files are supported: convert it with gguf-py's gguf_convert_endian.py"
    )]
    BigEndian {
        /// Its version, bytes swapped.
        version: u32,
    },
    /// The file has a version that this program does not know.
    #[error("GGUF version {version} is not supported (versions 2 and 3 are)")]
    UnsupportedVersion {
        /// The version found.
        version: u32,
    },
    /// A count in the header is larger than the file could hold.
    #[error("the header announces {count} {what}, more than the {left} bytes after it can hold")]
    CountTooLarge {
        /// Which count.
        what: &'static str,
        /// The count found.
        count: u64,
        /// Bytes between the header and the end of the file.
        left: u64,
    },
    /// The file ends too early, or an entry claims more bytes than there are.
    #[error("the file ends inside {place}: expected at least {expected} bytes, have {have}")]
    Truncated {
        /// The entry or tensor that is not complete.
        place: String,
        /// The size that the file must have at least.
        expected: u64,
        /// The size that it has.
        have: u64,
    },

    /// A metadata key is empty, too long or not UTF-8.
    #[error("metadata entry {index}: the key is {problem}")]
    BadKey {
        /// Position of the entry, from 0.
        index: u64,
        /// What is wrong with the key.
        problem: &'static str,
    },
    /// A metadata key occurs twice.
    #[error("metadata key `{key}` occurs twice (entries {first} and {second})")]
    DuplicateKey {
        /// The key.
        key: String,
        /// Position of the first, from 0.
        first: u64,
        /// Position of the second.
        second: u64,
    },
    /// A value type id that GGUF does not define.
    #[error("{place}: value type {id} does not exist (0 to 12 do)")]
    UnknownValueType {
        /// The entry.
        place: String,
        /// The id found.
        id: u32,
    },
    /// A boolean that is neither 0 nor 1.
    #[error("{place}: a boolean is stored as {found}, expected 0 or 1")]
    BadBool {
        /// The entry.
        place: String,
        /// The byte found.
        found: u8,
    },
    /// Arrays inside arrays inside arrays, beyond [`MAX_ARRAY_DEPTH`](crate::MAX_ARRAY_DEPTH).
    #[error("{place}: arrays are nested more than {limit} deep")]
    NestedTooDeep {
        /// The entry.
        place: String,
        /// The limit.
        limit: usize,
    },
    /// A key has a value of another type than its meaning asks for.
    #[error("metadata key `{key}`: found {found}, expected {expected}")]
    WrongType {
        /// The key.
        key: String,
        /// The types that would do.
        expected: &'static str,
        /// The type found.
        found: String,
    },
    /// A number does not fit what its key asks for.
    #[error("metadata key `{key}`: {found} is out of range, expected {expected}")]
    OutOfRange {
        /// The key, with the position in its array where there is one.
        key: String,
        /// What would do.
        expected: &'static str,
        /// The number found.
        found: String,
    },
    /// A text is not UTF-8.
    #[error("metadata key `{key}`: the text is not UTF-8 (byte {at} is wrong)")]
    NotUtf8 {
        /// The key.
        key: String,
        /// Position of the first wrong byte.
        at: usize,
    },
    /// `general.alignment` is no power of two.
    #[error(
        "metadata key `general.alignment`: {found} is not usable, expected a power of two from 1 to 2147483648 (other programs round offsets with a bit mask, so any other value would be read differently by each)"
    )]
    BadAlignment {
        /// The number found.
        found: String,
    },

    /// A tensor name is empty, too long or not UTF-8.
    #[error("tensor {index}: the name is {problem}")]
    BadTensorName {
        /// Position in the list of tensors, from 0.
        index: u64,
        /// What is wrong with the name.
        problem: &'static str,
    },
    /// Two tensors have one name.
    #[error("tensor `{tensor}` occurs twice")]
    DuplicateTensor {
        /// The name.
        tensor: String,
    },
    /// A tensor has more dimensions than the format allows.
    #[error("tensor `{tensor}`: {found} dimensions, expected at most 4")]
    TooManyDimensions {
        /// The tensor.
        tensor: String,
        /// The number found.
        found: u32,
    },
    /// A dimension is zero.
    #[error(
        "tensor `{tensor}`: dimension {dimension} of shape {shape:?} is 0, expected at least 1"
    )]
    ZeroDimension {
        /// The tensor.
        tensor: String,
        /// Position of the dimension, from 0.
        dimension: usize,
        /// All dimensions, innermost first.
        shape: Vec<u64>,
    },
    /// An element type id that is not in the table.
    #[error("tensor `{tensor}`: element type {id} is unknown{note}")]
    UnknownElementType {
        /// The tensor.
        tensor: String,
        /// The id found.
        id: u32,
        /// What is known of a retired id; may be empty.
        note: &'static str,
    },
    /// The rows of a tensor are not whole blocks of its element type.
    #[error(
        "tensor `{tensor}`: a row of shape {shape:?} has {row} elements, expected a multiple of {block} for type {element_type}"
    )]
    BrokenRow {
        /// The tensor.
        tensor: String,
        /// All dimensions, innermost first.
        shape: Vec<u64>,
        /// Elements of a row.
        row: u64,
        /// Elements of a block.
        block: u64,
        /// Name of the element type.
        element_type: &'static str,
    },
    /// The number of elements or bytes of a tensor is beyond what a machine can address.
    #[error("tensor `{tensor}`: shape {shape:?} is too large (its size overflows)")]
    ShapeTooLarge {
        /// The tensor.
        tensor: String,
        /// All dimensions, innermost first.
        shape: Vec<u64>,
    },
    /// A tensor begins at an offset that is no multiple of the alignment.
    #[error("tensor `{tensor}`: offset {offset} is not a multiple of the alignment {alignment}")]
    Misaligned {
        /// The tensor.
        tensor: String,
        /// Offset in the data section, bytes.
        offset: u64,
        /// The alignment of the file.
        alignment: u64,
    },
    /// A tensor would end beyond the largest possible file.
    #[error(
        "tensor `{tensor}`: {len} bytes at offset {offset} lie outside of any file (the end overflows)"
    )]
    OffsetTooLarge {
        /// The tensor.
        tensor: String,
        /// Offset in the data section, bytes.
        offset: u64,
        /// Size of the tensor, bytes.
        len: u64,
    },
    /// Two tensors share bytes.
    #[error(
        "tensors `{first}` and `{second}` overlap: the first ends at byte {end} of the data, the second begins at {begin}"
    )]
    Overlap {
        /// The tensor with the smaller offset.
        first: String,
        /// The other.
        second: String,
        /// End of the first in the data section.
        end: u64,
        /// Begin of the second in the data section.
        begin: u64,
    },

    /// Files of a split set are not there.
    #[error("the model is split into {count} files and {} missing: {}", if missing.len() == 1 { "one is" } else { "some are" }, list(missing))]
    MissingParts {
        /// The files that are not there, in order.
        missing: Vec<PathBuf>,
        /// The number of files that the set should have.
        count: u32,
    },
    /// The metadata says that the file is one of several, the name does not.
    #[error(
        "this is file {number} of {count} of a split model, but its name does not say so; rename the files to NAME-{number:05}-of-{count:05}.gguf and so on"
    )]
    UnknownSplitName {
        /// Number of the file, from 1.
        number: u64,
        /// Number of files.
        count: u64,
    },
    /// A file of a split set disagrees with its name, or the set does not add up.
    #[error("split set: `{key}` is {found}, expected {expected} {why}")]
    SplitMismatch {
        /// The key that disagrees.
        key: &'static str,
        /// What the file says.
        found: String,
        /// What it should say.
        expected: String,
        /// Where the expectation comes from.
        why: &'static str,
    },

    /// A key that the writer sets itself.
    #[error("metadata key `{key}` is set by the writer itself")]
    ReservedKey {
        /// The key.
        key: String,
    },
    /// The bytes given for a tensor are more or fewer than its shape and type need.
    #[error("tensor `{tensor}`: {found} bytes of data, expected {expected} for its shape and type")]
    DataLength {
        /// The tensor.
        tensor: String,
        /// Bytes given.
        found: u64,
        /// Bytes needed.
        expected: u64,
    },
    /// A limit for split writing that no file can keep, or more files than the format can count.
    #[error("cannot split: {problem}")]
    BadSplit {
        /// What is wrong.
        problem: &'static str,
    },
    /// The destination refused bytes.
    #[error("writing failed: {0}")]
    Write(#[source] io::Error),
}

impl GgufError {
    /// The error itself, without the name of the file around it.
    pub fn root(&self) -> &GgufError {
        match self {
            Self::InFile { problem, .. } => problem.root(),
            other => other,
        }
    }

    /// Adds the name of the file, and advice where the name tells what went wrong.
    pub(crate) fn in_file(self, file: &Path) -> Self {
        if matches!(
            self,
            Self::InFile { .. }
                | Self::Io { .. }
                | Self::NotAFile { .. }
                | Self::MissingParts { .. }
        ) {
            return self;
        }
        let hint = match self {
            Self::Truncated { .. } | Self::CountTooLarge { .. } | Self::NotGguf { .. }
                if is_raw_part(file) =>
            {
                "; by its name this is one raw piece of a larger file: join the pieces in order first (cat PIECE1 PIECE2 ... > MODEL.gguf)"
            }
            Self::Truncated { .. } => "; the copy or download is not complete: fetch it again",
            _ => "",
        };
        Self::InFile {
            file: file.to_owned(),
            problem: Box::new(self),
            hint,
        }
    }
}

/// Whether a file name looks like a piece of a file that was cut with `split`: `m.gguf.part1of2`,
/// `m.gguf-split-a`, `m.gguf.aa`, `m.part2.gguf`.
fn is_raw_part(file: &Path) -> bool {
    let name = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let tail = match name.rfind(".gguf") {
        Some(at) => name.get(at + ".gguf".len()..).unwrap_or_default(),
        None => &name,
    };
    let numbered_part = |text: &str| {
        text.match_indices("part").any(|(at, word)| {
            text.get(at + word.len()..).is_some_and(|rest| {
                let rest = rest.trim_start_matches(['-', '_', '.']);
                rest.len() == 1 || rest.starts_with(|c: char| c.is_ascii_digit())
            })
        })
    };
    let lettered = tail.strip_prefix(['.', '-', '_']).is_some_and(|t| {
        (1..=3).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    let whole = tail.is_empty();
    numbered_part(&name)
        || tail.contains("split")
        || (!whole && tail.len() < name.len() && lettered)
}

fn list(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 5;
    let mut text = paths
        .iter()
        .take(SHOWN)
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more) = paths.len().checked_sub(SHOWN).filter(|&more| more > 0) {
        text.push_str(" and ");
        text.push_str(&more.to_string());
        text.push_str(" more");
    }
    text
}

/// A name from a file as it may be shown: no control characters, not endless.
pub(crate) fn shown(name: &str) -> String {
    const LIMIT: usize = 128;
    let mut text: String = name
        .chars()
        .take(LIMIT)
        .flat_map(char::escape_debug)
        .collect();
    if name.chars().nth(LIMIT).is_some() {
        text.push('…');
    }
    text
}

/// The entry that is being read, for error messages; formatted only when something is wrong.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Header,
    Entry(u64),
    Value(u64, &'a str),
    Tensor(u64),
    TensorInfo(u64, &'a str),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Header => write!(f, "the header"),
            Self::Entry(index) => write!(f, "metadata entry {index}"),
            Self::Value(index, key) => write!(f, "metadata entry {index} `{}`", shown(key)),
            Self::Tensor(index) => write!(f, "the description of tensor {index}"),
            Self::TensorInfo(index, name) => {
                write!(f, "the description of tensor {index} `{}`", shown(name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_pieces_are_known_by_their_names() {
        for (name, raw) in [
            ("model.gguf.part1of2", true),
            ("model.Q4_K_M.gguf-split-a", true),
            ("model.gguf.aa", true),
            ("model.gguf-b", true),
            ("model.gguf.002", true),
            ("model.part2.gguf", true),
            ("model-part-a", true),
            ("model.gguf", false),
            ("model-00001-of-00002.gguf", false),
            ("party-1b.gguf", false),
            ("model.gguf.download", false),
            ("model", false),
            ("", false),
        ] {
            assert_eq!(is_raw_part(Path::new(name)), raw, "{name}");
        }
    }

    #[test]
    fn hostile_names_are_shown_without_control_characters() {
        assert_eq!(shown("a\u{1b}[2J\n"), "a\\u{1b}[2J\\n");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), 129);
    }
}
