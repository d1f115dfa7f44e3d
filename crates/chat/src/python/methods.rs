//! Python's methods of strings, lists and dictionaries: those that `minijinja-contrib` lacks or that differ from Python there.

use super::Arguments;
use minijinja::value::{StringInput, Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;
use std::borrow::Cow;

/// Calls a method that the engine does not have.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let own = match value.kind() {
        ValueKind::String => string(state, value.as_str().unwrap_or_default(), method, args)?,
        ValueKind::Map => map(value, method, args)?,
        ValueKind::Seq if method == "index" => Some(index_of(value, args)?),
        _ => None,
    };
    own.map_or_else(
        || pycompat::unknown_method_callback(state, value, method, args),
        Ok,
    )
}

/// The filter `trim`, with Python's idea of space.
#[expect(clippy::needless_pass_by_value, reason = "the shape that a filter has")]
pub(super) fn trim_filter(value: StringInput<'_>, chars: Option<Cow<'_, str>>) -> Value {
    Value::from(trim(value.as_str(), chars.as_deref(), true, true))
}

/// What `str.isspace` says in Python: Unicode's white space and four control characters.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn trim<'a>(text: &'a str, chars: Option<&str>, left: bool, right: bool) -> &'a str {
    let goes = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let text = if left {
        text.trim_start_matches(goes)
    } else {
        text
    };
    if right {
        text.trim_end_matches(goes)
    } else {
        text
    }
}

fn invalid(problem: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, problem)
}

/// `None` if the method is left to `minijinja-contrib`.
fn string(
    state: &State<'_, '_>,
    text: &str,
    method: &str,
    args: &[Value],
) -> Result<Option<Value>, Error> {
    let arguments = |names: &[&str]| Arguments::new(method, args, names);
    Ok(Some(match method {
        "strip" | "lstrip" | "rstrip" => {
            let args = arguments(&["chars"])?;
            Value::from(trim(
                text,
                args.text(0)?,
                method != "rstrip",
                method != "lstrip",
            ))
        }
        "split" | "rsplit" => split(text, &arguments(&["sep", "maxsplit"])?, method == "rsplit")?,
        "splitlines" => splitlines(
            text,
            arguments(&["keepends"])?.get(0).is_some_and(Value::is_true),
        ),
        "removeprefix" => {
            let args = arguments(&["prefix"])?;
            Value::from(text.strip_prefix(args.required(0)?).unwrap_or(text))
        }
        "removesuffix" => {
            let args = arguments(&["suffix"])?;
            Value::from(text.strip_suffix(args.required(0)?).unwrap_or(text))
        }
        "partition" | "rpartition" => {
            let args = arguments(&["sep"])?;
            partition(text, args.required(0)?, method == "rpartition")?
        }
        "find" | "rfind" | "index" | "rindex" => {
            find(text, method, &arguments(&["sub", "start", "end"])?)?
        }
        "ljust" | "rjust" | "center" | "zfill" => {
            pad(state, text, method, &arguments(&["width", "fillchar"])?)?
        }
        "casefold" => {
            arguments(&[])?;
            Value::from(text.replace('ß', "ss").to_lowercase())
        }
        "swapcase" => {
            arguments(&[])?;
            let swap = |c: char| -> Vec<char> {
                if c.is_uppercase() {
                    c.to_lowercase().collect()
                } else {
                    c.to_uppercase().collect()
                }
            };
            Value::from(text.chars().flat_map(swap).collect::<String>())
        }
        "expandtabs" => {
            let args = arguments(&["tabsize"])?;
            expand_tabs(state, text, args.integer(0)?.unwrap_or(8))?
        }
        "format" => {
            pay(state, widths(text))?;
            return Ok(None);
        }
        _ => return Ok(None),
    }))
}

fn split(text: &str, args: &Arguments, from_right: bool) -> Result<Value, Error> {
    let limit = usize::try_from(args.integer(1)?.unwrap_or(-1)).unwrap_or(usize::MAX);
    let parts: Vec<&str> = match args.text(0)? {
        Some("") => return Err(invalid("split: empty separator")),
        Some(sep) if from_right => {
            let mut parts: Vec<&str> = text.rsplitn(limit.saturating_add(1), sep).collect();
            parts.reverse();
            parts
        }
        Some(sep) => text.splitn(limit.saturating_add(1), sep).collect(),
        None => split_at_spaces(text, limit, from_right),
    };
    Ok(parts.into_iter().map(Value::from).collect())
}

/// Splits at runs of space, `limit` times at most; the rest keeps its inner spaces.
fn split_at_spaces(text: &str, limit: usize, from_right: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = trim(text, None, !from_right, from_right);
    while !rest.is_empty() {
        let border = if from_right {
            rest.rfind(is_space)
        } else {
            rest.find(is_space)
        };
        let Some(border) = border.filter(|_| parts.len() < limit) else {
            parts.push(rest);
            break;
        };
        let (before, after) = rest.split_at(border);
        if from_right {
            parts.push(trim(after, None, true, false));
            rest = trim(before, None, false, true);
        } else {
            parts.push(before);
            rest = trim(after, None, true, false);
        }
    }
    if from_right {
        parts.reverse();
    }
    parts
}

