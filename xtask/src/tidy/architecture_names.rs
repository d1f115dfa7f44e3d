//! An architecture's name stands in its own file and nowhere else: what it needs elsewhere it states as data there.

use super::Finding;
use crate::source::Source;

const FOLDER: &str = "crates/model/src/arch/";
/// The tokenizer's own kinds (`tokenizer.ggml.model` and `.pre`) share some names with architectures; the hub and xtask
/// name model files.
const EXEMPT: [&str; 3] = ["crates/tokenizer", "crates/hub", "xtask"];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let names: Vec<&str> = sources
        .iter()
        .filter_map(|source| name(&source.path))
        .collect();
    let mut findings = Vec::new();
    for source in sources
        .iter()
        .filter(|source| source.is_rust() && !EXEMPT.contains(&source.package()))
    {
        let own = name(&source.path);
        for (line, text) in source
            .strings
            .iter()
            .filter(|(line, _)| !source.is_test(*line))
        {
            let is_name_of = |name: &&&str| {
                Some(**name) != own && (text == **name || text.starts_with(&format!("{name}.")))
            };
            if let Some(name) = names.iter().find(is_name_of) {
                let what = format!(
                    "`{text}` names an architecture; state what is needed as data in {FOLDER}{name}.rs"
                );
                findings.push(Finding::at(source, *line, what));
            }
        }
    }
    findings
}

/// The architecture whose file this is: `arch/NAME.rs` or a file in `arch/NAME/`.
fn name(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(FOLDER)?;
    let name = rest.split('/').next()?.trim_end_matches(".rs");
    (name != "mod").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;

    #[test]
    fn a_name_outside_its_file_is_found() {
        let files = [
            (
                "crates/model/src/arch/llama.rs",
                "const NAME: &str = \"llama\";",
            ),
            (
                "crates/model/src/arch/qwen2.rs",
                "const NAME: &str = \"qwen2\"; const X: &str = \"llama.rope\";",
            ),
            ("crates/model/src/arch/mod.rs", "mod llama; mod qwen2;"),
            (
                "crates/engine/src/lib.rs",
                "// llama\nfn f(a: &str) -> bool { a == \"llama\" }\n#[test]\nfn t() { f(\"llama\"); }",
            ),
            (
                "crates/cli/src/main.rs",
                "const X: &str = \"like llama.cpp\";",
            ),
            (
                "crates/tokenizer/src/lib.rs",
                "const SPM: &str = \"llama\";",
            ),
        ];
        let ends =
            "names an architecture; state what is needed as data in crates/model/src/arch/llama.rs";
        assert_eq!(
            found(check, &files),
            [
                format!("crates/model/src/arch/qwen2.rs:1: `llama.rope` {ends}"),
                format!("crates/engine/src/lib.rs:2: `llama` {ends}"),
            ]
        );
    }
}
