//! Names and rules of models that are split over several files.

use std::path::{Path, PathBuf};

use crate::error::GgufError;
use crate::metadata::Metadata;

/// Position of the file in the set, from 0.
pub(crate) const SPLIT_NUMBER: &str = "split.no";
/// Number of files in the set.
pub(crate) const SPLIT_COUNT: &str = "split.count";
/// Number of tensors in all files together.
pub(crate) const SPLIT_TENSORS: &str = "split.tensors.count";

/// The name of one file of a split set: `PREFIX-00002-of-00003.gguf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitName {
    prefix: String,
    number: u32,
    count: u32,
}

impl SplitName {
    /// Takes a file name (without folders) apart; `None` when it is not of this form, or when the numbers
    /// make no sense.
    pub fn parse(file_name: &str) -> Option<Self> {
        let stem = file_name.strip_suffix(".gguf")?;
        let (rest, count) = stem.rsplit_once("-of-")?;
        let (prefix, number) = rest.rsplit_once('-')?;
        let digits = |text: &str| {
            (text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit()))
                .then(|| text.parse::<u32>().ok())
                .flatten()
        };
        Self::new(prefix, digits(number)?, digits(count)?)
    }

    /// The name of file `number` (from 1) of `count`; `None` unless `1 <= number <= count <= 65535`.
    pub fn new(prefix: &str, number: u32, count: u32) -> Option<Self> {
        ((1..=count).contains(&number) && u16::try_from(count).is_ok()).then(|| Self {
            prefix: prefix.to_owned(),
            number,
            count,
        })
    }

    /// The number of this file, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How many files the set has.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The file name.
    pub fn file_name(&self) -> String {
        let Self {
            prefix,
            number,
            count,
        } = self;
        format!("{prefix}-{number:05}-of-{count:05}.gguf")
    }

    /// The names of all files of the set, this one included, in order.
    pub fn all(&self) -> impl Iterator<Item = SplitName> + '_ {
        (1..=self.count).map(|number| Self {
            prefix: self.prefix.clone(),
            number,
            count: self.count,
        })
    }

    /// The file names of the set that `exists` denies, in order: for a folder or for a remote listing, before
    /// anything is read or fetched.
    pub fn missing(&self, mut exists: impl FnMut(&str) -> bool) -> Vec<String> {
        let names = self.all().map(|name| name.file_name());
        names.filter(|name| !exists(name)).collect()
    }
}

/// Where [`GgufWriter::split`](crate::GgufWriter::split) begins a new file.
#[derive(Clone, Debug)]
pub struct SplitLimit {
    max_bytes: Option<u64>,
    max_tensors: Option<usize>,
    pub(crate) metadata_alone: bool,
}

impl SplitLimit {
    /// At most this many bytes of tensor data in each file, padding included; a larger tensor gets a file of
    /// its own.
    pub fn bytes(max_bytes: u64) -> Self {
        Self {
            max_bytes: Some(max_bytes),
            max_tensors: None,
            metadata_alone: false,
        }
    }

    /// At most this many tensors in each file.
    pub fn tensors(max_tensors: usize) -> Self {
        Self {
            max_bytes: None,
            max_tensors: Some(max_tensors),
            metadata_alone: false,
        }
    }

    /// Keeps the first file free of tensors, so that the metadata can be fetched without them.
    #[must_use]
    pub fn metadata_alone(mut self) -> Self {
        self.metadata_alone = true;
        self
    }

    pub(crate) fn check(&self) -> Result<(), GgufError> {
        if self.max_bytes == Some(0) || self.max_tensors == Some(0) {
            return Err(GgufError::BadSplit {
                problem: "the limit is 0",
            });
        }
        Ok(())
    }

    /// Whether a file of `tensors` tensors may take one more that makes it `bytes` long.
    pub(crate) fn allows(&self, bytes: u64, tensors: usize) -> bool {
        self.max_bytes.is_none_or(|max| bytes <= max)
            && self.max_tensors.is_none_or(|max| tensors < max)
    }
}

