//! A conversation at the terminal.

use super::{
    Args,
    once::system_message,
    session::{Answer, Finish, Listener, Session},
};
use crate::{failure, models, output::Output, shown};
use anyhow::{Context, Result, bail};
use puna::{EngineError, Message};
use rustyline::{DefaultEditor, error::ReadlineError};
use serde_json::{Value, json};
use signal_hook::{consts::SIGINT, flag};
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

const HELP: &str = "\
/help           this list; /? too
/system         show the system's message
/system TEXT    set it; /system \"\" takes it away
/reset          forget the conversation, but not the system's message; /clear too
/save FILE      write the conversation to a file, as JSON
/load FILE      go on with a conversation from a file
/bye            leave; /quit, /exit and Ctrl-D too
A line that ends with \\ goes on in the next one, a text that begins with / is written with //. Ctrl-C stops an answer.
";

/// The commands, for who mistypes one.
const COMMANDS: &str = "/help, /system, /reset, /save FILE, /load FILE, /bye";

/// Prints text as it comes, until the user stops it.
struct Stream {
    output: Output,
    stop: Arc<AtomicBool>,
}

impl Listener for Stream {
    fn text(&mut self, text: &str) -> Result<()> {
        if text.is_empty() {
            Ok(())
        } else {
            self.output.show(text)
        }
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Nothing,
    Help,
    Reset,
    Save(&'a str),
    Load(&'a str),
    ShowSystem,
    System(&'a str),
    Quit,
    Unknown(&'a str),
    Text(&'a str),
}

impl<'a> Line<'a> {
    /// Commands begin with a slash and a letter; two slashes begin a text with one.
    fn parse(line: &'a str) -> Self {
        let Some(rest) = line.strip_prefix('/') else {
            return if line.trim().is_empty() {
                Self::Nothing
            } else {
                Self::Text(line)
            };
        };
        if rest.starts_with('/') {
            return Self::Text(rest);
        }
        let (command, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let argument = argument.trim();
        match (command, argument) {
            ("help" | "?", "") => Self::Help,
            ("reset" | "clear", "") => Self::Reset,
            ("quit" | "exit" | "bye", "") => Self::Quit,
            ("system", "") => Self::ShowSystem,
            ("system", "\"\"" | "''") => Self::System(""),
            ("system", text) => Self::System(text),
            ("save", file) if !file.is_empty() => Self::Save(file),
            ("load", file) if !file.is_empty() => Self::Load(file),
            _ => Self::Unknown(line),
        }
    }
}

/// A conversation and the model it is held with.
struct Talk<'a> {
    args: &'a Args,
    session: Session,
    messages: Vec<Message>,
    stream: Stream,
}

pub(super) fn run(args: &Args) -> Result<()> {
    if args.json {
        return Err(failure::usage_error("--json needs a prompt: give -p or -f"));
    }
    let session = Session::open(args)?;
    for warning in session.warnings() {
        tell!("note: {warning}");
    }
    let stop = Arc::new(AtomicBool::new(false));
    // A second Ctrl-C before the first one was heard ends the program.
    flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&stop))
        .and_then(|_| flag::register(SIGINT, Arc::clone(&stop)))
        .context("cannot listen for Ctrl-C")?;
    let kind = if session.is_chat() {
        ""
    } else {
        ", which has no chat template: texts are continued"
    };
    let name = session
        .model
        .file_name()
        .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    tell!("{name}{kind} (/help for commands)");
    let mut talk = Talk {
        messages: system_message(args)?,
        args,
        session,
        stream: Stream {
            output: Output::new(),
            stop,
        },
    };
    if !talk.messages.is_empty() {
        tell!("{}", talk.system_line());
    }
    let history = history_file();
    let mut editor = DefaultEditor::new().context("cannot use the terminal")?;
    if let Some(path) = &history {
        // The first conversation has none.
        let _ = editor.load_history(path);
    }
    let result = talk.converse(&mut editor);
    if let Some(path) = &history
        && let Err(error) = save_history(&mut editor, path)
    {
        tell!(
            "note: cannot save the history to `{}`: {error}",
            path.display()
        );
    }
    result
}

fn history_file() -> Option<PathBuf> {
    Some(models::hub_config().cache?.join("history"))
}

fn save_history(editor: &mut DefaultEditor, path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(editor.save_history(path)?)
}

impl Talk<'_> {
    /// Reads lines until the user leaves. What goes wrong with one of them is told, and the conversation goes on.
    fn converse(&mut self, editor: &mut DefaultEditor) -> Result<()> {
        while let Some(line) = read(editor)? {
            let done = match Line::parse(&line) {
                Line::Quit => return Ok(()),
                request => self.handle(&request),
            };
            if let Err(error) = done {
                tell!("error: {}", failure::one_line(&error));
                if let Some(EngineError::ContextExceeded { .. }) = error.downcast_ref() {
                    tell!("note: the conversation fills the context; /reset begins anew");
                }
            }
        }
        Ok(())
    }

    fn handle(&mut self, request: &Line<'_>) -> Result<()> {
        match *request {
            Line::Nothing | Line::Quit => {}
            Line::Help => self.stream.output.show(HELP)?,
            Line::Reset => self.reset(),
            Line::ShowSystem => tell!("{}", self.system_line()),
            Line::Save(file) => self.save(Path::new(file))?,
            Line::Load(file) => self.load(Path::new(file))?,
            Line::System(text) => self.system(text)?,
            Line::Unknown(line) => bail!("`{line}` is none of the commands {COMMANDS}"),
            Line::Text(text) => self.answer(text)?,
        }
        Ok(())
    }

    /// Answers a message. If that fails, the conversation is as it was.
    fn answer(&mut self, text: &str) -> Result<()> {
        self.messages.push(Message::new("user", text));
        self.stream.stop.store(false, Ordering::Relaxed);
        let answer = self
            .session
            .encode(&self.messages)
            .and_then(|prompt| self.session.answer(prompt, &mut self.stream));
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.messages.pop();
                return Err(error);
            }
        };
        self.stream.output.show("\n")?;
        self.tell(&answer);
        self.stream.stop.store(false, Ordering::Relaxed);
        if answer.ids.is_empty() && answer.finish == Finish::Interrupted {
            self.messages.pop();
        } else {
            self.messages.push(Message::new("assistant", answer.text));
        }
        Ok(())
    }

    /// Nothing is cut silently.
    fn tell(&self, answer: &Answer) {
        use puna::FinishReason::{Context, Length};
        match answer.finish {
            Finish::Interrupted => tell!("note: stopped"),
            Finish::Reason(Context) => {
                tell!("note: the context is full; /reset, or start with a larger -c");
            }
            Finish::Reason(Length) => tell!("note: the limit of -n is reached"),
            Finish::Reason(_) => {}
        }
        if self.args.verbose {
            tell_part!("{}", self.session.speeds(answer));
        }
    }

    fn reset(&mut self) {
        let before = self.messages.len();
        self.messages.retain(|m| m.role() == "system");
        let forgotten = count(before - self.messages.len());
        tell!("{forgotten} forgotten; {}", self.system_line());
    }

    /// What the system's message is, on one line.
    fn system_line(&self) -> String {
        let systems = self.messages.iter().filter(|m| m.role() == "system");
        let texts: Vec<_> = systems.filter_map(Message::content).collect();
        if texts.is_empty() {
            return "there is no system message".to_owned();
        }
        let text = texts.join("\n");
        format!(
            "the system's message is {}",
            shown::quoted(text.as_bytes(), usize::MAX)
        )
    }

    fn system(&mut self, text: &str) -> Result<()> {
        if !self.session.is_chat() {
            bail!("a system message needs a chat template, which the model does not have");
        }
        self.messages.retain(|m| m.role() != "system");
        if !text.is_empty() {
            self.messages.insert(0, Message::new("system", text));
        }
        tell!("{}", self.system_line());
        Ok(())
    }

    fn save(&self, file: &Path) -> Result<()> {
        let messages: Vec<_> = self.messages.iter().map(Message::fields).collect();
        let value = json!({
            "model": self.session.model.to_string_lossy(),
            "messages": messages,
        });
        let text = serde_json::to_string_pretty(&value)? + "\n";
        crate::files::write(file, text.as_bytes())
            .with_context(|| format!("cannot write `{}`", file.display()))?;
        tell!(
            "{} saved to `{}`",
            count(self.messages.len()),
            file.display()
        );
        Ok(())
    }

    fn load(&mut self, file: &Path) -> Result<()> {
        self.messages = load(file).with_context(|| format!("`{}`", file.display()))?;
        let messages = count(self.messages.len());
        tell!(
            "{messages} loaded from `{}`; {}",
            file.display(),
            self.system_line()
        );
        Ok(())
    }
}

/// So many messages.
fn count(messages: usize) -> String {
    match messages {
        1 => "1 message".to_owned(),
        n => format!("{n} messages"),
    }
}

/// The messages of a saved conversation: an object with `messages`, or their list alone.
fn load(file: &Path) -> Result<Vec<Message>> {
    let mut value: Value = serde_json::from_slice(&crate::files::read(file)?)?;
    if let Some(messages) = value.get_mut("messages") {
        value = messages.take();
    }
    let Value::Array(messages) = value else {
        bail!("expected a list of messages, or an object with `messages`");
    };
    let messages = messages.into_iter().map(Message::from_json);
    Ok(messages.collect::<Result<_, _>>()?)
}

/// A line, or several that are joined by a backslash at the end; `None` at the end of the input or when Ctrl-C is pressed twice.
fn read(editor: &mut DefaultEditor) -> Result<Option<String>> {
    let mut text = String::new();
    let mut interrupted = false;
    loop {
        let prompt = if text.is_empty() { "> " } else { ". " };
        match editor.readline(prompt) {
            Ok(line) => {
                interrupted = false;
                if let Some(begun) = line.strip_suffix('\\') {
                    text += begun;
                    text.push('\n');
                    continue;
                }
                text += &line;
                if !text.trim().is_empty() {
                    // A history that is full or off is no reason to stop.
                    let _ = editor.add_history_entry(&text);
                }
                return Ok(Some(text));
            }
            Err(ReadlineError::Interrupted) if interrupted => return Ok(None),
            Err(ReadlineError::Interrupted) => {
                text.clear();
                interrupted = true;
                tell!("note: press Ctrl-C again, or Ctrl-D, to leave");
            }
            Err(ReadlineError::Eof) => return Ok(None),
            Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                text.clear();
                tell!("error: the line is not UTF-8; it is left out");
            }
            Err(error) => return Err(error).context("cannot read from the terminal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_or_text() {
        for (line, expected) in [
            ("", Line::Nothing),
            ("  ", Line::Nothing),
            ("hello", Line::Text("hello")),
            ("//x", Line::Text("/x")),
            ("/help", Line::Help),
            ("/reset", Line::Reset),
            ("/quit", Line::Quit),
            ("/save a b.json", Line::Save("a b.json")),
            ("/load  x", Line::Load("x")),
            ("/save", Line::Unknown("/save")),
            ("/system be short", Line::System("be short")),
            ("/system", Line::ShowSystem),
            ("/system \"\"", Line::System("")),
            ("/bye", Line::Quit),
            ("/sytem x", Line::Unknown("/sytem x")),
        ] {
            assert_eq!(Line::parse(line), expected, "{line}");
        }
    }

    #[test]
    fn a_saved_conversation_is_read_as_an_object_or_a_list() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("talk.json");
        let list = r#"[{"role": "user", "content": "a"}]"#;
        for text in [
            list.to_owned(),
            format!("{{\"model\": \"m\", \"messages\": {list}}}"),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(load(&file).unwrap(), [Message::new("user", "a")]);
        }
        for wrong in ["{}", "3", "[1]", "[{\"content\": 1}]"] {
            std::fs::write(&file, wrong).unwrap();
            assert!(load(&file).is_err(), "{wrong}");
        }
    }
}
