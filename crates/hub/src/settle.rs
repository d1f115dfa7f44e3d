//! A file that has arrived, on disk for good.

use std::fs::File;
use std::io;

/// Writes the file to disk and lets the system forget its pages.
///
/// They were cached as they came, in small pieces. A model is mapped and streamed many times over: read again from disk, its pages come in
/// large ones where the file system has them, which makes generation up to half as fast again.
pub(crate) fn settle(file: &File) -> io::Result<()> {
    file.sync_all()?;
    #[cfg(target_os = "linux")]
    let _only_advice = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    Ok(())
}
