//! An opened model: one file or a whole split set.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bytes::{SharedBytes, Source};
use crate::error::GgufError;
use crate::metadata::Metadata;
use crate::parse::{self, ParsedFile};
use crate::split;
use crate::tensor::{self, TensorInfo};

/// An opened file or split set. Opening reads the metadata and the descriptions of the tensors; tensor data
/// stays in the memory map and is read by whoever looks at it.
#[derive(Debug)]
pub struct Gguf {
    version: u32,
    alignment: u32,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    /// Positions in `tensors`, sorted by name.
    by_name: Vec<usize>,
    files: Vec<SourceFile>,
}

/// One file of an opened model.
#[derive(Debug)]
pub struct SourceFile {
    path: Option<PathBuf>,
    source: Arc<Source>,
}

impl SourceFile {
    /// The error, with the file's name where it has one.
    fn name(&self, error: GgufError) -> GgufError {
        match &self.path {
            Some(path) => error.in_file(path),
            None => error,
        }
    }

    /// The path; `None` when the bytes were given in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The size of the file in bytes.
    pub fn byte_len(&self) -> u64 {
        self.source.as_slice().len() as u64
    }
}

impl Gguf {
    /// Opens and checks a model. For a split model, `path` may be any of its files: the others are found by
    /// their names, and files that are not there are named before anything is read.
    ///
    /// The files are mapped: they must not be shortened or changed while the model is open. A program that
    /// replaces one should write a new file and rename it, as [`GgufWriter`](crate::GgufWriter) does.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let paths = split::files_of(path)?;
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let source = Arc::new(Source::map(&path)?);
            files.push(SourceFile {
                path: Some(path),
                source,
            });
        }
        Self::assemble(files)
    }

    /// Opens one file given in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, GgufError> {
        Self::from_split_bytes(vec![bytes])
    }

    /// Opens a split set given in memory, its files in order.
    pub fn from_split_bytes(files: Vec<Vec<u8>>) -> Result<Self, GgufError> {
        let files = files.into_iter().map(|bytes| SourceFile {
            path: None,
            source: Arc::new(Source::Owned(bytes)),
        });
        Self::assemble(files.collect())
    }

    fn assemble(files: Vec<SourceFile>) -> Result<Self, GgufError> {
        let mut first: Option<ParsedFile> = None;
        let mut tensors_said = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let in_file = |error| file.name(error);
            let parsed = parse::parse(&file.source, index).map_err(in_file)?;
            split::check_part(&parsed.metadata, index, files.len()).map_err(in_file)?;
            tensors_said.push(split::tensors_said(&parsed.metadata).map_err(in_file)?);
            match &mut first {
                None => first = Some(parsed),
                Some(first) => first.tensors.extend(parsed.tensors),
            }
        }
        let Some(first) = first else {
            return Err(GgufError::BadSplit {
                problem: "a set of no files",
            });
        };
        if files.len() > 1 {
            tensor::check_unique(&first.tensors)?;
            for (file, said) in files.iter().zip(tensors_said) {
                split::check_tensors(said, first.tensors.len()).map_err(|e| file.name(e))?;
            }
        }
        let mut by_name: Vec<usize> = (0..first.tensors.len()).collect();
        by_name.sort_unstable_by_key(|&index| name_of(&first.tensors, index));
        Ok(Self {
            version: first.version,
            alignment: first.alignment,
            metadata: first.metadata,
            tensors: first.tensors,
            by_name,
            files,
        })
    }

    /// The version of the format, 2 or 3; of a split set, that of the first file.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The alignment of tensor data in bytes; of a split set, that of the first file.
    pub fn alignment(&self) -> u32 {
        self.alignment
    }

    /// Keys and values; of a split set, those of the first file.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The files of the model in order: one, or all of a split set.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The tensors, in the order of the files and inside each as it lists them.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        let rank = self
            .by_name
            .binary_search_by(|&index| name_of(&self.tensors, index).cmp(name))
            .ok()?;
        self.tensors.get(*self.by_name.get(rank)?)
    }

    /// The bytes of a tensor of this model: exactly `byte_len` of them, in the map. A tensor of another model
    /// gives other bytes or none.
    pub fn data(&self, tensor: &TensorInfo) -> &[u8] {
        self.files
            .get(tensor.part)
            .and_then(|file| file.source.as_slice().get(tensor.start..tensor.end))
            .unwrap_or_default()
    }

    /// The bytes of a tensor as a view that keeps the file open by itself; `None` for a tensor of another
    /// model that does not fit this one.
    pub fn shared_data(&self, tensor: &TensorInfo) -> Option<SharedBytes> {
        SharedBytes::new(
            &self.files.get(tensor.part)?.source,
            tensor.start,
            tensor.end,
        )
    }
}

fn name_of(tensors: &[TensorInfo], index: usize) -> &str {
    tensors.get(index).map_or("", |tensor| &tensor.name)
}
