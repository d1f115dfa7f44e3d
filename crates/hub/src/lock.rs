//! One download of a file at a time, across processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::{HubError, Progress};

/// Held while `target` is being made; released when dropped, or by the system when the process ends.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until nobody else makes `target`. Where the file system knows no locks there is none.
    pub(crate) fn take(target: &Path, progress: &mut dyn Progress) -> Result<Self, HubError> {
        let path = beside(target, "lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(HubError::io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress.note(&format!(
                    "waiting for another download of {}",
                    target.display()
                ));
                file.lock().map_err(HubError::io(&path))?;
            }
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(HubError::io(&path)(error)),
        }
        Ok(Self { _file: file })
    }
}

/// `target` with one more ending: `model.gguf` and `part` give `model.gguf.part`.
pub(crate) fn beside(target: &Path, ending: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}
