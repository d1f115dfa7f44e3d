//! Finds the parts of a template's source: text, string literals, `{% generation %}` tags, names of filters and tests.

use std::ops::Range;

/// A part of the source that is of interest here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) kind: SpanKind,
    /// Bytes of the source.
    pub(crate) range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Text outside of tags, printed as it stands.
    Text,
    /// The inside of a string literal, without its quotes and with its escapes.
    Literal,
    /// The word `generation` or `endgeneration` at the start of a tag.
    Generation,
    /// The name of a filter, behind `|`.
    Filter,
    /// The name of a test, behind `is` or `is not`.
    Test,
    /// The place behind the `=` of a `set` tag, without length.
    SetStart,
    /// The place behind the value of a `set` tag, without length.
    SetEnd,
    /// The same, where the target is an attribute.
    SetAttributeEnd,
}

/// The name of the filter that [`bounded`] adds.
pub(crate) const BOUNDED: &str = "puna_bounded";

/// The source with the value of each `set` sent through the filter [`BOUNDED`], which refuses deeply nested values: only `set` carries a value from one
/// round of a loop to the next, and so can nest without end.
pub(crate) fn bounded(source: &str) -> String {
    let mut result = source.to_owned();
    for span in scan(source).into_iter().rev() {
        match span.kind {
            SpanKind::SetStart => result.insert(span.range.start, '('),
            SpanKind::SetEnd => result.insert_str(span.range.start, &format!(")|{BOUNDED} ")),
            SpanKind::SetAttributeEnd => {
                result.insert_str(span.range.start, &format!(")|{BOUNDED}(true) "));
            }
            _ => {}
        }
    }
    result
}

/// Brackets in brackets, and blocks in blocks; real templates stay below 12.
const MAX_NESTING: usize = 24;
/// Expressions recurse in the engine, by one level for each operator, and the stack must hold.
const MAX_OPERATORS: usize = 1000;
/// So do the branches of an `if`.
const MAX_ELIF: usize = 200;
/// Far beyond any real template.
const MAX_BYTES: usize = 1 << 20;

/// What is too big in a template for the engine, and where.
pub(crate) fn excess(source: &str) -> Option<(usize, String)> {
    if source.len() > MAX_BYTES {
        let problem = format!(
            "template of {} bytes, expected at most {MAX_BYTES}",
            source.len()
        );
        return Some((0, problem));
    }
    let mut scanner = Scanner::new(source);
    while scanner.at < source.len() {
        let start = scanner.at;
        scanner.operators = 0;
        scanner.text_then_tag();
        if scanner.operators > MAX_OPERATORS {
            return Some((
                start,
                format!("more than {MAX_OPERATORS} operators in one tag"),
            ));
        }
        if scanner.blocks > MAX_NESTING || scanner.deepest > MAX_NESTING {
            return Some((
                start,
                format!("brackets or blocks nested more than {MAX_NESTING} deep"),
            ));
        }
        if scanner.elifs > MAX_ELIF {
            return Some((start, format!("more than {MAX_ELIF} branches by `elif`")));
        }
    }
    None
}

/// The spans of a template, ascending. Source that does not lex gives the spans up to there; the engine reports the error.
pub(crate) fn scan(source: &str) -> Vec<Span> {
    let mut scanner = Scanner::new(source);
    while scanner.at < source.len() {
        scanner.text_then_tag();
    }
    scanner.spans
}

/// The source in the engine's dialect; all of it stays in its line.
///
/// `{% generation %}` becomes a block that only prints what it holds, as it does outside of training. Escapes in literals that the
/// engine reads otherwise than Python does are written as those that both agree on.
pub(crate) fn adapted(source: &str) -> String {
    let mut result = source.to_owned();
    for Span { kind, range } in scan(source).into_iter().rev() {
        let part = source.get(range.clone()).unwrap_or_default();
        match kind {
            SpanKind::Generation => {
                let word = if part == "generation" {
                    "with      "
                } else {
                    "endwith      "
                };
                result.replace_range(range, word);
            }
            SpanKind::Literal if part.contains('\\') => {
                result.replace_range(range, &adapted_literal(part));
            }
            _ => {}
        }
    }
    result
}

