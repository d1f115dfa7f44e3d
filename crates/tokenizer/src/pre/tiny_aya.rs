//! Tiny Aya and `Cohere2MoE`: digits in groups of three from their end, then the words of GPT-4o.

use super::Emit;
use super::afmoe::groups_from_the_end;
use crate::unicode::Class;

/// `\d{1,3}(?=(?:\d{3})*\b)`: digits that a letter follows are left to the next pattern.
pub(super) fn digit_groups(text: &str, emit: Emit<'_>) {
    groups_from_the_end(text, emit, Class::DIGIT, |following| {
        !following.is_some_and(is_word)
    });
}

/// `\w` of Oniguruma: alphabetic characters, marks, digits, connecting punctuation, and of other numbers those of Latin-1.
fn is_word(c: char) -> bool {
    let connector = matches!(c, '_' | '‿' | '⁀' | '⁔' | '︳' | '︴' | '﹍'..='﹏' | '＿');
    let latin_number = matches!(c, '²' | '³' | '¹' | '¼'..='¾');
    connector || latin_number || c.is_alphabetic() || Class::of(c).is(Class::MARK.or(Class::DIGIT))
}