fn splitlines(text: &str, keep_ends: bool) -> Value {
    let mut lines = Vec::new();
    let mut rest = text;
    let ends_line = |c: char| matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    while !rest.is_empty() {
        let end = rest.find(ends_line).unwrap_or(rest.len());
        let (line, tail) = rest.split_at(end);
        let after = tail.strip_prefix("\r\n").unwrap_or_else(|| {
            let mut chars = tail.chars();
            chars.next();
            chars.as_str()
        });
        let kept = if keep_ends {
            rest.len() - after.len()
        } else {
            line.len()
        };
        lines.push(Value::from(rest.get(..kept).unwrap_or_default()));
        rest = after;
    }
    Value::from(lines)
}

fn partition(text: &str, sep: &str, from_right: bool) -> Result<Value, Error> {
    if sep.is_empty() {
        return Err(invalid("partition: empty separator"));
    }
    let found = if from_right {
        text.rsplit_once(sep)
    } else {
        text.split_once(sep)
    };
    let parts = match found {
        Some((before, after)) => [before, sep, after],
        None if from_right => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(Tuple::from(parts.map(Value::from).to_vec())))
}

fn find(text: &str, method: &str, args: &Arguments) -> Result<Value, Error> {
    let sub = args.required(0)?;
    let chars = text.chars().count();
    // A position in characters, negative from the end, to bytes.
    let position = |place: usize, default: usize| -> Result<usize, Error> {
        Ok(match args.integer(place)? {
            None => default,
            Some(at) if at < 0 => {
                chars.saturating_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX))
            }
            Some(at) => usize::try_from(at).unwrap_or(usize::MAX),
        })
    };
    let (start, end) = (position(1, 0)?, position(2, chars)?.min(chars));
    let byte = |at: usize| {
        text.char_indices()
            .nth(at)
            .map_or(text.len(), |(byte, _)| byte)
    };
    let window = if start <= end {
        text.get(byte(start)..byte(end))
    } else {
        None
    };
    let found = window.and_then(|part| {
        let at = if method.starts_with('r') {
            part.rfind(sub)
        } else {
            part.find(sub)
        };
        at.map(|at| start + part.get(..at).map_or(0, |before| before.chars().count()))
    });
    match found {
        Some(at) => Ok(Value::from(at)),
        None if method.ends_with("index") => Err(invalid("substring not found")),
        None => Ok(Value::from(-1)),
    }
}

/// Takes the steps that making so many bytes costs, before they are made.
fn pay(state: &State<'_, '_>, bytes: usize) -> Result<(), Error> {
    state.consume_fuel(bytes as u64 / 64)
}

/// Bytes that the widths and precisions in a format string may ask for, at most.
fn widths(format: &str) -> usize {
    let numbers = format.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter(|digits| !digits.is_empty());
    numbers.fold(0, |sum, digits| {
        sum.saturating_add(digits.parse().unwrap_or(usize::MAX))
    })
}

fn pad(state: &State<'_, '_>, text: &str, method: &str, args: &Arguments) -> Result<Value, Error> {
    let width = args
        .integer(0)?
        .ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
    let width = usize::try_from(width).unwrap_or(0);
    let fill = if method == "zfill" {
        "0"
    } else {
        args.text(1)?.unwrap_or(" ")
    };
    if fill.chars().count() != 1 {
        return Err(invalid(
            "the fill character must be exactly one character long",
        ));
    }
    let missing = width.saturating_sub(text.chars().count());
    pay(state, missing.saturating_mul(fill.len()))?;
    let (left, right) = match method {
        "ljust" => (0, missing),
        // CPython puts the odd one to the left if the width is odd.
        "center" => {
            let left = missing / 2 + (missing & width & 1);
            (left, missing - left)
        }
        _ => (missing, 0),
    };
    let signed = text.strip_prefix(['+', '-']).filter(|_| method == "zfill");
    let (sign, digits) = text.split_at(signed.map_or(0, |_| 1));
    Ok(Value::from(format!(
        "{sign}{}{digits}{}",
        fill.repeat(left),
        fill.repeat(right)
    )))
}

fn expand_tabs(state: &State<'_, '_>, text: &str, size: i64) -> Result<Value, Error> {
    let size = usize::try_from(size).unwrap_or(0);
    pay(state, text.matches('\t').count().saturating_mul(size))?;
    let (mut result, mut column) = (String::new(), 0);
    for c in text.chars() {
        match c {
            '\t' => {
                let spaces = if size == 0 { 0 } else { size - column % size };
                result.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            c => {
                result.push(c);
                column = if matches!(c, '\n' | '\r') {
                    0
                } else {
                    column + 1
                };
            }
        }
    }
    Ok(Value::from(result))
}

/// `None` if the method is left to `minijinja-contrib`.
fn map(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "copy" => {
            Arguments::new(method, args, &[])?;
            value.clone()
        }
        "get" => {
            let args = Arguments::new(method, args, &["key", "default"])?;
            let Some(Some(key)) = args.0.first() else {
                return Err(Error::from(ErrorKind::MissingArgument));
            };
            let found = value.get_item(key)?;
            if found.is_undefined() {
                args.get(1).cloned().unwrap_or_else(|| Value::from(()))
            } else {
                found
            }
        }
        _ => return Ok(None),
    }))
}

fn index_of(value: &Value, args: &[Value]) -> Result<Value, Error> {
    let args = Arguments::new("index", args, &["value"])?;
    let Some(Some(wanted)) = args.0.first() else {
        return Err(Error::from(ErrorKind::MissingArgument));
    };
    let position = value.try_iter()?.position(|item| item == *wanted);
    position
        .map(Value::from)
        .ok_or_else(|| invalid("value is not in list"))
}
