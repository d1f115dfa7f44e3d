//! Files that the user names: read with a bound, written whole or not at all.

use anyhow::{Context, Result, bail};
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
};
use tempfile::NamedTempFile;

/// Largest text that is read into memory: prompts, templates, conversations, lists of tokens.
pub(crate) const LARGEST: u64 = 1 << 30;

/// The bytes of a file, which may be a pipe.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        bail!("more than 1 GiB, expected a text");
    }
    Ok(bytes)
}

/// The text of a file, or of the standard input where the path is `-`.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        return crate::piped::read_all();
    }
    String::from_utf8(read(path)?).context("expected UTF-8")
}

/// Where a file is written: under another name until it is complete, or in place where there is no regular file, as with a pipe.
pub(crate) enum Target {
    Whole(NamedTempFile),
    InPlace(File),
}

impl Target {
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            return fs::OpenOptions::new()
                .write(true)
                .open(path)
                .map(Self::InPlace);
        }
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        builder
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map(Self::Whole)
    }

    /// Gives the file its name.
    pub(crate) fn finish(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Whole(file) => file.persist(path).map(drop).map_err(|e| e.error),
            Self::InPlace(mut file) => file.flush(),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Whole(file) => file.write(bytes),
            Self::InPlace(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Whole(file) => file.flush(),
            Self::InPlace(file) => file.flush(),
        }
    }
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut target = Target::new(path)?;
    target.write_all(bytes)?;
    target.finish(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_finished_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write(&path, b"old").unwrap();
        let mut target = Target::new(&path).unwrap();
        target.write_all(b"half").unwrap();
        drop(target);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        write(&path, b"new").unwrap();
        assert_eq!(read(&path).unwrap(), b"new");
    }
}
