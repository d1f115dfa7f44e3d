//! A sha256, checked when it is read and never taken on trust as text.

use std::fmt;

/// A sha256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// Reads exactly 64 hex digits of either case; anything else is `None`.
    pub const fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 64 {
            return None;
        }
        let mut bytes = [0u8; 32];
        let mut i = 0;
        while i < 32 {
            let (Some(high), Some(low)) = (hex_value(text[2 * i]), hex_value(text[2 * i + 1]))
            else {
                return None;
            };
            bytes[i] = high << 4 | low;
            i += 1;
        }
        Some(Self(bytes))
    }

    /// The digest with these 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

const fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

    #[test]
    fn only_sixty_four_hex_digits_are_a_digest() {
        assert_eq!(Sha256Digest::parse(GOOD).unwrap().to_string(), GOOD);
        assert_eq!(
            Sha256Digest::parse(&GOOD.to_uppercase())
                .unwrap()
                .to_string(),
            GOOD
        );
        let traversal = format!("../{}", &GOOD[3..]);
        for bad in [
            "",
            &GOOD[1..],
            &format!("{GOOD}0"),
            &traversal,
            &GOOD.replace('b', "g"),
            &format!(" {}", &GOOD[1..]),
        ] {
            assert!(Sha256Digest::parse(bad).is_none(), "{bad}");
        }
    }
}
