//! Dependencies point down the table; nothing imports upwards. Tests may use what they like.

use super::Finding;
use crate::source::Source;

/// Each crate and the crates that it may use, bottom first. `*` is everything above this row.
const TABLE: [(&str, &[&str]); 14] = [
    ("quant", &[]),
    ("sampling", &[]),
    ("hub", &[]),
    ("gguf", &["quant"]),
    ("graph", &["quant"]),
    ("tokenizer", &["gguf"]),
    ("chat", &[]),
    ("cpu", &["graph", "quant"]),
    ("model", &["gguf", "graph", "quant"]),
    ("convert", &["gguf", "model", "quant", "tokenizer"]),
    (
        "engine",
        &["gguf", "graph", "model", "sampling", "tokenizer"],
    ),
    ("server", &["chat", "engine"]),
    ("puna", &["*"]),
    ("cli", &["*"]),
];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in sources {
        let Some(name) = manifest
            .path
            .strip_prefix("crates/")
            .and_then(|path| path.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        if name.contains('/') {
            // A program inside a crate's folder, such as its fuzz targets.
            continue;
        }
        let Some(row) = TABLE.iter().position(|(known, _)| *known == name) else {
            findings.push(Finding::new(
                &manifest.path,
                format!("crate `{name}` is not in xtask's table of crates"),
            ));
            continue;
        };
        let allowed = TABLE[row].1;
        for (line, used) in used_crates(&manifest.text) {
            let is_above = TABLE[..row].iter().any(|(known, _)| *known == used);
            let is_allowed = allowed.contains(&used) || (allowed.contains(&"*") && is_above);
            if !is_allowed {
                let what = format!(
                    "`{name}` may not use `{used}`; it may use {}",
                    listed(allowed)
                );
                findings.push(Finding::at(manifest, line, what));
            }
        }
    }
    findings
}

fn listed(allowed: &[&str]) -> String {
    match allowed {
        [] => "no other crate of ours".to_owned(),
        ["*"] => "the crates below it".to_owned(),
        _ => allowed.join(", "),
    }
}

/// Lines and names of our crates in `[dependencies]`, `[build-dependencies]` and those of targets.
fn used_crates(manifest: &str) -> Vec<(usize, &str)> {
    let mut used = Vec::new();
    let mut is_dependencies = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            let (section, single) = match section.split_once("dependencies.") {
                Some((kind, single)) => (format!("{kind}dependencies"), Some(single)),
                None => (section.to_owned(), None),
            };
            is_dependencies =
                section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
            used.extend(
                single
                    .filter(|_| is_dependencies)
                    .and_then(ours)
                    .map(|name| (index + 1, name)),
            );
        } else if is_dependencies {
            let key = line.split(['=', '.', ' ']).next().unwrap_or_default();
            used.extend(ours(key.trim()).map(|name| (index + 1, name)));
        }
    }
    used
}

fn ours(package: &str) -> Option<&str> {
    if package == "puna" {
        Some(package)
    } else {
        package.strip_prefix("puna-")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;

    #[test]
    fn an_edge_upwards_is_found_and_one_in_tests_is_not() {
        let manifest = "[dependencies]\npuna-quant.workspace = true\npuna-engine = { path = \"x\" }\n[dev-dependencies]\npuna-cli.workspace = true\n[target.'cfg(unix)'.dependencies]\npuna.workspace = true\n[dependencies.puna-model]\n";
        assert_eq!(
            found(
                check,
                &[
                    ("crates/gguf/Cargo.toml", manifest),
                    ("crates/new/Cargo.toml", "")
                ]
            ),
            [
                "crates/gguf/Cargo.toml:3: `gguf` may not use `engine`; it may use quant",
                "crates/gguf/Cargo.toml:7: `gguf` may not use `puna`; it may use quant",
                "crates/gguf/Cargo.toml:8: `gguf` may not use `model`; it may use quant",
                "crates/new/Cargo.toml: crate `new` is not in xtask's table of crates",
            ]
        );
    }

    #[test]
    fn the_table_itself_points_upwards_only() {
        for (row, (name, allowed)) in TABLE.iter().enumerate() {
            for used in allowed.iter().filter(|used| **used != "*") {
                assert!(
                    TABLE[..row].iter().any(|(known, _)| known == used),
                    "{name} -> {used}"
                );
            }
        }
    }
}
