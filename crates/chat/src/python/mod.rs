//! What templates expect of Python that the engine does not have, or has in another form.

mod bounded;
mod json;
mod methods;
mod value;

pub(crate) use json::dumps;
pub(crate) use value::from_json;

use crate::error::Raised;
use jiff::civil::DateTime;
use jiff::fmt::strtime::{BrokenDownTime, Config};
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Value, escape_formatter};

/// Adds filters, functions and methods to an environment.
pub(crate) fn install(env: &mut Environment<'static>) {
    env.set_unknown_method_callback(methods::call);
    env.add_filter(crate::source::BOUNDED, bounded::bounded);
    env.add_filter("tojson", json::tojson);
    env.add_filter("trim", methods::trim_filter);
    env.add_filter("string", |value: &Value| {
        float_text(value).map_or_else(|| Value::from(value.to_string()), Value::from)
    });
    // In Python strings and dictionaries are sequences too, none is not iterable, and what is undefined is both.
    let kinds = [
        ValueKind::String,
        ValueKind::Map,
        ValueKind::Seq,
        ValueKind::Iterable,
        ValueKind::Undefined,
    ];
    env.add_test("iterable", move |value: &Value| {
        kinds.contains(&value.kind())
    });
    env.add_test("sequence", move |value: &Value| {
        kinds.contains(&value.kind()) && (value.is_undefined() || value.len().is_some())
    });
    env.set_formatter(|out, state, value| match float_text(value) {
        Some(text) => out.write_str(&text).map_err(Error::from),
        None => escape_formatter(out, state, value),
    });
    env.add_function(
        "raise_exception",
        |message: Value| -> Result<Value, Error> {
            let message = message.to_string();
            Err(Error::new(ErrorKind::InvalidOperation, message.clone())
                .with_source(Raised(message)))
        },
    );
}

/// A float as Python prints it; `None` for all else.
fn float_text(value: &Value) -> Option<String> {
    let is_float = value.kind() == ValueKind::Number && !value.is_integer();
    let number = is_float.then(|| f64::try_from(value.clone()).ok())??;
    if number.is_finite() {
        return Some(json::float(number));
    }
    Some(
        if number.is_nan() {
            "nan"
        } else if number > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned(),
    )
}

/// `datetime.now().strftime` at a fixed moment; what it does not know stays as it stands, as in the C library.
pub(crate) fn strftime_at(now: DateTime) -> Value {
    Value::from_function(move |format: &str| -> Result<String, Error> {
        let config = Config::new().lenient(true);
        BrokenDownTime::from(now)
            .to_string_with_config(&config, format)
            .map_err(|error| {
                Error::new(
                    ErrorKind::InvalidOperation,
                    format!("strftime_now: {error}"),
                )
            })
    })
}

/// The arguments of a call, put into the places of their names.
struct Arguments(Vec<Option<Value>>);

impl Arguments {
    fn new(method: &str, args: &[Value], names: &[&str]) -> Result<Self, Error> {
        let mut places = vec![None; names.len()];
        let wrong = |kind, what: String| Err(Error::new(kind, format!("{method}: {what}")));
        let mut position = 0;
        for arg in args {
            if arg.is_kwargs() {
                for key in arg.try_iter()? {
                    let name = key.to_string();
                    let place = names
                        .iter()
                        .position(|&known| known == name)
                        .and_then(|i| places.get_mut(i));
                    let Some(place) = place else {
                        return wrong(
                            ErrorKind::TooManyArguments,
                            format!("unknown argument `{name}`"),
                        );
                    };
                    *place = Some(arg.get_item(&key)?);
                }
            } else {
                let Some(place) = places.get_mut(position) else {
                    return wrong(
                        ErrorKind::TooManyArguments,
                        format!("expected at most {} arguments", names.len()),
                    );
                };
                *place = Some(arg.clone());
                position += 1;
            }
        }
        Ok(Self(places))
    }

    /// The argument in a place; `None` if it is absent or none.
    fn get(&self, place: usize) -> Option<&Value> {
        self.0
            .get(place)
            .and_then(Option::as_ref)
            .filter(|value| !value.is_none())
    }

    fn text(&self, place: usize) -> Result<Option<&str>, Error> {
        self.get(place)
            .map_or(Ok(None), |value| match value.as_str() {
                Some(text) => Ok(Some(text)),
                None => Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("expected a string, found {}", value.kind()),
                )),
            })
    }

    fn required(&self, place: usize) -> Result<&str, Error> {
        self.text(place)?
            .ok_or_else(|| Error::from(ErrorKind::MissingArgument))
    }

    fn integer(&self, place: usize) -> Result<Option<i64>, Error> {
        self.get(place)
            .map_or(Ok(None), |value| i64::try_from(value.clone()).map(Some))
    }
}
