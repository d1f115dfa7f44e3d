//! Keeps the values of variables from nesting without end.
//!
//! A loop that sets `ns.x = [ns.x]` would build a list so deep that freeing it, which recurses, runs out of stack.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

/// Deeper values are refused; `serde_json` reads none deeper either.
const MAX_DEPTH: usize = 128;

/// The value itself, unless it is nested too deeply. What is computed on demand becomes a list, so that such values do not pile up either.
pub(super) fn bounded(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
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
        if is_map {
            check(state, &value.get_item(&item)?, depth)?;
        } else {
            check(state, &item, depth)?;
        }
    }
    Ok(())
}