/// The files that belong to `path`, in order: all of a split set whichever of them is given, or the path
/// alone. Names files that are not there before any is opened.
pub(crate) fn files_of(path: &Path) -> Result<Vec<PathBuf>, GgufError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(split) = name
        .and_then(SplitName::parse)
        .filter(|split| split.count > 1)
    else {
        return Ok(vec![path.to_owned()]);
    };
    let missing = split.missing(|name| path.with_file_name(name).exists());
    if !missing.is_empty() {
        return Err(GgufError::MissingParts {
            missing: missing
                .iter()
                .map(|name| path.with_file_name(name))
                .collect(),
            count: split.count,
        });
    }
    Ok(split
        .all()
        .map(|name| path.with_file_name(name.file_name()))
        .collect())
}

/// Checks what file `index` (from 0) of `count` says about the set. A file of its own may say nothing, or
/// that it is the only one.
pub(crate) fn check_part(metadata: &Metadata, index: usize, count: usize) -> Result<(), GgufError> {
    let said_count = metadata.u64(SPLIT_COUNT)?;
    let said_number = metadata.u64(SPLIT_NUMBER)?;
    tensors_said(metadata)?;
    if count == 1 {
        return match said_count {
            Some(count) if count > 1 => Err(GgufError::UnknownSplitName {
                number: said_number.unwrap_or_default().saturating_add(1),
                count,
            }),
            _ => Ok(()),
        };
    }
    check(
        SPLIT_COUNT,
        said_count,
        count as u64,
        "by the name of the file",
    )?;
    check(
        SPLIT_NUMBER,
        said_number,
        index as u64,
        "by the name of the file (numbers begin at 0 here, at 1 in the name)",
    )
}

/// The number of tensors of the whole set, if a file says it.
pub(crate) fn tensors_said(metadata: &Metadata) -> Result<Option<u64>, GgufError> {
    metadata.u64(SPLIT_TENSORS)
}

/// Checks the number of tensors of a whole set against what one of its files says.
pub(crate) fn check_tensors(said: Option<u64>, found: usize) -> Result<(), GgufError> {
    match said {
        None => Ok(()),
        said => check(
            SPLIT_TENSORS,
            said,
            found as u64,
            "from counting the tensors of all files",
        ),
    }
}

fn check(
    key: &'static str,
    said: Option<u64>,
    expected: u64,
    why: &'static str,
) -> Result<(), GgufError> {
    if said == Some(expected) {
        return Ok(());
    }
    Err(GgufError::SplitMismatch {
        key,
        found: said.map_or_else(|| "absent".to_owned(), |n| n.to_string()),
        expected: expected.to_string(),
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_name_is_taken_apart_and_put_together_again() {
        let name = SplitName::parse("my-model-Q4_K_M-00002-of-00003.gguf").unwrap();
        assert_eq!((name.number(), name.count()), (2, 3));
        let all: Vec<_> = name.all().map(|name| name.file_name()).collect();
        assert_eq!(
            all,
            [
                "my-model-Q4_K_M-00001-of-00003.gguf",
                "my-model-Q4_K_M-00002-of-00003.gguf",
                "my-model-Q4_K_M-00003-of-00003.gguf"
            ]
        );
    }

    #[test]
    fn names_that_only_resemble_a_split_name_are_none() {
        for name in [
            "m.gguf",
            "m-1-of-2.gguf",
            "m-00000-of-00002.gguf",
            "m-00003-of-00002.gguf",
            "m-00001-of-00000.gguf",
            "m-00001-of-99999.gguf",
            "m-+0001-of-00002.gguf",
            "m-00001-of-00002.gguf.part",
            "m00001-of-00002.gguf",
            "-of-.gguf",
            "",
        ] {
            assert_eq!(SplitName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn files_missing_from_a_remote_listing_are_named_before_anything_is_fetched() {
        let listing = [
            "m-00001-of-00003.gguf",
            "m-00003-of-00003.gguf",
            "README.md",
        ];
        let split = SplitName::parse(listing[0]).unwrap();
        assert_eq!(
            split.missing(|name| listing.contains(&name)),
            ["m-00002-of-00003.gguf"]
        );
    }
}
