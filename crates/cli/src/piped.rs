//! What is piped in.

use crate::files;
use anyhow::{Context, Result, bail};
use std::{
    io::{Read, stdin},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

/// Whether the standard input is a pipe or a file, and not a terminal or a device that holds nothing.
pub(crate) fn is_piped() -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = std::fs::metadata("/dev/stdin").map(|file| file.file_type());
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
    }
    #[cfg(not(unix))]
    {
        use std::io::IsTerminal;
        !stdin().is_terminal()
    }
}

/// All of the standard input. Who waits for it in vain is told.
pub(crate) fn read_all() -> Result<String> {
    let (done, wait) = mpsc::channel::<()>();
    let notice = thread::spawn(move || {
        if wait.recv_timeout(Duration::from_secs(3)) == Err(RecvTimeoutError::Timeout) {
            tell!(
                "note: waiting for the end of the piped input (use < /dev/null if there is none)"
            );
        }
    });
    let mut text = String::new();
    let read = stdin().take(files::LARGEST + 1).read_to_string(&mut text);
    drop(done);
    // It has nothing to give back.
    let _ = notice.join();
    read.context("cannot read the standard input")?;
    if text.len() as u64 > files::LARGEST {
        bail!("the standard input holds more than 1 GiB, expected a text");
    }
    Ok(text)
}