fn adapted_literal(literal: &str) -> String {
    let mut result = String::new();
    let mut rest = literal;
    while let Some((before, after)) = rest.split_once('\\') {
        result.push_str(before);
        let mut chars = after.chars();
        let escaped = chars.next();
        rest = chars.as_str();
        match escaped {
            Some('/') => result.push_str("\\\\/"),
            Some('a') => result.push_str("\\x07"),
            Some('v') => result.push_str("\\x0b"),
            Some('U') => {
                let c = rest
                    .get(..8)
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                    .and_then(char::from_u32);
                match c {
                    Some(c) => {
                        result.push(c);
                        rest = rest.get(8..).unwrap_or_default();
                    }
                    None => result.push_str("\\U"),
                }
            }
            Some(c) => result.extend(['\\', c]),
            None => result.push('\\'),
        }
    }
    result + rest
}

struct Scanner<'a> {
    source: &'a str,
    at: usize,
    spans: Vec<Span>,
    operators: usize, // in the tag at hand
    elifs: usize,
    blocks: usize,  // open ones
    deepest: usize, // brackets within each other in any tag
}

impl<'a> Scanner<'a> {
    fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            spans: Vec::new(),
            operators: 0,
            elifs: 0,
            blocks: 0,
            deepest: 0,
        }
    }

    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn push(&mut self, kind: SpanKind, range: Range<usize>) {
        if !range.is_empty() {
            self.spans.push(Span { kind, range });
        }
    }

    fn text_then_tag(&mut self) {
        let rest = self.rest();
        let opens = |at: &usize| matches!(rest.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
        let tag = rest.match_indices('{').map(|(at, _)| at).find(opens);
        let start = self.at;
        self.at += tag.unwrap_or(rest.len());
        self.push(SpanKind::Text, start..self.at);
        let rest = self.rest();
        match rest.as_bytes().get(1) {
            Some(b'#') => self.at += rest.find("#}").map_or(rest.len(), |end| end + 2),
            Some(b'%') => match tag_after("raw", rest) {
                Some(open) => self.raw(open),
                None => self.code("%}"),
            },
            Some(_) => self.code("}}"),
            None => self.at = self.source.len(),
        }
    }

    /// The text of a raw block whose opening tag has this length.
    fn raw(&mut self, open: usize) {
        self.at += open;
        let start = self.at;
        loop {
            match self.rest().find("{%") {
                None => {
                    self.at = self.source.len();
                    return self.push(SpanKind::Text, start..self.at);
                }
                Some(offset) => {
                    self.at += offset;
                    if let Some(close) = tag_after("endraw", self.rest()) {
                        self.push(SpanKind::Text, start..self.at);
                        self.at += close;
                        return;
                    }
                    self.at += 2;
                }
            }
        }
    }

    /// The inside of `{{ }}` or `{% %}`.
    fn code(&mut self, close: &str) {
        self.at += 2;
        let first = if close == "%}" { self.first_word() } else { "" };
        let (mut assigned, mut attribute) = (false, false);
        let mut depth = 0_usize;
        while let Some(&byte) = self.rest().as_bytes().first() {
            if depth == 0 && self.rest().starts_with(close) {
                if assigned {
                    let dash = self
                        .source
                        .get(..self.at)
                        .is_some_and(|before| before.ends_with(['-', '+']));
                    let end = self.at - usize::from(dash);
                    self.spans.push(Span {
                        kind: if attribute {
                            SpanKind::SetAttributeEnd
                        } else {
                            SpanKind::SetEnd
                        },
                        range: end..end,
                    });
                }
                self.at += 2;
                return;
            }
            self.at += 1;
            self.operators += usize::from(b"|.+-*/%~=<>!([{".contains(&byte));
            match byte {
                b'(' | b'[' | b'{' => {
                    depth += 1;
                    self.deepest = self.deepest.max(depth);
                }
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b'.' if depth == 0 && first == "set" && !assigned => attribute = true,
                b'=' if depth == 0 && first == "set" && !assigned => {
                    assigned = true;
                    self.spans.push(Span {
                        kind: SpanKind::SetStart,
                        range: self.at..self.at,
                    });
                }
                b'"' | b'\'' => self.literal(byte),
                b'|' => self.name(SpanKind::Filter),
                _ if byte.is_ascii_alphabetic() || byte == b'_' => self.word(),
                _ => self.skip_character(),
            }
        }
    }

    /// The word that says what a `{% %}` tag is, without moving.
    fn first_word(&mut self) -> &'a str {
        let body = self.rest().trim_start_matches(['-', '+']).trim_start();
        let word = body.get(..word_len(body)).unwrap_or_default();
        match word {
            "generation" | "endgeneration" => {
                let start = self.source.len() - body.len();
                self.push(SpanKind::Generation, start..start + word.len());
            }
            _ => {}
        }
        match word {
            "for" | "if" | "macro" | "call" | "filter" | "with" | "block" | "autoescape"
            | "generation" => self.blocks += 1,
            _ if word.starts_with("end") => self.blocks = self.blocks.saturating_sub(1),
            _ => {}
        }
        word
    }

    fn literal(&mut self, quote: u8) {
        let start = self.at;
        let bytes = self.source.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if byte == quote {
                self.push(SpanKind::Literal, start..self.at);
                self.at += 1;
                return;
            }
            self.at += if byte == b'\\' { 2 } else { 1 };
        }
        self.at = self.source.len();
    }

    /// The rest of a word whose first character has been read, and the name of a test behind `is`.
    fn word(&mut self) {
        let start = self.at - 1;
        self.at += word_len(self.rest());
        let word = self.source.get(start..self.at).unwrap_or_default();
        self.operators +=
            usize::from(["not", "and", "or", "if", "else", "in", "is"].contains(&word));
        self.elifs += usize::from(word == "elif");
        if word == "is" {
            let rest = self.rest().trim_start();
            if let Some(after) = rest.strip_prefix("not")
                && after.starts_with(char::is_whitespace)
            {
                self.at = self.source.len() - after.len();
            }
            self.name(SpanKind::Test);
        }
    }

    /// A name, if one comes next.
    fn name(&mut self, kind: SpanKind) {
        let rest = self.rest().trim_start();
        if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let start = self.source.len() - rest.len();
            self.at = start + word_len(rest);
            self.push(kind, start..self.at);
        }
    }

    /// Moves on to the next character border.
    fn skip_character(&mut self) {
        while !self.source.is_char_boundary(self.at) {
            self.at += 1;
        }
    }
}

