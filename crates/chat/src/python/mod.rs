//! What templates expect of Python that the engine does not have, or has in another form.

mod json;
mod methods;
mod value;

pub(crate) use value::from_json;

use crate::error::Raised;
use jiff::civil::DateTime;
use jiff::fmt::strtime::{BrokenDownTime, Config};
use minijinja::{Environment, Error, ErrorKind, Value};

/// Adds filters, functions and methods to an environment.
pub(crate) fn install(env: &mut Environment<'static>) {
    env.set_unknown_method_callback(methods::call);
    env.add_filter("tojson", json::tojson);
    env.add_filter("trim", methods::trim_filter);
    env.add_function(
        "raise_exception",
        |message: Value| -> Result<Value, Error> {
            let message = message.to_string();
            Err(Error::new(ErrorKind::InvalidOperation, message.clone())
                .with_source(Raised(message)))
        },
    );
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
