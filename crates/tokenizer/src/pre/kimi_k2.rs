//! Kimi K2: GPT-4o's pattern with Chinese characters apart, and without the slash behind symbols:
//!
//! ```text
//! [\p{Han}]+
//! |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```

use super::gpt4o::{Style, end_of_piece};
use super::{Emit, cut};
use crate::unicode::Class;

const STYLE: Style = Style {
    digits: 3,
    contractions: true,
    slash_after_symbols: false,
};

/// The pattern above.
pub(super) fn words(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| {
        let end = r.run_while(pos, is_han);
        if end > pos {
            return end;
        }
        end_of_piece(r, pos, STYLE, |c| {
            if is_han(c) {
                Class::OTHER
            } else {
                Class::of(c)
            }
        })
    });
}

/// `\p{Han}`: the script, which has numerals, radicals and marks besides ideographs (Unicode 17).
fn is_han(c: char) -> bool {
    c >= '\u{2E80}'
        && matches!(c,
            '\u{2E80}'..='\u{2E99}' | '\u{2E9B}'..='\u{2EF3}' | '\u{2F00}'..='\u{2FD5}' | '\u{3005}' | '\u{3007}'
            | '\u{3021}'..='\u{3029}' | '\u{3038}'..='\u{303B}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FA6D}' | '\u{FA70}'..='\u{FAD9}' | '\u{16FE2}'..='\u{16FE3}' | '\u{16FF0}'..='\u{16FF6}'
            | '\u{20000}'..='\u{2A6DF}' | '\u{2A700}'..='\u{2B81E}' | '\u{2B820}'..='\u{2CEAD}'
            | '\u{2CEB0}'..='\u{2EBE0}' | '\u{2EBF0}'..='\u{2EE5D}' | '\u{2F800}'..='\u{2FA1D}'
            | '\u{30000}'..='\u{3134A}' | '\u{31350}'..='\u{33479}')
}
