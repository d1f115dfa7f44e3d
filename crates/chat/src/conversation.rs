//! What a caller wants rendered.

use crate::ChatError;
use jiff::civil::DateTime;
use serde_json::{Map, Value};

/// One message: an object with `role`, mostly `content`, and whatever else the template knows (`tool_calls`, `name`, `reasoning_content`,
/// ...). Keys keep their order, and keys unknown here are handed to the template too.
#[derive(Debug, Clone, PartialEq)]
pub struct Message(Map<String, Value>);

impl Message {
    /// A message with a role and a text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        let mut fields = Map::new();
        fields.insert("role".into(), Value::String(role.into()));
        fields.insert("content".into(), Value::String(content.into()));
        Self(fields)
    }

    /// A message of the form of the `OpenAI` API, checked. `content` is a string, a list of parts (`{"type": "text", "text": ...}`), null or absent;
    /// parts that are all text are joined by newlines into the plain string that most templates want.
    ///
    /// # Errors
    /// [`ChatError::Message`] names the field that has the wrong type.
    pub fn from_json(value: Value) -> Result<Self, ChatError> {
        let wrong = |place: &str, found: &Value, expected| ChatError::Message {
            place: place.to_owned(),
            found: kind(found).to_owned(),
            expected,
        };
        let Value::Object(mut fields) = value else {
            return Err(wrong(
                "message",
                &value,
                "an object with `role` and `content`",
            ));
        };
        match fields.get("role") {
            Some(Value::String(_)) => {}
            other => {
                return Err(wrong(
                    "message.role",
                    other.unwrap_or(&Value::Null),
                    "a string",
                ));
            }
        }
        match fields.get("content") {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(Value::Array(parts)) => {
                if let Some(part) = parts.iter().find(|part| !part.is_object()) {
                    return Err(wrong("message.content[]", part, "an object with `type`"));
                }
                if let Some(text) = joined(parts) {
                    fields.insert("content".into(), Value::String(text));
                }
            }
            Some(other) => {
                return Err(wrong(
                    "message.content",
                    other,
                    "a string, a list of parts or null",
                ));
            }
        }
        match fields.get("tool_calls") {
            None | Some(Value::Null | Value::Array(_)) => {}
            Some(other) => return Err(wrong("message.tool_calls", other, "a list")),
        }
        Ok(Self(fields))
    }

    /// The role.
    pub fn role(&self) -> &str {
        self.0
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The text, if the content is one.
    pub fn content(&self) -> Option<&str> {
        self.0.get("content").and_then(Value::as_str)
    }

    /// All fields.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Sets a field, such as `reasoning_content` or `name`.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.insert(key.into(), value.into());
        self
    }
}

/// The texts of the parts, if all of them are texts.
fn joined(parts: &[Value]) -> Option<String> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| {
            let is_text = part
                .get("type")
                .is_none_or(|t| matches!(t.as_str(), Some("text" | "input_text")));
            part.get("text").and_then(Value::as_str).filter(|_| is_text)
        })
        .collect();
    texts.map(|texts| texts.join("\n"))
}

/// The name of a JSON value's type, for errors.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Whether special tokens written in messages are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContentTrust {
    /// No: they are plain text. What every service wants.
    #[default]
    Plain,
    /// Yes, as if the template had written them: for callers who wrote every message themselves.
    Trusted,
}

/// The messages, and what else a template may ask for.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Tool definitions; templates see `none` if there are none.
    pub tools: Vec<Value>,
    /// Documents for templates that know them; `none` if there are none.
    pub documents: Vec<Value>,
    /// Whether the prompt ends with the opening of the assistant's turn.
    pub add_generation_prompt: bool,
    /// Further variables, such as `enable_thinking`.
    pub extra: Map<String, Value>,
    /// What `strftime_now` says; `None` is the local time.
    pub now: Option<DateTime>,
    /// Whether special tokens in the messages count.
    pub trust: ContentTrust,
}

impl Conversation {
    /// A conversation that waits for the assistant's answer.
    pub fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            add_generation_prompt: true,
            ..Self::default()
        }
    }

    /// Every string in it that is from outside, keys included.
    pub(crate) fn strings(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let maps = self
            .messages
            .iter()
            .map(|message| &message.0)
            .chain([&self.extra]);
        for (key, value) in maps.flatten() {
            found.push(key.as_str());
            collect_strings(value, &mut found);
        }
        for value in self.tools.iter().chain(&self.documents) {
            collect_strings(value, &mut found);
        }
        found
    }
}

fn collect_strings<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                found.extend(fields.keys().map(String::as_str));
                open.extend(fields.values());
            }
            _ => {}
        }
    }
}
