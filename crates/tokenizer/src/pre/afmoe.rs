//! `AFMoE`: numbers in groups of three from their end, then runs of scripts without spaces, then the words of `DeepSeek` V3.

use super::{Emit, cut};
use crate::unicode::{Class, Reader};

/// `\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))`
pub(super) fn number_groups(text: &str, emit: Emit<'_>) {
    groups_from_the_end(text, emit, Class::NUMBER, |_| true);
}

/// Chinese, kana, Thai, Lao, Khmer, Burmese and Korean, as the pattern lists their blocks:
/// `[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+`
pub(super) fn scripts_without_spaces(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| {
        r.run_while(pos, |c| {
            matches!(c,
                '\u{4E00}'..='\u{9FFF}' | '\u{3400}'..='\u{4DBF}' | '\u{F900}'..='\u{FAFF}' | '\u{3040}'..='\u{30FF}'
                | '\u{FF65}'..='\u{FF9F}' | '\u{2F00}'..='\u{2FDF}' | '\u{E40}'..='\u{EFF}' | '\u{1780}'..='\u{17FF}'
                | '\u{1000}'..='\u{109F}' | '\u{AA60}'..='\u{AA7F}' | '\u{A9E0}'..='\u{A9FF}' | '\u{AC00}'..='\u{D7AF}'
                | '\u{1100}'..='\u{11FF}')
        })
    });
}

/// Cuts runs of characters of `set` into threes that are counted from the end of the run. Runs whose following character
/// (`None` at the end of the text) is not `wanted` stay as they are.
pub(super) fn groups_from_the_end(
    text: &str,
    emit: Emit<'_>,
    set: Class,
    wanted: impl Fn(Option<char>) -> bool,
) {
    let reader = Reader::new(text);
    let mut gap = 0;
    let mut pos = 0;
    while let Some((class, next)) = reader.class(pos) {
        if !class.is(set) {
            pos = next;
            continue;
        }
        let end = reader.run(pos, set);
        if !wanted(reader.char(end).map(|(c, _)| c)) {
            pos = end;
            continue;
        }
        if gap < pos {
            emit(text.get(gap..pos).unwrap_or_default());
        }
        let run = text.get(pos..end).unwrap_or_default();
        let mut size = match run.chars().count() % 3 {
            0 => 3,
            rest => rest,
        };
        while pos < end {
            let group = reader.run_up_to(pos, set, size);
            emit(text.get(pos..group).unwrap_or_default());
            pos = group;
            size = 3;
        }
        gap = end;
    }
    if gap < text.len() {
        emit(text.get(gap..).unwrap_or_default());
    }
}
