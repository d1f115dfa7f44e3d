//! Youtu: East Asian scripts and their punctuation are cut out before GPT-4o's words with single digits.

use super::{Emit, cut};

/// `[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+`
pub(super) fn scripts(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| {
        for is_member in [is_hangul, is_punctuation, is_bopomofo, is_cjk] {
            let end = r.run_while(pos, is_member);
            if end > pos {
                return end;
            }
        }
        pos
    });
}

fn is_hangul(c: char) -> bool {
    matches!(c, '가'..='힣' | 'ㄱ'..='ㆎ')
}

fn is_punctuation(c: char) -> bool {
    matches!(c, '！' | '…' | '“' | '”' | '‘' | '’' | '—' | '：' | '；' | '，' | '、'..='\u{303F}' | '\u{FE30}'..='\u{FE4F}')
}

fn is_bopomofo(c: char) -> bool {
    matches!(c, 'ㄅ'..='ㄯ')
}

fn is_cjk(c: char) -> bool {
    matches!(c, '一'..='龥' | '\u{3040}'..='\u{30FF}')
}
