//! The rules of `SentencePiece` that rewrite characters before anything else, in the form in which models carry them: 4 bytes with
//! the size of a double array (a trie in which the children of a unit are found by XOR), the array, and the replacements, each
//! ended by a zero byte.

use crate::error::TokenizerError;

/// Longest text that a rule may put in place of another: Unicode's longest takes 33 bytes.
const MOST_REPLACEMENT: usize = 64;
/// Longest text that a rule is looked up for; more would be a double array that leads in a circle.
const MOST_RULE: usize = 256;

/// A set of rules. Reading goes only where the data is, whatever the data says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Charsmap {
    units: Vec<u32>,
    replacements: Vec<u8>,
}

/// One unit of the double array.
#[derive(Clone, Copy)]
struct Unit(u32);

impl Unit {
    fn label(self) -> u32 {
        self.0 & (1 << 31 | 0xFF)
    }

    /// Whether a text ends here; its value is then in the child with label 0.
    fn has_value(self) -> bool {
        self.0 >> 8 & 1 == 1
    }

    fn offset(self) -> usize {
        ((self.0 >> 10) << ((self.0 & 1 << 9) >> 6)) as usize
    }

    fn value(self) -> usize {
        (self.0 & !(1 << 31)) as usize
    }
}

impl Charsmap {
    /// Reads the rules; no bytes are no rules.
    pub(crate) fn new(bytes: &[u8]) -> Result<Self, TokenizerError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let bad = |problem| TokenizerError::BadCharsmap { problem };
        let (size, rest) = bytes
            .split_first_chunk()
            .ok_or_else(|| bad("it is shorter than its size field"))?;
        let size = u32::from_le_bytes(*size) as usize;
        let (array, replacements) = rest
            .split_at_checked(size)
            .ok_or_else(|| bad("the array is longer than the data"))?;
        if !size.is_multiple_of(4) || size == 0 {
            return Err(bad("the array is not made of whole units of four bytes"));
        }
        if !replacements.is_empty() && replacements.last() != Some(&0) {
            return Err(bad("the last replacement does not end"));
        }
        let units = array
            .chunks_exact(4)
            .map(|unit| unit.try_into().map_or(0, u32::from_le_bytes));
        Ok(Self {
            units: units.collect(),
            replacements: replacements.to_vec(),
        })
    }

    fn unit(&self, index: usize) -> Option<Unit> {
        self.units.get(index).copied().map(Unit)
    }

    /// The rule for the longest beginning of a text: its length in bytes, and what replaces it.
    pub(crate) fn longest(&self, text: &str) -> Result<Option<(usize, &str)>, TokenizerError> {
        let Some((length, value)) = self.find(text.as_bytes()) else {
            return Ok(None);
        };
        let bad = |problem| TokenizerError::BadCharsmap { problem };
        if !text.is_char_boundary(length) {
            return Err(bad("a rule ends inside of a character"));
        }
        let replacement = self
            .replacements
            .get(value..)
            .ok_or_else(|| bad("a rule points behind the replacements"))?;
        let replacement = replacement.split(|&b| b == 0).next().unwrap_or_default();
        if replacement.len() > MOST_REPLACEMENT {
            return Err(bad("a replacement is longer than 64 bytes"));
        }
        let replacement =
            std::str::from_utf8(replacement).map_err(|_| bad("a replacement is not UTF-8"))?;
        Ok(Some((length, replacement)))
    }

    fn find(&self, text: &[u8]) -> Option<(usize, usize)> {
        let mut best = None;
        let mut node = self.unit(0)?.offset();
        for (&byte, length) in text.iter().zip(1..).take(MOST_RULE) {
            node ^= usize::from(byte);
            let Some(unit) = self
                .unit(node)
                .filter(|u| byte != 0 && u.label() == u32::from(byte))
            else {
                break;
            };
            node ^= unit.offset();
            if unit.has_value() {
                best = self.unit(node).map(|unit| (length, unit.value())).or(best);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A charsmap whose units are zeros but for these, followed by one replacement.
    fn charsmap(units: &[(usize, u32)], replacement: &[u8]) -> Charsmap {
        let mut array = [0u32; 256];
        for &(index, unit) in units {
            array[index] = unit;
        }
        let mut bytes = 1024u32.to_le_bytes().to_vec();
        bytes.extend(array.iter().flat_map(|u| u.to_le_bytes()));
        bytes.extend(replacement);
        bytes.push(0);
        Charsmap::new(&bytes).unwrap()
    }

    #[test]
    fn a_replacement_that_would_blow_up_texts_is_refused() {
        // `a` is in unit 0x61, has a value, and that is in unit 0x61 ^ 3.
        let rule = [(0x61, 0x61 | 1 << 8 | 3 << 10), (0x62, 1 << 31)];
        let short = charsmap(&rule, &[b'x'; MOST_REPLACEMENT]);
        let (length, replacement) = short.longest("aa").unwrap().unwrap();
        assert_eq!((length, replacement.len()), (1, MOST_REPLACEMENT));
        let long = charsmap(&rule, &[b'x'; MOST_REPLACEMENT + 1]);
        assert!(long.longest("aa").is_err());
    }

    #[test]
    fn an_array_that_leads_in_a_circle_is_left_after_the_longest_rule() {
        // Each `a` leads back to unit 0x61, which ends a rule.
        let circle = charsmap(&[(0x61, 0x61 | 1 << 8 | 0x61 << 10), (0, 1 << 31)], b"x");
        let text = "a".repeat(10 * MOST_RULE);
        assert!(
            circle
                .find(text.as_bytes())
                .is_none_or(|(length, _)| length <= MOST_RULE)
        );
    }
}
