//! One prompt, one answer.

use super::{
    Args,
    session::{Finish, Listener, Session},
};
use crate::{args::without_last_newline, output::Output};
use anyhow::{Context, Result};
use puna::{FinishReason, Message};

/// Prints text as it comes.
struct Stream(Output);

impl Listener for Stream {
    fn text(&mut self, text: &str) -> Result<()> {
        if text.is_empty() {
            Ok(())
        } else {
            self.0.show(text)
        }
    }
}

/// Leaves the text to the answer.
struct Silent;

impl Listener for Silent {
    fn text(&mut self, _: &str) -> Result<()> {
        Ok(())
    }
}

pub(super) fn run(args: &Args, prompt: &str) -> Result<()> {
    let mut session = Session::open(args)?;
    for warning in session.warnings() {
        tell!("note: {warning}");
    }
    let mut messages = system_message(args)?;
    messages.push(Message::new("user", prompt));
    let ids = session.encode(&messages)?;
    if args.json {
        let answer = session.answer(ids, &mut Silent)?;
        Output::new().json(&session.json(&answer))?;
        if args.verbose {
            tell_part!("{}", session.speeds(&answer));
        }
        return Ok(());
    }
    let mut stream = Stream(Output::new());
    if args.display_prompt {
        let text = session.decode(&ids);
        stream.0.show(&super::user_text(args, &text))?;
    }
    let answer = session.answer(ids, &mut stream)?;
    if !answer.text.ends_with('\n') {
        stream.0.show("\n")?;
    }
    if answer.finish == Finish::Reason(FinishReason::Context) {
        tell!("note: the context is full, the answer is cut; a larger -c leaves more room");
    }
    if args.verbose {
        tell_part!("{}", session.speeds(&answer));
    }
    Ok(())
}

/// The system's message, if the arguments give one.
pub(super) fn system_message(args: &Args) -> Result<Vec<Message>> {
    let text = match (&args.chat.system_prompt, &args.chat.system_prompt_file) {
        (Some(text), _) => Some(args.prompt.argument(text)),
        (None, Some(path)) => {
            let text = crate::files::read_text(path).with_context(|| {
                format!("cannot read the system's message from `{}`", path.display())
            })?;
            Some(without_last_newline(text))
        }
        (None, None) => None,
    };
    Ok(text
        .map(|text| Message::new("system", text))
        .into_iter()
        .collect())
}
