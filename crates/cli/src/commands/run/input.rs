//! Where the prompt comes from: the command line, a file, or what is piped in.

use super::Args;
use crate::{args::without_last_newline, failure::usage_error};
use anyhow::{Context, Result};
use std::{
    io::{IsTerminal, Read, stdin},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

/// The prompt; `None` for a conversation at the terminal.
///
/// A prompt of the command line is followed by what is piped in, after an empty line. With `--raw` it is the whole text.
pub(super) fn prompt(args: &Args) -> Result<Option<String>> {
    let given = args.prompt.text()?;
    let prompt = match given {
        None if stdin().is_terminal() => return Ok(None),
        None => without_last_newline(read_all()?),
        Some(text) if args.chat.raw || !is_piped() => text,
        Some(text) => {
            let piped = without_last_newline(read_all()?);
            if piped.is_empty() {
                text
            } else {
                format!("{text}\n\n{piped}")
            }
        }
    };
    if prompt.is_empty() && !args.chat.raw {
        return Err(usage_error(
            "the prompt is empty: give -p, -f or piped text, or run from a terminal for a conversation",
        ));
    }
    Ok(Some(prompt))
}

/// Whether the standard input is a pipe or a file, and not a terminal or a device that holds nothing.
fn is_piped() -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = std::fs::metadata("/dev/stdin").map(|file| file.file_type());
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
    }
    #[cfg(not(unix))]
    {
        !stdin().is_terminal()
    }
}

fn read_all() -> Result<String> {
    let (done, wait) = mpsc::channel::<()>();
    let notice = thread::spawn(move || {
        if wait.recv_timeout(Duration::from_secs(3)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("note: waiting for the end of the piped input (use < /dev/null if there is none)");
        }
    });
    let mut text = String::new();
    let read = stdin().read_to_string(&mut text);
    drop(done);
    // It has nothing to give back.
    let _ = notice.join();
    read.context("cannot read the standard input")?;
    Ok(text)
}
