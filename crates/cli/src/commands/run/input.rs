//! Where the prompt comes from: the command line, a file, or what is piped in.

use super::Args;
use crate::{
    args::without_last_newline,
    failure::usage_error,
    piped::{is_piped, read_all},
};
use anyhow::Result;
use std::io::{IsTerminal, stdin};

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
