//! The printable character that byte-level BPE writes for each byte (the table of GPT-2).
//!
//! Printable bytes of Latin-1 stand for themselves; the 68 others follow from U+0100 on.

/// Characters are below this.
const LIMIT: usize = 0x100 + 68;

const fn stands_for_itself(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The character of each byte.
pub(crate) static CHARS: [char; 256] = {
    let mut chars = ['\0'; 256];
    let mut next = 0x100;
    let mut byte = 0;
    while byte < 256 {
        let code = if stands_for_itself(byte as u8) {
            byte as u32
        } else {
            next += 1;
            next - 1
        };
        if let Some(c) = char::from_u32(code) {
            chars[byte] = c;
        }
        byte += 1;
    }
    chars
};

/// The byte of each character.
static BYTES: [Option<u8>; LIMIT] = {
    let mut bytes = [None; LIMIT];
    let mut byte = 0;
    while byte < 256 {
        bytes[CHARS[byte] as usize] = Some(byte as u8);
        byte += 1;
    }
    bytes
};

/// The byte that a character stands for.
#[inline]
pub(crate) fn byte_of(c: char) -> Option<u8> {
    BYTES.get(c as usize).copied().flatten()
}

/// Appends the bytes that a token text stands for. False, with nothing appended, when it is no such text.
pub(crate) fn decode(text: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    for c in text.chars() {
        let Some(byte) = byte_of(c) else {
            out.truncate(start);
            return false;
        };
        out.push(byte);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        for byte in 0..=255u8 {
            assert_eq!(byte_of(CHARS[usize::from(byte)]), Some(byte));
        }
        let cases = [
            (b' ', 'Ġ'),
            (b'\n', 'Ċ'),
            (b'\t', 'ĉ'),
            (b'A', 'A'),
            (0xFF, 'ÿ'),
            (0xAD, 'Ń'),
            (0, 'Ā'),
        ];
        for (byte, c) in cases {
            assert_eq!(CHARS[usize::from(byte)], c);
        }
    }

    #[test]
    fn a_text_with_other_characters_is_left_alone() {
        let mut out = vec![1];
        assert!(!decode("a中".as_bytes(), &mut out));
        assert!(!decode(b"a\xFF", &mut out));
        assert_eq!(out, [1]);
    }
}
