//! The laws of the repository's layout. Each is a function from all files to the places that break it.

mod architecture_names;
mod dependencies;
mod file_lists;
mod file_size;
mod names;
mod pages;
mod silence;
mod stubs;
mod unsafe_code;

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::source::{Source, has_ending};

/// All laws, in the order in which they are checked.
pub(crate) const LAWS: [(&str, Law); 9] = [
    ("dependencies point down the table", dependencies::check),
    ("no crate or module is named util or common", names::check),
    (
        "every crate has a README of a page and a paragraph at its top",
        pages::check,
    ),
    (
        "every file is listed in its folder's module",
        file_lists::check,
    ),
    ("no file is over 1,000 lines", file_size::check),
    (
        "an architecture's name appears in its own file only",
        architecture_names::check,
    ),
    (
        "unsafe is where it is allowed, with its reason",
        unsafe_code::check,
    ),
    (
        "libraries never print, exit or read the environment",
        silence::check,
    ),
    ("nothing is left to do", stubs::check),
];

/// Finds the places that break a law.
pub(crate) type Law = fn(&[Source]) -> Vec<Finding>;

/// A place that breaks a law.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: Option<usize>,
    what: String,
}

impl Finding {
    fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line: None,
            what: what.into(),
        }
    }

    fn at(source: &Source, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: source.path.clone(),
            line: Some(line),
            what: what.into(),
        }
    }
}

/// A finding and the law that it breaks.
pub(crate) struct Violation {
    law: &'static str,
    finding: Finding,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { path, line, what } = &self.finding;
        write!(f, "{path}")?;
        if let Some(line) = line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {what} (law: {})", self.law)
    }
}

/// Checks all laws on the repository at `root`.
pub(crate) fn check(root: &Path) -> Result<Vec<Violation>> {
    let sources = read(root)?;
    let broken = LAWS.iter().flat_map(|(law, check)| {
        check(&sources)
            .into_iter()
            .map(|finding| Violation { law, finding })
    });
    Ok(broken.collect())
}

/// Reads all text files; leaves out what is built, hidden folders and data.
fn read(root: &Path) -> Result<Vec<Source>> {
    const TEXT: [&str; 6] = ["rs", "md", "toml", "py", "sh", "js"];
    let mut sources = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if name.starts_with('.')
                || matches!(
                    name,
                    "target" | "data" | "node_modules" | "__pycache__" | "corpus"
                )
            {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if TEXT.iter().any(|ending| has_ending(name, ending)) {
                let text =
                    std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let inside = path
                    .strip_prefix(root)?
                    .to_string_lossy()
                    .replace('\\', "/");
                sources.push(Source::new(&inside, &text));
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_keeps_its_laws() {
        let broken = check(&crate::root().unwrap()).unwrap();
        let lines: Vec<String> = broken.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
    }

    /// For the laws' own tests: what a law finds in these files, as `path:line: what`.
    pub(super) fn found(law: Law, files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(path, text))
            .collect();
        let line = |line: Option<usize>| line.map_or(String::new(), |line| format!(":{line}"));
        law(&sources)
            .into_iter()
            .map(|f| format!("{}{}: {}", f.path, line(f.line), f.what))
            .collect()
    }
}
