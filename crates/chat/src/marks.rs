//! Tells a template's own text from the text of the conversation in a finished prompt.
//!
//! A template is a program: it trims, splits and joins what it is given, and asks whether `</think>` occurs in it. So the conversation must go
//! through it untouched, and it is the *template's* text that is marked instead: behind each character of its literals and of its text
//! between tags that is part of a special token, a private-use character is put that occurs nowhere else. Whatever comes out with its
//! mark was written by the template's author; everything else is from outside, however it looks.
//!
//! A literal may also serve to search the conversation (`content.split('</think>')`), which its marks would spoil. Hence each prompt is
//! rendered twice, plain and marked. The plain one is the prompt. If the marked one, without its marks, differs, then the literals that
//! make the difference are found and lose their marks (`template.rs`). An error in this machinery can thus only make a control token
//! plain text, never the other way round.

use crate::source::{Span, SpanKind, scan};
use crate::specials::SpecialIndex;
use std::ops::Range;

/// A piece of a prompt, to be encoded in order with its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The text.
    pub text: String,
    /// Whether texts of special tokens in it are those tokens. If not, they are plain text.
    pub special: bool,
}

/// A character that occurs in none of the texts.
pub(crate) fn unused_mark(texts: &[&str]) -> Option<char> {
    let private = ('\u{e000}'..='\u{f8ff}').chain('\u{f0000}'..='\u{ffffd}');
    let mut private = private.filter(|&c| !texts.iter().any(|text| text.contains(c)));
    private.next()
}

/// The source of a template and the places in it where marks can stand.
#[derive(Debug)]
pub(crate) struct MarkedSource {
    source: String,
    /// For each span that holds (parts of) special tokens: the positions behind their characters, ascending.
    units: Vec<Vec<usize>>,
}

impl MarkedSource {
    pub(crate) fn new(source: &str, specials: &SpecialIndex) -> Self {
        let spans = scan(source);
        let texts = spans
            .iter()
            .filter(|span| matches!(span.kind, SpanKind::Text | SpanKind::Literal));
        let units = texts
            .map(|span| positions(source, span, specials))
            .filter(|unit| !unit.is_empty());
        Self {
            units: units.collect(),
            source: source.to_owned(),
        }
    }

    /// How many spans can be marked.
    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }

    /// The source with marks in the spans that `chosen` names.
    pub(crate) fn with_marks(&self, mark: char, chosen: impl Fn(usize) -> bool) -> String {
        let mut result = String::new();
        let mut from = 0;
        let units = self.units.iter().enumerate().filter(|(i, _)| chosen(*i));
        for &position in units.flat_map(|(_, unit)| unit) {
            result.push_str(self.source.get(from..position).unwrap_or_default());
            result.push(mark);
            from = position;
        }
        result.push_str(self.source.get(from..).unwrap_or_default());
        result
    }
}

/// The roles that templates put into tokens. Any other word a caller could choose so that the token ends the prompt.
const ROLES: &[&str] = &[
    "assistant",
    "bot",
    "chatbot",
    "context",
    "critic",
    "developer",
    "function",
    "human",
    "ipython",
    "model",
    "observation",
    "system",
    "tool",
    "user",
];

/// Puts a mark behind every character that is no space.
pub(crate) fn mark_all(text: &str, mark: char) -> String {
    let marked = |c: char| [Some(c), (!c.is_whitespace()).then_some(mark)];
    text.chars().flat_map(marked).flatten().collect()
}

/// The positions behind the characters of a span that are part of a special token, or may be part of one made of several pieces
/// (`'<|' + role + '|>'`).
fn positions(source: &str, span: &Span, specials: &SpecialIndex) -> Vec<usize> {
    let raw = source.get(span.range.clone()).unwrap_or_default();
    let decoded = match span.kind {
        SpanKind::Literal => decode(raw),
        _ => raw
            .char_indices()
            .map(|(at, c)| (c, at + c.len_utf8()))
            .collect(),
    };
    let chars: Vec<char> = decoded.iter().map(|(c, _)| *c).collect();
    let text: String = chars.iter().collect();
    let mut marked = vec![false; text.len()];
    for range in specials.occurrences(&text) {
        fill(&mut marked, range);
    }
    let bytes = |chars: &[char]| chars.iter().map(|c| c.len_utf8()).sum::<usize>();
    let head = chars.get(..specials.open_start(&chars)).map_or(0, bytes);
    fill(&mut marked, 0..head);
    let tail = chars
        .get(chars.len() - specials.open_end(&chars)..)
        .map_or(0, bytes);
    fill(&mut marked, text.len() - tail..text.len());
    let starts = text.char_indices().zip(&decoded);
    let chosen = starts.filter(|((at, c), _)| !c.is_whitespace() && marked.get(*at) == Some(&true));
    chosen.map(|(_, (_, end))| span.range.start + end).collect()
}

