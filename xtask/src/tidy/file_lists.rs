//! Each folder's module lists its files; a file that is not listed would not even be compiled.

use super::Finding;
use crate::source::{Source, has_word};

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let Some((folder, name)) = source.path.rsplit_once('/') else {
            continue;
        };
        let Some(stem) = name.strip_suffix(".rs") else {
            continue;
        };
        let (folder, stem) = match stem {
            "lib" | "main" | "build" => continue,
            "mod" => match folder.rsplit_once('/') {
                Some(pair) => pair,
                None => continue,
            },
            _ => (folder, stem),
        };
        if is_root(folder) {
            continue;
        }
        let beside = format!("{folder}.rs");
        let inside = ["mod.rs", "lib.rs", "main.rs"].map(|name| format!("{folder}/{name}"));
        let mut lists = sources
            .iter()
            .filter(|list| list.path == beside || inside.contains(&list.path))
            .peekable();
        if lists.peek().is_none() {
            findings.push(Finding::new(
                folder,
                format!("holds `{name}`, but no mod.rs lists its files"),
            ));
        } else if !lists.any(|list| list.code.lines().any(|line| has_word(line, stem))) {
            findings.push(Finding::new(
                &source.path,
                format!("`{stem}` is not listed in {folder}/mod.rs"),
            ));
        }
    }
    findings.dedup();
    findings
}

/// Folders in which Cargo makes a program of each file or subfolder.
fn is_root(folder: &str) -> bool {
    let name = folder.rsplit('/').next().unwrap_or(folder);
    matches!(
        name,
        "tests" | "benches" | "examples" | "bin" | "fuzz_targets"
    ) && !folder.contains("/src/tests")
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;

    #[test]
    fn a_file_that_nobody_lists_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "mod arch;\nmod gone;\nmod beside;\n"),
            (
                "crates/a/src/arch/mod.rs",
                "architectures! { llama }\n// mod forgotten;\n",
            ),
            ("crates/a/src/arch/llama.rs", ""),
            ("crates/a/src/arch/forgotten.rs", ""),
            ("crates/a/src/beside.rs", "mod inner;\n"),
            ("crates/a/src/beside/inner.rs", ""),
            ("crates/a/src/lost.rs", ""),
            ("crates/a/src/loose/x.rs", ""),
            ("crates/a/tests/any.rs", ""),
            ("crates/a/tests/server/mod.rs", ""),
        ];
        assert_eq!(
            found(check, &files),
            [
                "crates/a/src/arch/forgotten.rs: `forgotten` is not listed in crates/a/src/arch/mod.rs",
                "crates/a/src/lost.rs: `lost` is not listed in crates/a/src/mod.rs",
                "crates/a/src/loose: holds `x.rs`, but no mod.rs lists its files",
            ]
        );
    }
}
