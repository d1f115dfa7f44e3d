//! Files that get their name when they are complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use crate::error::GgufError;
use crate::writer::GgufWriter;

/// A complete file that has not got its name yet; removed when it never gets it.
pub(crate) struct Unfinished {
    /// Empty once the file has been renamed.
    temporary: Option<PathBuf>,
    path: PathBuf,
    byte_len: u64,
}

impl Unfinished {
    /// Writes the file under another name in the same folder.
    pub(crate) fn write(writer: GgufWriter<'_>, path: &Path) -> Result<Self, GgufError> {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        let file = File::create(&temporary).map_err(|source| GgufError::Io {
            path: temporary.clone(),
            source,
        })?;
        let mut unfinished = Self {
            temporary: Some(temporary),
            path: path.to_owned(),
            byte_len: 0,
        };
        unfinished.byte_len = writer
            .write_to(&mut BufWriter::with_capacity(1 << 20, file))
            .map_err(|error| match error {
                GgufError::Write(source) => GgufError::Io {
                    path: path.to_owned(),
                    source,
                },
                other => other.in_file(path),
            })?;
        Ok(unfinished)
    }

    /// Gives the file its name; returns that and the size in bytes.
    pub(crate) fn finish(mut self) -> Result<(PathBuf, u64), GgufError> {
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.path).map_err(|source| GgufError::Io {
                path: self.path.clone(),
                source,
            })?;
            self.temporary = None;
        }
        Ok((std::mem::take(&mut self.path), self.byte_len))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // The error that led here is the one to report.
            let _ = fs::remove_file(temporary);
        }
    }
}
