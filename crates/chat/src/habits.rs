//! What a template expects of messages with tool calls, where templates disagree: found out by trying.

use crate::Message;
use crate::python::{dumps, from_json};
use crate::template::{Engine, Limits};
use minijinja::Value;
use serde_json::{Value as Json, json};

/// How this template wants a message that calls tools. The `OpenAI` API leaves `content` out (or null) and writes `arguments` as a string of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Habits {
    /// Absent content is handed over as none; otherwise as the empty string.
    null_content: bool,
    /// Arguments are handed over as a string of JSON; otherwise as an object.
    string_arguments: bool,
}

impl Habits {
    /// Renders small conversations and looks whether the call comes out.
    pub(crate) fn probe(engine: &Engine) -> Self {
        let forms = [(false, false), (true, false), (false, true), (true, true)];
        let forms = forms.map(|(null_content, string_arguments)| Self {
            null_content,
            string_arguments,
        });
        let works = |habits: &&Self| habits.works(engine);
        forms.iter().find(works).copied().unwrap_or(forms[0])
    }

    fn works(self, engine: &Engine) -> bool {
        let call = json!({
            "id": "puna12345", "type": "function",
            "function": {"name": "puna_probe", "arguments": {"puna_key": "puna_value"}},
        });
        let calling = json!({"role": "assistant", "tool_calls": [call]});
        let Ok(calling) = Message::from_json(calling) else {
            return false;
        };
        let result = Message::new("tool", "ok")
            .with("tool_call_id", "puna12345")
            .with("name", "puna_probe");
        let messages = [Message::new("user", "hi"), calling, result];
        let tools = json!([{"type": "function", "function": {
            "name": "puna_probe", "description": "d", "parameters": {"type": "object", "properties": {}},
        }}]);
        let values = Value::from_pairs([
            (
                "messages",
                messages
                    .iter()
                    .map(|message| self.message(message))
                    .collect::<Value>(),
            ),
            ("tools", from_json(&tools)),
            ("documents", Value::from(())),
            ("add_generation_prompt", Value::from(true)),
            ("bos_token", Value::from("")),
            ("eos_token", Value::from("")),
            (
                "strftime_now",
                crate::python::strftime_at(jiff::civil::date(2025, 1, 1).at(0, 0, 0, 0)),
            ),
        ]);
        let Ok(text) = engine.render(values, &Limits::default()) else {
            return false;
        };
        let arguments = text.contains("puna_key") && text.contains("puna_value");
        // An object printed the Python way, or a string of JSON put into JSON once more.
        let garbled = text.contains("'puna_key'") || text.contains("\\\"puna_key");
        arguments && !garbled && !text.contains("None")
    }

    /// The message as this template wants it.
    pub(crate) fn message(self, message: &Message) -> Value {
        let fields = message.fields();
        let Some(Json::Array(calls)) = fields
            .get("tool_calls")
            .filter(|calls| !calls.as_array().is_some_and(Vec::is_empty))
        else {
            let absent = !matches!(fields.get("content"), Some(content) if !content.is_null());
            // A message without content and calls is an empty one.
            if !absent {
                return from_json(&Json::Object(fields.clone()));
            }
            let mut fields = fields.clone();
            fields.insert("content".into(), Json::String(String::new()));
            return from_json(&Json::Object(fields));
        };
        let calls: Vec<Json> = calls.iter().map(|call| self.call(call.clone())).collect();
        let mut fields = fields.clone();
        if fields.get("content").is_none_or(Json::is_null) {
            let content = if self.null_content {
                Json::Null
            } else {
                Json::String(String::new())
            };
            fields.insert("content".into(), content);
        }
        fields.insert("tool_calls".into(), Json::Array(calls));
        from_json(&Json::Object(fields))
    }

    fn call(self, mut call: Json) -> Json {
        let inner = if call.get("function").is_some_and(Json::is_object) {
            call.get_mut("function")
        } else {
            Some(&mut call)
        };
        let Some(arguments) = inner.and_then(|function| function.get_mut("arguments")) else {
            return call;
        };
        match arguments {
            Json::String(text) if !self.string_arguments => {
                // Text that is no JSON object stays what the model wrote.
                if let Ok(parsed @ Json::Object(_)) = serde_json::from_str(text) {
                    *arguments = parsed;
                }
            }
            Json::Object(_) if self.string_arguments => {
                if let Ok(text) = dumps(&from_json(arguments)) {
                    *arguments = Json::String(text);
                }
            }
            _ => {}
        }
        call
    }
}