fn word_len(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

/// The length of the tag `{% word %}` with its dashes and spaces, if `text` begins with it.
fn tag_after(word: &str, text: &str) -> Option<usize> {
    let rest = text.strip_prefix("{%")?;
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest).trim_start();
    let rest = rest.strip_prefix(word)?.trim_start();
    let rest = rest
        .strip_prefix(['-', '+'])
        .unwrap_or(rest)
        .strip_prefix("%}")?;
    Some(text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_literals_and_names_are_found_and_nothing_else() {
        let source = "a{{ 'b\\'}}' ~ {'k': {}} | f(x) }}c{# 'no' #}{%- raw %}{{ 'd' }}{% endraw -%}e\
            {% if \"f%}\" is not  g or this is h|i %}{{ ü }}";
        let found: Vec<&str> = scan(source)
            .iter()
            .map(|span| &source[span.range.clone()])
            .collect();
        assert_eq!(
            found,
            [
                "a",
                "b\\'}}",
                "k",
                "f",
                "c",
                "{{ 'd' }}",
                "e",
                "f%}",
                "g",
                "h",
                "i"
            ]
        );
    }

    #[test]
    fn generation_tags_become_blocks_of_the_same_length() {
        let source = "{%- generation -%}{{ '{% generation %}' }}{% endgeneration %}{% raw %}{% generation %}{% endraw %}";
        let expected = "{%- with       -%}{{ '{% generation %}' }}{% endwith       %}{% raw %}{% generation %}{% endraw %}";
        assert_eq!(adapted(source), expected);
    }

    #[test]
    fn the_values_of_set_tags_are_bounded() {
        let source =
            "{% set x = a == 'b=%}' -%}{% set y=[1] %}{% set z %}=1{% endset %}{{ f(a=1) }}";
        let expected = "{% set x =( a == 'b=%}' )|puna_bounded -%}{% set y=([1] )|puna_bounded %}{% set z %}=1{% endset %}{{ f(a=1) }}";
        assert_eq!(bounded(source), expected);
    }

    #[test]
    fn escapes_that_only_python_knows_are_rewritten() {
        let source = r"\a \d{{ '\/\a\v\U0001F999\n\\a\'' }}";
        assert_eq!(adapted(source), r"\a \d{{ '\\/\x07\x0b🦙\n\\a\'' }}");
    }

    #[test]
    fn source_that_ends_anywhere_is_scanned_to_its_end() {
        let source = "x{{ 'a\\'ü' }}{% raw %}y{% endraw %}{# z #}{% generation %}";
        for end in (0..source.len()).filter(|&end| source.is_char_boundary(end)) {
            let spans = scan(&source[..end]);
            assert!(spans.iter().all(|span| span.range.end <= end));
        }
    }
}
