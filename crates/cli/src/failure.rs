//! How the program fails: one line on the standard error, exit code 2 for usage and 1 for everything else.

use crate::output::StdoutClosed;
use std::{fmt, io, panic::PanicHookInfo, process::ExitCode};

/// Arguments that do not fit together, which the parser cannot see.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// A [`UsageError`].
pub(crate) fn usage_error(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// What the parser refused, on one line; help and version as they are.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    let kind = error.kind();
    if !error.use_stderr() || kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A reader that has gone away needs no help.
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
    }
    let text = error.to_string();
    let mut line = String::new();
    let told = text.lines().map(str::trim).filter(|l| !l.is_empty());
    for part in told.take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more")) {
        let between = match line.chars().last() {
            None => "",
            Some(':') => " ",
            Some(_) => "; ",
        };
        line.push_str(between);
        line.push_str(part);
    }
    tell!("{line}; see --help");
    ExitCode::from(2)
}

/// What is wrong with the arguments, found before the parser saw them.
pub(crate) fn refused(problem: &str) -> ExitCode {
    tell!("error: {problem}; see --help");
    ExitCode::from(2)
}

/// An error with its causes. A closed standard output is no error: whoever read it has had enough.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
            .and_then(|inner| inner.downcast_ref::<StdoutClosed>())
            .is_some()
    };
    if error.chain().any(closed) {
        return ExitCode::SUCCESS;
    }
    tell!("error: {}", one_line(error));
    ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
}

/// The error and its causes, without those that are told already.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if line.contains(&text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&text);
    }
    line.replace(['\n', '\r'], " ")
}

/// A fault of the program itself, told in the same form.
pub(crate) fn report_panic(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown fault");
    let place = info
        .location()
        .map_or_else(String::new, |l| format!(" at {}:{}", l.file(), l.line()));
    let text = text.replace(['\n', '\r'], " ");
    tell!("error: internal fault{place}: {text}; this is a bug in puna, please report it");
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn causes_follow_on_one_line_and_nothing_is_told_twice() {
        let result: Result<(), _> = Err(anyhow::anyhow!("no such\nfile"));
        let error = result.context("`x`: no such\nfile").unwrap_err();
        assert_eq!(one_line(&error), "`x`: no such file");
        let error = anyhow::anyhow!("a").context("b");
        assert_eq!(one_line(&error), "b: a");
    }
}
