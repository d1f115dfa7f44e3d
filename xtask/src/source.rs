//! A Rust file taken apart just far enough for the laws: code without comments and literals, the string literals, and
//! which lines belong to tests.

use std::ops::Range;

/// A file of the repository.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the top folder, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text with comments and the insides of literals turned to spaces; of the same length, line for line.
    pub(crate) code: String,
    /// String literals: line (from 1) and content as written.
    pub(crate) strings: Vec<(usize, String)>,
    tests: Vec<Range<usize>>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, strings) = if has_ending(path, "rs") {
            split(text)
        } else {
            (text.to_owned(), Vec::new())
        };
        let tests = test_lines(&code);
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
            strings,
            tests,
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        has_ending(&self.path, "rs")
    }

    /// Whether a line (from 1) is compiled for tests, benches or examples only.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        let mut folders = self.path.split('/');
        let file = folders.next_back().unwrap_or_default();
        folders.any(|folder| matches!(folder, "tests" | "benches" | "examples"))
            || file == "tests.rs"
            || self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// Lines (from 1) of the code in which `word` stands by itself.
    pub(crate) fn lines_with<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.code
            .lines()
            .enumerate()
            .filter(move |(_, line)| has_word(line, word))
            .map(|(index, _)| index + 1)
    }

    /// The crate's folder: `crates/NAME` or `xtask`.
    pub(crate) fn package(&self) -> &str {
        let mut cuts = self.path.match_indices('/').map(|(at, _)| at);
        let cut = if self.path.starts_with("crates/") {
            cuts.nth(1)
        } else {
            cuts.next()
        };
        cut.map_or("", |cut| &self.path[..cut])
    }
}

pub(crate) fn has_ending(path: &str, ending: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, found)| found == ending)
}

/// Whether `word` stands in `line` with no identifier character at the ends where it has one itself.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    line.match_indices(word).any(|(at, _)| {
        let before =
            line[..at].chars().next_back().is_some_and(is_part) && word.starts_with(is_part);
        let after =
            line[at + word.len()..].chars().next().is_some_and(is_part) && word.ends_with(is_part);
        !before && !after
    })
}

/// Blanks comments and literals; gives the string literals too.
fn split(text: &str) -> (String, Vec<(usize, String)>) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut strings) = (String::with_capacity(text.len()), Vec::new());
    let mut at = 0;
    let mut line = 1;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block(&chars, at),
            '"' => end_of_string(&chars, at),
            'r' if !is_identifier(&chars, at) => end_of_raw_string(&chars, at).unwrap_or(at),
            '\'' => end_of_char(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            code.push(chars[at]);
            line += usize::from(chars[at] == '\n');
            at += 1;
            continue;
        }
        let piece = &chars[at..end];
        if piece.contains(&'"') && matches!(chars[at], '"' | 'r') {
            let trimmed: String = piece.iter().collect();
            let inner = trimmed.trim_start_matches(['r', '#']).trim_end_matches('#');
            strings.push((line, inner.trim_matches('"').to_owned()));
        }
        for &c in piece {
            // Blanks keep the quotes, so that a literal is still seen to be one.
            code.push(if matches!(c, '\n' | '"') { c } else { ' ' });
            line += usize::from(c == '\n');
        }
        at = end;
    }
    (code, strings)
}

/// Whether the character before belongs to the same identifier; `b` and `c` alone are prefixes of literals.
fn is_identifier(chars: &[char], at: usize) -> bool {
    let part = |at: usize| {
        chars
            .get(at)
            .is_some_and(|c| *c == '_' || c.is_alphanumeric())
    };
    let Some(before) = at.checked_sub(1) else {
        return false;
    };
    let is_prefix = matches!(chars[before], 'b' | 'c') && !before.checked_sub(1).is_some_and(part);
    part(before) && !is_prefix
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars[at..]
        .iter()
        .position(|&c| c == '\n')
        .map_or(chars.len(), |found| at + found)
}

fn end_of_block(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn end_of_string(chars: &[char], mut at: usize) -> usize {
    at += 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn end_of_raw_string(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    let mut inside = at + 1 + hashes;
    if chars.get(inside) != Some(&'"') {
        return None;
    }
    inside += 1;
    while inside < chars.len() {
        let closes = chars[inside] == '"'
            && chars[inside + 1..]
                .iter()
                .take_while(|&&c| c == '#')
                .count()
                >= hashes;
        inside += 1;
        if closes {
            return Some(inside + hashes);
        }
    }
    Some(chars.len())
}

/// A character literal; `None` for a lifetime.
fn end_of_char(chars: &[char], at: usize) -> Option<usize> {
    match (chars.get(at + 1)?, chars.get(at + 2)?) {
        ('\\', _) => {
            let close = chars[at + 3..].iter().take(12).position(|&c| c == '\'')?;
            Some(at + 3 + close + 1)
        }
        (_, '\'') => Some(at + 3),
        _ => None,
    }
}

/// Lines of the items behind `#[cfg(test)]` and `#[test]`.
fn test_lines(code: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for mark in ["#[cfg(test)]", "#[test]"] {
        for (at, _) in code.match_indices(mark) {
            let end = end_of_item(code, at + mark.len());
            let line = |at: usize| code[..at].matches('\n').count() + 1;
            found.push(line(at)..line(end) + 1);
        }
    }
    found
}

/// Behind the item's closing brace, or its semicolon if it has none.
fn end_of_item(code: &str, from: usize) -> usize {
    let mut depth = 0;
    for (offset, c) in code[from..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return from + offset,
            _ => continue,
        }
        if c == '}' && depth <= 0 {
            return from + offset;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = concat!(
            "// println!(1)\n",
            "/* a /* b */ println!(2) */ let x = \"println!(3) \\\" \";\n",
            "let y = r#\"println!(4) \" \"#; let c = '\"'; let l: &'a str = b\"dbg!\";\n",
            "let esc = '\\''; println!(5);\n",
            "let raw = br\"x\"; var\"y\";\n",
        );
        let source = Source::new("a.rs", text);
        assert_eq!(source.code.lines().count(), text.lines().count());
        assert_eq!(source.lines_with("println!").collect::<Vec<_>>(), [4]);
        assert_eq!(source.lines_with("dbg!").count(), 0);
        assert_eq!(source.strings[0], (2, "println!(3) \\\" ".to_owned()));
        assert_eq!(source.strings[1], (3, "println!(4) \" ".to_owned()));
        assert_eq!(source.strings[3], (5, "x".to_owned()));
    }

    #[test]
    fn tests_are_told_from_the_rest() {
        let source = Source::new(
            "crates/a/src/b.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { {} }\n}\nfn c() {}\n",
        );
        let tests: Vec<bool> = (1..=6).map(|line| source.is_test(line)).collect();
        assert_eq!(tests, [false, true, true, true, true, false]);
        assert!(Source::new("crates/a/tests/b.rs", "fn a() {}").is_test(1));
        assert!(Source::new("crates/a/src/b/tests.rs", "fn a() {}").is_test(1));
        let outside = Source::new("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;\nfn a() {}\n");
        assert!(outside.is_test(2) && !outside.is_test(3));
    }

    #[test]
    fn words_stand_by_themselves() {
        assert!(has_word("eprintln!(x)", "eprintln!") && !has_word("eprintln!(x)", "println!"));
        assert!(has_word("unsafe {", "unsafe") && !has_word("unsafe_code", "unsafe"));
        assert_eq!(Source::new("crates/a/src/b.rs", "").package(), "crates/a");
        assert_eq!(Source::new("xtask/src/b.rs", "").package(), "xtask");
    }
}
