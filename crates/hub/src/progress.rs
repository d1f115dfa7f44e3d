//! What a program is told while a file is fetched.

/// Hears how a download gets on. The library itself prints nothing.
pub trait Progress {
    /// A transfer of the file `name` begins; `bytes` is its whole size where the sender told it. Called once per file and
    /// again when a transfer starts over.
    fn total(&mut self, name: &str, bytes: Option<u64>);
    /// So many bytes of the file, counted from its start, are here.
    fn advanced(&mut self, position: u64);
    /// The file is here, checked, and has its final name. Not called where a transfer fails.
    fn finished(&mut self);
    /// Something the user should know: a wait, a retry, a source that failed and the one tried next. One line.
    fn note(&mut self, text: &str) {
        let _ = text;
    }
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn total(&mut self, _: &str, _: Option<u64>) {}
    fn advanced(&mut self, _: u64) {}
    fn finished(&mut self) {}
}
