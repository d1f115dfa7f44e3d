//! Where the bytes of an opened file live, and shared views of them.

use std::fmt;
use std::fs::{self, File};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use crate::error::GgufError;

/// The bytes of one whole file: mapped, or owned when they were given in memory.
#[derive(Debug)]
pub(crate) enum Source {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Source {
    /// Maps a file read-only. Folders, pipes and devices are refused before they are opened.
    pub(crate) fn map(path: &Path) -> Result<Self, GgufError> {
        let io = |source| GgufError::Io {
            path: path.to_owned(),
            source,
        };
        if !fs::metadata(path).map_err(io)?.is_file() {
            return Err(GgufError::NotAFile {
                path: path.to_owned(),
            });
        }
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() == 0 {
            // Some systems refuse to map nothing.
            return Ok(Self::Owned(Vec::new()));
        }
        // SAFETY: the map is read-only and private to this type; it is only ever viewed as plain bytes,
        // and nothing derived from those bytes (a length, an offset, valid UTF-8) is trusted again without
        // being kept as a copy or checked at each use. What remains is the condition that no map can
        // enforce, that nobody shortens the file while it is open; `Gguf::open` documents it.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        // A file that is read from disk then comes in large pages where the file system has them: weights stream through fewer
        // translations, up to half as fast again. Elsewhere the advice is refused and nothing is lost.
        #[cfg(target_os = "linux")]
        let _refused = map.advise(memmap2::Advice::HugePage);
        Ok(Self::Mapped(map))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// A view of a part of an opened file that keeps the file open: cloning copies two numbers and a reference
/// count, never the bytes.
#[derive(Clone)]
pub struct SharedBytes {
    source: Arc<Source>,
    start: usize,
    end: usize,
}

impl SharedBytes {
    /// A view of `start..end`; `None` when the file has fewer bytes.
    pub(crate) fn new(source: &Arc<Source>, start: usize, end: usize) -> Option<Self> {
        source.as_slice().get(start..end)?;
        Some(Self {
            source: Arc::clone(source),
            start,
            end,
        })
    }

    /// A view of `start..end` of this view; `None` when it is shorter.
    pub(crate) fn slice(&self, start: usize, end: usize) -> Option<Self> {
        self.get(start..end)?;
        Self::new(
            &self.source,
            self.start.checked_add(start)?,
            self.start.checked_add(end)?,
        )
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // `new` checked the range, and a source never changes its length.
        self.source
            .as_slice()
            .get(self.start..self.end)
            .unwrap_or_default()
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            start: 0,
            end: bytes.len(),
            source: Arc::new(Source::Owned(bytes)),
        }
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedBytes {}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.len())
    }
}
