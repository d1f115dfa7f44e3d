//! The filter `tojson` of the `transformers` library: Python's `json.dumps` with `ensure_ascii` off, and without HTML escapes.

use super::Arguments;
use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Error, ErrorKind, State, Value};
use std::fmt::Write;

/// Deeper values are an error, so that the stack holds.
const MAX_DEPTH: usize = 100;
/// More spaces of indentation than this are an error, since they multiply the output.
const MAX_INDENT: usize = 16;

/// `value | tojson(ensure_ascii=false, indent=none, separators=none, sort_keys=false)`.
pub(super) fn tojson(
    state: &State<'_, '_>,
    value: &Value,
    args: Rest<ValueOrKwargs>,
) -> Result<String, Error> {
    let args = Arguments::new(
        "tojson",
        &args.into_values(),
        &["ensure_ascii", "indent", "separators", "sort_keys"],
    )?;
    let indent = args.get(1).map(indentation).transpose()?;
    let comma = if indent.is_some() { "," } else { ", " };
    let mut separators = (comma.to_owned(), ": ".to_owned());
    if let Some(pair) = args.get(2) {
        let pair: Vec<Value> = pair.try_iter()?.collect();
        match pair.as_slice() {
            [item, key] if item.as_str().is_some() && key.as_str().is_some() => {
                separators = (item.to_string(), key.to_string());
            }
            _ => return Err(invalid("separators are not a pair of strings")),
        }
    }
    let mut writer = Writer {
        state: Some(state),
        out: String::new(),
        paid: 0,
        ascii: args.get(0).is_some_and(Value::is_true),
        sort: args.get(3).is_some_and(Value::is_true),
        indent,
        separators,
    };
    writer.value(value, 0)?;
    Ok(writer.out)
}

/// Python's `json.dumps(value)`, without escapes for other than ASCII.
pub(crate) fn dumps(value: &Value) -> Result<String, Error> {
    let mut writer = Writer {
        state: None,
        out: String::new(),
        paid: 0,
        ascii: false,
        sort: false,
        indent: None,
        separators: (", ".to_owned(), ": ".to_owned()),
    };
    writer.value(value, 0)?;
    Ok(writer.out)
}

fn invalid(problem: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson: {problem}"))
}

/// `indent` is a number of spaces or the text itself.
fn indentation(value: &Value) -> Result<String, Error> {
    let text = if let Some(text) = value.as_str() {
        text.to_owned()
    } else {
        let count = i64::try_from(value.clone())?.max(0);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        " ".repeat(count.min(MAX_INDENT + 1))
    };
    if text.len() > MAX_INDENT {
        return Err(invalid(format!(
            "indent is more than {MAX_INDENT}, which is the limit"
        )));
    }
    Ok(text)
}

struct Writer<'a> {
    state: Option<&'a State<'a, 'a>>,
    out: String,
    paid: usize, // bytes of `out` that fuel was taken for
    ascii: bool,
    sort: bool,
    indent: Option<String>,
    separators: (String, String),
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(invalid(format!(
                "value is nested more than {MAX_DEPTH} deep"
            )));
        }
        self.pay()?;
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self
                .out
                .push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.number(value)?,
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.sequence(value, depth)?,
            ValueKind::Map => self.map(value, depth)?,
            kind => return Err(invalid(format!("{kind} is not JSON serializable"))),
        }
        Ok(())
    }

    /// One step for each 64 bytes, as the engine takes for strings.
    fn pay(&mut self) -> Result<(), Error> {
        let due = (self.out.len() - self.paid) / 64;
        if due > 0 {
            self.paid += due * 64;
            if let Some(state) = self.state {
                state.consume_fuel(due as u64)?;
            }
        }
        Ok(())
    }

    fn sequence(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut any = false;
        for item in value.try_iter()? {
            self.separate(any, depth + 1);
            any = true;
            self.value(&item, depth + 1)?;
        }
        self.close(any, depth, ']');
        Ok(())
    }

    fn map(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('{');
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.sort {
            keys.sort();
        }
        for (i, key) in keys.iter().enumerate() {
            self.separate(i > 0, depth + 1);
            match key.kind() {
                ValueKind::String => self.string(key.as_str().unwrap_or_default()),
                ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                    self.out.push('"');
                    self.value(key, depth + 1)?;
                    self.out.push('"');
                }
                kind => {
                    return Err(invalid(format!(
                        "a key is {kind}, expected a string, number, boolean or none"
                    )));
                }
            }
            self.out.push_str(&self.separators.1);
            self.value(&value.get_item(key)?, depth + 1)?;
        }
        self.close(!keys.is_empty(), depth, '}');
        Ok(())
    }

    fn separate(&mut self, again: bool, depth: usize) {
        if again {
            self.out.push_str(&self.separators.0);
        }
        self.line(depth);
    }

    fn close(&mut self, any: bool, depth: usize, bracket: char) {
        if any {
            self.line(depth);
        }
        self.out.push(bracket);
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(indent);
            }
        }
    }

    fn number(&mut self, value: &Value) -> Result<(), Error> {
        if value.is_integer() {
            write!(self.out, "{value}").map_err(invalid)
        } else {
            self.out.push_str(&float(f64::try_from(value.clone())?));
            Ok(())
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' || (self.ascii && c > '~') => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        // Writing to a string cannot fail.
                        let _ = write!(self.out, "\\u{unit:04x}");
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

/// A float as Python's `repr` writes it: the shortest digits, with an exponent below 1e-4 and from 1e16 up.
pub(super) fn float(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{x:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => format!("{x:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (x, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (5e-324, "5e-324"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float(x), text);
        }
    }
}