fn fill(flags: &mut [bool], range: Range<usize>) {
    if let Some(part) = flags.get_mut(range) {
        part.fill(true);
    }
}

/// The characters of a string literal, each with the end of its bytes in the literal's source.
fn decode(raw: &str) -> Vec<(char, usize)> {
    let mut result = Vec::new();
    let mut rest = raw.chars();
    let number = |rest: &mut std::str::Chars<'_>, digits: usize| {
        let value = rest
            .as_str()
            .get(..digits)
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        if value.is_some() {
            rest.nth(digits - 1);
        }
        // A half of a surrogate pair: no special token has one written so.
        value
            .and_then(char::from_u32)
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    while let Some(c) = rest.next() {
        let decoded = if c == '\\' {
            match rest.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('x') => number(&mut rest, 2),
                Some('u') => number(&mut rest, 4),
                Some(c @ ('"' | '\'' | '\\')) => c,
                Some(c) => {
                    result.push(('\\', raw.len() - rest.as_str().len() - c.len_utf8()));
                    c
                }
                None => '\\',
            }
        } else {
            c
        };
        result.push((decoded, raw.len() - rest.as_str().len()));
    }
    result
}

/// A prompt without its marks, and for each byte whether it is the template's own.
pub(crate) fn strip(marked: &str, mark: char) -> (String, Vec<bool>) {
    let mut text = String::with_capacity(marked.len());
    let mut own = Vec::with_capacity(marked.len());
    let mut last = 0;
    for c in marked.chars() {
        if c == mark {
            fill(&mut own, last..text.len());
        } else {
            last = text.len();
            text.push(c);
            own.resize(text.len(), false);
        }
    }
    (text, own)
}

/// Cuts a prompt into segments so that exactly the special tokens written by the template are recognised. As few as possible, since
/// the text between two special tokens is tokenized as a whole.
///
/// A usual role may stand inside of a token whose two ends are the template's: `'<|' + message.role + '|>'`.
pub(crate) fn segments(text: &str, own: &[bool], specials: &SpecialIndex) -> Vec<Segment> {
    let (tokens, foreign): (Vec<_>, Vec<_>) = specials
        .occurrences(text)
        .into_iter()
        .partition(|range| is_own(text, own, range));
    if foreign.is_empty() {
        return Segment::list(vec![(text, true)]);
    }
    // The template's tokens from left to right, the longest first, and the gaps between them.
    let mut pieces: Vec<(Range<usize>, bool)> = Vec::new();
    let mut end = 0;
    for range in longest_first(tokens) {
        if range.start >= end {
            pieces.push((end..range.start, false));
            end = range.end;
            pieces.push((range, true));
        }
    }
    pieces.push((end..text.len(), false));
    // A gap that takes part in a forgery is plain text; the others go with their neighbours.
    let overlaps = |gap: &Range<usize>| {
        foreign
            .iter()
            .any(|f| f.start < gap.end && gap.start < f.end)
    };
    let pieces = pieces.into_iter().map(|(range, token)| {
        let special = token || !overlaps(&range);
        (text.get(range).unwrap_or_default(), special)
    });
    Segment::list(pieces.collect())
}

impl Segment {
    /// Joins neighbours of the same kind and drops what is empty.
    fn list(pieces: Vec<(&str, bool)>) -> Vec<Self> {
        let mut result: Vec<Self> = Vec::new();
        for (text, special) in pieces.into_iter().filter(|(text, _)| !text.is_empty()) {
            match result.last_mut() {
                Some(last) if last.special == special => last.text.push_str(text),
                _ => result.push(Self {
                    text: text.to_owned(),
                    special,
                }),
            }
        }
        result
    }
}

fn longest_first(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    ranges
}

/// Whether a special token's text was written by the template: all of it, or both ends with a role between.
fn is_own(text: &str, own: &[bool], range: &Range<usize>) -> bool {
    let part = text.get(range.clone()).unwrap_or_default();
    let is_foreign =
        |at: usize, c: char| !c.is_whitespace() && own.get(range.start + at) != Some(&true);
    let foreign = |(at, c): &(usize, char)| is_foreign(*at, *c);
    let Some((first, _)) = part.char_indices().find(foreign) else {
        return true;
    };
    let last = part
        .char_indices()
        .rfind(foreign)
        .map_or(first, |(at, c)| at + c.len_utf8());
    let inside = part.get(first..last).unwrap_or_default();
    let all_foreign = inside
        .char_indices()
        .all(|(at, c)| is_foreign(first + at, c));
    let enclosed = first > 0 && last < part.len();
    enclosed && all_foreign && ROLES.contains(&inside.to_ascii_lowercase().as_str())
}
