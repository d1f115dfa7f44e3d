//! The ordered key-value part of a file, with lookups that check types.

use crate::array::{Array, StringArray};
use crate::error::{GgufError, shown};
use crate::value::Value;

/// Keys and values in the order of the file; no key twice.
///
/// Each typed lookup answers `Ok(None)` when the key is absent, and an error naming the key when its value is
/// of another type or out of range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    entries: Vec<(String, Value)>,
    /// Positions in `entries`, sorted by key.
    order: Vec<usize>,
}

impl Metadata {
    /// An index over entries as they were read; an error when a key occurs twice.
    pub(crate) fn from_entries(entries: Vec<(String, Value)>) -> Result<Self, GgufError> {
        let mut keyed: Vec<(&str, usize)> = entries
            .iter()
            .enumerate()
            .map(|(index, (key, _))| (key.as_str(), index))
            .collect();
        keyed.sort_unstable();
        for pair in keyed.windows(2) {
            if let [(key, first), (next, second)] = pair
                && key == next
            {
                return Err(GgufError::DuplicateKey {
                    key: shown(key),
                    first: *first as u64,
                    second: *second as u64,
                });
            }
        }
        let order = keyed.into_iter().map(|(_, index)| index).collect();
        Ok(Self { entries, order })
    }

    /// Adds an entry at the end, or replaces the value of a key that is there.
    pub(crate) fn set(&mut self, key: &str, value: Value) {
        match self.find(key) {
            Ok(index) => {
                if let Some((_, old)) = self.entries.get_mut(index) {
                    *old = value;
                }
            }
            Err(rank) => {
                self.order.insert(rank, self.entries.len());
                self.entries.push((key.to_owned(), value));
            }
        }
    }

    /// The position of a key in `entries`, or where it would stand in `order`.
    fn find(&self, key: &str) -> Result<usize, usize> {
        let key_at = |&index: &usize| self.entries.get(index).map_or("", |(key, _)| key);
        let rank = self
            .order
            .binary_search_by(|index| key_at(index).cmp(key))?;
        self.order.get(rank).copied().ok_or(rank)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a key, of whatever type.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let index = self.find(key).ok()?;
        self.entries.get(index).map(|(_, value)| value)
    }

    /// Whether the key is there.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Keys and values in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + '_ {
        self.entries
            .iter()
            .map(|(key, value)| (key.as_str(), value))
    }

    /// An integer of any width that fits 32 bits unsigned.
    pub fn u32(&self, key: &str) -> Result<Option<u32>, GgufError> {
        self.integer(key, "an integer from 0 to 4294967295")
    }

    /// An integer of any width that is not negative.
    pub fn u64(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.integer(key, "an integer, at least 0")
    }

    /// An integer of any width that fits 64 bits signed.
    pub fn i64(&self, key: &str) -> Result<Option<i64>, GgufError> {
        self.integer(key, "an integer of 64 bits")
    }

    /// A floating-point number, rounded to 32 bits.
    pub fn f32(&self, key: &str) -> Result<Option<f32>, GgufError> {
        self.typed(key, "f32 or f64", Value::float)
    }

    /// A boolean.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.typed(key, "bool", boolean)
    }

    /// A text; an error also when it is not UTF-8.
    pub fn str(&self, key: &str) -> Result<Option<&str>, GgufError> {
        let string = self.typed(key, "string", |value| match value {
            Value::String(string) => Some(string),
            _ => None,
        })?;
        let Some(string) = string else {
            return Ok(None);
        };
        match string.as_str() {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(GgufError::NotUtf8 {
                key: shown(key),
                at: error.valid_up_to(),
            }),
        }
    }

    /// An array of any element type.
    pub fn array(&self, key: &str) -> Result<Option<&Array>, GgufError> {
        self.typed(key, "array", as_array)
    }

    /// An array of strings.
    pub fn strings(&self, key: &str) -> Result<Option<&StringArray>, GgufError> {
        self.typed(key, "array of string", |value| match as_array(value)? {
            Array::Strings(strings) => Some(strings),
            _ => None,
        })
    }

    /// An array of integers of any width; an error naming the position of one that does not fit.
    pub fn integers(&self, key: &str) -> Result<Option<Vec<i64>>, GgufError> {
        let numbers = self.scalars(key, "array of integers", Value::integer)?;
        let Some(numbers) = numbers else {
            return Ok(None);
        };
        let fitting = numbers.iter().enumerate().map(|(index, &number)| {
            i64::try_from(number).map_err(|_| GgufError::OutOfRange {
                key: format!("{}[{index}]", shown(key)),
                expected: "an integer of 64 bits, signed",
                found: number.to_string(),
            })
        });
        fitting.collect::<Result<_, _>>().map(Some)
    }

    /// An array of floating-point numbers, rounded to 32 bits.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f32>>, GgufError> {
        self.scalars(key, "array of f32 or f64", Value::float)
    }

    /// An array of booleans.
    pub fn bools(&self, key: &str) -> Result<Option<Vec<bool>>, GgufError> {
        self.scalars(key, "array of bool", boolean)
    }

    /// The elements of an array for which `pick` takes the element type.
    fn scalars<T>(
        &self,
        key: &str,
        expected: &'static str,
        pick: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<Vec<T>>, GgufError> {
        self.typed(key, expected, |value| match as_array(value)? {
            Array::Scalars(scalars) => {
                // The type decides, not the elements: an empty array of another type is wrong as well.
                pick(&scalars.zero())?;
                scalars.iter().map(|value| pick(&value)).collect()
            }
            _ => None,
        })
    }

    fn integer<T: TryFrom<i128>>(
        &self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<T>, GgufError> {
        let Some(number) = self.typed(key, expected, Value::integer)? else {
            return Ok(None);
        };
        match T::try_from(number) {
            Ok(fitting) => Ok(Some(fitting)),
            Err(_) => Err(GgufError::OutOfRange {
                key: shown(key),
                expected,
                found: number.to_string(),
            }),
        }
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        pick: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match pick(value) {
                Some(picked) => Ok(Some(picked)),
                None => Err(GgufError::WrongType {
                    key: shown(key),
                    expected,
                    found: value.describe(),
                }),
            },
        }
    }
}

