//! Keeps the values of variables from nesting without end.
//!
//! A loop that sets `ns.x = [ns.x]` would build a list so deep that freeing it, which recurses, runs out of stack. A namespace that holds
//! itself has no end at all; so no namespace may be inside of another value, nor be the value of an attribute.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

/// Deeper values are refused; `serde_json` reads none deeper either.
const MAX_DEPTH: usize = 128;

/// The value itself, unless it is nested too deeply. What is computed on demand becomes a list, so that such values do not pile up either.
pub(super) fn bounded(
    state: &State<'_, '_>,
    value: Value,
    attribute: Option<bool>,
) -> Result<Value, Error> {
    if attribute == Some(true) {
        refuse_namespace(&value)?;
    }
    let lazy = match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            !value.is_tuple() && value.downcast_object_ref::<Vec<Value>>().is_none()
        }
        ValueKind::Map => false,
        _ => return Ok(value),
    };
    let value = if lazy {
        Value::from(value.try_iter()?.collect::<Vec<Value>>())
    } else {
        value
    };
    check(state, &value, MAX_DEPTH)?;
    Ok(value)
}

fn check(state: &State<'_, '_>, value: &Value, depth: usize) -> Result<(), Error> {
    let is_map = match value.kind() {
        ValueKind::Seq => false,
        ValueKind::Map => true,
        _ => return Ok(()),
    };
    let Some(depth) = depth.checked_sub(1) else {
        let problem = format!("a value is nested more than {MAX_DEPTH} deep");
        return Err(Error::new(ErrorKind::InvalidOperation, problem));
    };
    // Shared parts are visited again and again; this ends it.
    state.consume_fuel(1 + value.len().unwrap_or(0) as u64 / 8)?;
    for item in value.try_iter()? {
        let part = if is_map { value.get_item(&item)? } else { item };
        refuse_namespace(&part)?;
        check(state, &part, depth)?;
    }
    Ok(())
}

/// Namespaces are the only values that change, and so the only ones that can come to hold themselves.
fn refuse_namespace(value: &Value) -> Result<(), Error> {
    let is_namespace = value
        .as_object()
        .is_some_and(|object| object.type_name().ends_with("::Namespace"));
    if is_namespace {
        let problem = "a namespace inside of another value; keep it in a variable of its own";
        return Err(Error::new(ErrorKind::InvalidOperation, problem));
    }
    Ok(())
}
