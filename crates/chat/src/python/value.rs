//! JSON values to template values.

use minijinja::Value;
use serde_json::Value as Json;

/// The same value for a template; keys keep their order.
pub(crate) fn from_json(value: &Json) -> Value {
    match value {
        Json::Null => Value::from(()),
        Json::Bool(b) => Value::from(*b),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(from_json).collect(),
        Json::Object(fields) => Value::from_pairs(
            fields
                .iter()
                .map(|(key, value)| (key.as_str(), from_json(value))),
        ),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(integer)) => Value::from(integer),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
    }
}