fn as_array(value: &Value) -> Option<&Array> {
    match value {
        Value::Array(array) => Some(array),
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(b) => Some(*b),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(entries: &[(&str, Value)]) -> Metadata {
        let entries = entries.iter().map(|(k, v)| ((*k).to_owned(), v.clone()));
        Metadata::from_entries(entries.collect()).expect("no key twice")
    }

    #[test]
    fn an_integer_of_any_width_is_taken_when_it_fits() {
        let m = metadata(&[
            ("u8", 7u8.into()),
            ("i8", (-7i8).into()),
            ("u16", 7u16.into()),
            ("i16", (-7i16).into()),
            ("u32", u32::MAX.into()),
            ("i32", 7i32.into()),
            ("u64", u64::MAX.into()),
            ("i64", i64::MIN.into()),
        ]);
        assert_eq!(m.u32("u8").unwrap(), Some(7));
        assert_eq!(m.u32("u16").unwrap(), Some(7));
        assert_eq!(m.u32("u32").unwrap(), Some(u32::MAX));
        assert_eq!(m.u32("i32").unwrap(), Some(7));
        assert_eq!(m.u64("u64").unwrap(), Some(u64::MAX));
        assert_eq!(m.i64("i8").unwrap(), Some(-7));
        assert_eq!(m.i64("i16").unwrap(), Some(-7));
        assert_eq!(m.i64("i64").unwrap(), Some(i64::MIN));
        for (key, error) in [("i8", m.u32("i8")), ("u64", m.u32("u64"))] {
            let error = error.unwrap_err();
            assert!(
                matches!(&error, GgufError::OutOfRange { key: k, .. } if k == key),
                "{error}"
            );
        }
        assert!(m.u64("i16").is_err());
        assert!(m.i64("u64").is_err());
    }

    #[test]
    fn an_absent_key_is_no_error_for_any_lookup() {
        let m = Metadata::default();
        assert_eq!(m.u32("k").unwrap(), None);
        assert_eq!(m.f32("k").unwrap(), None);
        assert_eq!(m.bool("k").unwrap(), None);
        assert_eq!(m.str("k").unwrap(), None);
        assert_eq!(m.array("k").unwrap(), None);
        assert_eq!(m.strings("k").unwrap(), None);
        assert_eq!(m.integers("k").unwrap(), None);
        assert_eq!(m.floats("k").unwrap(), None);
        assert_eq!(m.bools("k").unwrap(), None);
    }

    #[test]
    fn a_value_of_another_type_is_an_error_that_names_the_key_and_both_types() {
        let m = metadata(&[
            ("tokenizer.ggml.scores", (&[1u8, 2][..]).into()),
            ("n", 1u32.into()),
        ]);
        assert_eq!(
            m.floats("tokenizer.ggml.scores").unwrap_err().to_string(),
            "metadata key `tokenizer.ggml.scores`: found array of u8, expected array of f32 or f64"
        );
        assert_eq!(
            m.integers("tokenizer.ggml.scores").unwrap(),
            Some(vec![1, 2])
        );
        for error in [
            m.f32("n").unwrap_err(),
            m.bool("n").unwrap_err(),
            m.str("n").unwrap_err(),
            m.array("n").unwrap_err(),
            m.strings("n").unwrap_err(),
            m.strings("tokenizer.ggml.scores").unwrap_err(),
            m.bools("tokenizer.ggml.scores").unwrap_err(),
            m.u32("tokenizer.ggml.scores").unwrap_err(),
        ] {
            assert!(matches!(error, GgufError::WrongType { .. }), "{error}");
        }
    }

    #[test]
    fn an_empty_array_of_another_type_is_still_of_another_type() {
        let m = metadata(&[("k", (&[] as &[f32]).into())]);
        assert_eq!(m.floats("k").unwrap(), Some(vec![]));
        assert!(m.integers("k").is_err());
    }

    #[test]
    fn integers_beyond_64_bits_signed_are_named_by_position() {
        let m = metadata(&[("k", (&[1u64, u64::MAX][..]).into())]);
        assert_eq!(
            m.integers("k").unwrap_err().to_string(),
            "metadata key `k[1]`: 18446744073709551615 is out of range, expected an integer of 64 bits, signed"
        );
    }

    #[test]
    fn text_that_is_not_utf8_is_an_error_with_its_position() {
        let m = metadata(&[("k", Value::String(b"ab\xff".to_vec().into()))]);
        assert!(matches!(
            m.str("k").unwrap_err(),
            GgufError::NotUtf8 { at: 2, .. }
        ));
    }

    #[test]
    fn setting_a_key_again_replaces_its_value_and_keeps_its_place() {
        let mut m = Metadata::default();
        for (key, n) in [("c", 1u32), ("a", 2), ("b", 3), ("a", 4)] {
            m.set(key, n.into());
        }
        let all: Vec<_> = m.iter().map(|(k, v)| (k, v.integer())).collect();
        assert_eq!(all, [("c", Some(1)), ("a", Some(4)), ("b", Some(3))]);
        assert_eq!(m.u32("b").unwrap(), Some(3));
    }
}
