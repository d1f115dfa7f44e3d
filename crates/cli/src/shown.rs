//! Numbers and texts as people read them.

/// Bytes in binary units.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{n} B")
    } else {
        format!("{value:.2} {}", UNITS[unit])
    }
}

/// A count with a decimal suffix: `134.5 M`.
pub(crate) fn count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.2} K", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} M", n as f64 / 1e6),
        _ => format!("{:.2} B", n as f64 / 1e9),
    }
}

/// Bytes as text in quotes on one line, with escapes for what cannot be seen; shortened to `limit` characters.
pub(crate) fn quoted(bytes: &[u8], limit: usize) -> String {
    let mut text = String::from("\"");
    let mut left = limit;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if left == 0 {
                text.push_str("\"...");
                return text;
            }
            left -= 1;
            match c {
                '\'' => text.push(c),
                c => text.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            text.extend(std::ascii::escape_default(*byte).map(char::from));
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_counts_and_texts_are_short() {
        assert_eq!(bytes(17), "17 B");
        assert_eq!(bytes(98_362_432), "93.81 MiB");
        assert_eq!(count(134_515_008), "134.52 M");
        assert_eq!(
            quoted(b"a\n\"\xff\xe2\x82\xac", 10),
            "\"a\\n\\\"\\xff\u{20ac}\""
        );
        assert_eq!(quoted(b"abcdef", 3), "\"abc\"...");
    }
}
