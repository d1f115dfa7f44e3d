//! A crate or module is named after the thing in it. `util` and `common` name nothing.

use super::Finding;
use crate::source::Source;

const NAMELESS: [&str; 6] = ["util", "utils", "common", "helper", "helpers", "misc"];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources
        .iter()
        .filter(|source| source.is_rust() || source.path.ends_with("Cargo.toml"))
    {
        let path = source.path.trim_end_matches(".rs");
        if let Some(name) = path
            .split(['/', '-', '_'])
            .find(|word| NAMELESS.contains(word))
        {
            findings.push(Finding::new(
                &source.path,
                format!("`{name}` says nothing; name it after what it holds"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;

    #[test]
    fn crates_and_modules_without_a_name_are_found() {
        let files = [
            ("crates/puna-common/Cargo.toml", ""),
            ("crates/gguf/src/utils.rs", ""),
            ("crates/gguf/src/misc/mod.rs", ""),
            ("crates/gguf/src/uncommon.rs", ""),
        ];
        assert_eq!(
            found(check, &files),
            [
                "crates/puna-common/Cargo.toml: `common` says nothing; name it after what it holds",
                "crates/gguf/src/utils.rs: `utils` says nothing; name it after what it holds",
                "crates/gguf/src/misc/mod.rs: `misc` says nothing; name it after what it holds",
            ]
        );
    }
}
