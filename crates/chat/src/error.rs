//! What can go wrong between a conversation and its prompt.

use minijinja::ErrorKind;

/// A template or a message that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The template is not valid.
    #[error("chat template, line {line}, column {column}: {problem}, in `{text}`")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What the parser found.
        problem: String,
        /// The line itself, shortened.
        text: String,
    },
    /// The template refused the conversation by `raise_exception`; its own words.
    #[error("{0}")]
    Refused(String),
    /// The template failed while rendering.
    #[error("chat template, line {line}: {problem}")]
    Render {
        /// Line, from 1; 0 if it is not known.
        line: usize,
        /// What went wrong.
        problem: String,
    },
    /// The template takes too many steps, as an endless or hostile one does.
    #[error(
        "chat template: still not done after {steps} steps, which is the limit for this conversation"
    )]
    TooManySteps {
        /// The limit.
        steps: u64,
    },
    /// The prompt would be longer than any real one.
    #[error("chat template: output beyond {limit} bytes, which is the limit for this conversation")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// A message, a tool or a document has the wrong form.
    #[error("{place}: found {found}, expected {expected}")]
    Message {
        /// Which one, as in `messages[2].content`.
        place: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The conversation holds the text of special tokens, and what of the prompt came from it could not be told apart.
    #[error(
        "chat template: the messages contain the text of special tokens, and this template mixes them with its own so that they cannot be kept apart; remove `{token}` from the messages"
    )]
    Inseparable {
        /// The first such text.
        token: String,
    },
}

/// The error that carries the message of `raise_exception` through the engine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Raised(pub(crate) String);

impl ChatError {
    /// From the engine's error about a template with this source.
    pub(crate) fn from_engine(error: &minijinja::Error, source: &str, steps: u64) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(inner) = cause {
            if let Some(Raised(message)) = inner.downcast_ref() {
                return Self::Refused(message.clone());
            }
            cause = inner.source();
        }
        let problem = match error.detail() {
            Some(detail) => detail.to_owned(),
            None => error.kind().to_string(),
        };
        let line = error.line().unwrap_or(0);
        match error.kind() {
            ErrorKind::OutOfFuel => Self::TooManySteps { steps },
            ErrorKind::SyntaxError | ErrorKind::BadEscape => {
                let line_start: usize = source
                    .split_inclusive('\n')
                    .take(line.max(1) - 1)
                    .map(str::len)
                    .sum();
                let start = error
                    .range()
                    .map_or(line_start, |range| range.start.max(line_start));
                Self::syntax(source, start, problem)
            }
            kind => {
                let problem = if error.detail().is_some() {
                    format!("{kind}: {problem}")
                } else {
                    problem
                };
                Self::Render { line, problem }
            }
        }
    }
}

impl ChatError {
    /// A problem at this byte of the source.
    pub(crate) fn syntax(source: &str, at: usize, problem: String) -> Self {
        let before = source.get(..at).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        let text = source.get(line_start..).unwrap_or_default();
        let text = text.split('\n').next().unwrap_or_default();
        let text = excerpt(text, column);
        Self::Syntax {
            line,
            column,
            problem,
            text,
        }
    }
}

/// At most 80 characters of a line, around the column.
fn excerpt(line: &str, column: usize) -> String {
    let from = column.saturating_sub(40);
    let part: String = line.chars().skip(from).take(80).collect();
    part.trim().to_owned()
}
