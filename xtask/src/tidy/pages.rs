//! Every crate has a README of a page at most, and a paragraph at the top of its code.

use super::Finding;
use crate::source::Source;

const PAGE: usize = 70;
/// Characters below which a text is a title and no paragraph.
const PARAGRAPH: usize = 120;

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in sources.iter().filter(|source| !source.package().is_empty()) {
        let package = manifest.package();
        if manifest.path != format!("{package}/Cargo.toml") {
            continue;
        }
        let file = |name: &str| {
            sources
                .iter()
                .find(|source| source.path == format!("{package}/{name}"))
        };
        match file("README.md").map(|readme| readme.text.lines().count()) {
            None => findings.push(Finding::new(
                package,
                "has no README.md: what it is for, what it is not, where things go",
            )),
            Some(0..5) => findings.push(Finding::new(
                format!("{package}/README.md"),
                "says next to nothing",
            )),
            Some(lines) if lines > PAGE => {
                findings.push(Finding::new(
                    format!("{package}/README.md"),
                    format!("{lines} lines, a page has {PAGE}"),
                ));
            }
            Some(_) => {}
        }
        let tops: Vec<&Source> = ["src/lib.rs", "src/main.rs"]
            .into_iter()
            .filter_map(file)
            .collect();
        if !tops.iter().any(|top| opening(&top.text) >= PARAGRAPH) {
            findings.push(Finding::new(
                package,
                "has no paragraph (`//!`) at the top of its code",
            ));
        }
    }
    findings
}

/// Characters of the `//!` comment at the top.
fn opening(text: &str) -> usize {
    text.lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.trim().chars().count())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;

    #[test]
    fn a_crate_without_its_pages_is_found() {
        let paragraph = format!("//! {}\n//! {}\n", "word ".repeat(20), "word ".repeat(20));
        let page = "line\n".repeat(20);
        let files = [
            ("crates/bare/Cargo.toml", ""),
            ("crates/bare/src/lib.rs", "//! puna-bare\n"),
            ("crates/good/Cargo.toml", ""),
            ("crates/good/src/lib.rs", &paragraph),
            ("crates/good/README.md", &page),
            ("crates/long/Cargo.toml", ""),
            ("crates/long/src/main.rs", &paragraph),
            ("crates/long/README.md", &page.repeat(4)),
        ];
        assert_eq!(
            found(check, &files),
            [
                "crates/bare: has no README.md: what it is for, what it is not, where things go",
                "crates/bare: has no paragraph (`//!`) at the top of its code",
                "crates/long/README.md: 80 lines, a page has 70",
            ]
        );
    }
}
