//! Standard output that ends quietly when its reader goes away.

use anyhow::Result;
use std::{
    fmt,
    io::{self, IsTerminal, Write},
};

/// The reader of the standard output is gone.
#[derive(Debug)]
pub(crate) struct StdoutClosed;

impl fmt::Display for StdoutClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl std::error::Error for StdoutClosed {}

/// The standard output.
pub(crate) struct Output(io::BufWriter<io::Stdout>);

impl Output {
    /// The process's own.
    pub(crate) fn new() -> Self {
        Self(io::BufWriter::new(io::stdout()))
    }

    /// Whether somebody looks at it.
    pub(crate) fn is_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// Writes text and shows it at once.
    pub(crate) fn show(&mut self, text: &str) -> Result<()> {
        self.write_all(text.as_bytes())?;
        self.flush()?;
        Ok(())
    }

    /// Writes a JSON value and ends the line.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<()> {
        let text = if Self::is_terminal() {
            serde_json::to_string_pretty(value)?
        } else {
            serde_json::to_string(value)?
        };
        writeln!(self, "{text}")?;
        self.flush()?;
        Ok(())
    }
}

fn quiet<T>(result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(error.kind(), StdoutClosed),
        _ => error,
    })
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        quiet(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        quiet(self.0.flush())
    }
}

/// Text for the standard error, at once; see the macros in `main.rs`.
pub(crate) fn tell(text: std::fmt::Arguments<'_>) {
    // In one piece, so that lines of other programs do not come between.
    let _ = std::io::stderr().write_all(text.to_string().as_bytes());
}
