//! BLOOM and the models of its pattern: ` ?[^(\s|.,!?…。，、।۔،)]+` (the parentheses and the bar are members of the class).

use super::{Emit, cut};
use crate::unicode::{Class, Reader};

/// Runs of everything but spaces and sentence punctuation, with the space before them.
pub(super) fn words(text: &str, emit: Emit<'_>) {
    cut(text, emit, end_of_word);
}

fn end_of_word(reader: Reader<'_>, pos: usize) -> usize {
    let start = if reader.byte(pos) == b' ' {
        pos + 1
    } else {
        pos
    };
    let end = reader.run_while(start, is_inside);
    if end > start { end } else { pos }
}

fn is_inside(c: char) -> bool {
    let punctuation = matches!(
        c,
        '(' | '|' | '.' | ',' | '!' | '?' | '…' | '。' | '，' | '、' | '।' | '۔' | '،' | ')'
    );
    !punctuation && !Class::of(c).is(Class::SPACE)
}
