//! The prompt: from the command line or a file.

use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;

/// The prompt.
#[derive(Args)]
pub(crate) struct PromptArgs {
    /// The text, in quotes
    #[arg(value_name = "PROMPT")]
    second: Option<String>,
    /// The text, as a flag
    #[arg(
        short,
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "second",
        help_heading = "Prompt"
    )]
    prompt: Option<String>,
    /// Read the text from a file; a newline at its end is left out
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["prompt", "second"], help_heading = "Prompt")]
    file: Option<PathBuf>,
    /// Replace \n, \t, \" and the like in texts of the command line, which is the default
    #[arg(short, long, overrides_with = "no_escape", help_heading = "Prompt")]
    escape: bool,
    /// Take backslashes in texts of the command line as they are
    #[arg(long, help_heading = "Prompt")]
    no_escape: bool,
}

impl PromptArgs {
    /// The prompt, if one is given.
    pub(crate) fn text(&self) -> Result<Option<String>> {
        if let Some(path) = &self.file {
            let text = crate::files::read_text(path)
                .with_context(|| format!("cannot read the prompt from `{}`", path.display()))?;
            return Ok(Some(without_last_newline(text)));
        }
        let text = self.prompt.as_deref().or(self.second.as_deref());
        Ok(text.map(|text| self.argument(text)))
    }

    /// A text of the command line, its escapes replaced unless that is turned off.
    pub(crate) fn argument(&self, text: &str) -> String {
        if self.no_escape && !self.escape {
            text.to_owned()
        } else {
            unescape(text)
        }
    }
}

/// Editors and `echo` end every text with a newline, which belongs to no prompt.
pub(crate) fn without_last_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// Replaces `\n`, `\r`, `\t`, `\'`, `\"`, `\\` and `\xHH` (one byte of two hex digits, below 0x80); leaves other backslashes alone.
pub(crate) fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        result.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let hex = after
            .strip_prefix('x')
            .and_then(|digits| digits.get(..2))
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(u8::is_ascii);
        let (c, used) = match (after.chars().next(), hex) {
            (Some('n'), _) => ('\n', 1),
            (Some('r'), _) => ('\r', 1),
            (Some('t'), _) => ('\t', 1),
            (Some(c @ ('\'' | '"' | '\\')), _) => (c, 1),
            (Some('x'), Some(byte)) => (byte as char, 3),
            _ => ('\\', 0),
        };
        result.push(c);
        rest = &after[used..];
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_characters_and_other_backslashes_stay() {
        for (text, expected) in [
            (r"a\nb", "a\nb"),
            (r"\\n", r"\n"),
            (r"\t\r\'\x41\x4", "\t\r'A\\x4"),
            (r"\d+\", r"\d+\"),
            (r"\xe2\x+1", r"\xe2\x+1"),
            ("\u{20ac}\\n\u{20ac}", "\u{20ac}\n\u{20ac}"),
        ] {
            assert_eq!(unescape(text), expected, "{text}");
        }
    }

    #[test]
    fn one_newline_at_the_end_is_taken_off() {
        for (text, expected) in [
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a", "a"),
            ("\n", ""),
        ] {
            assert_eq!(without_last_newline(text.to_owned()), expected);
        }
    }
}
