//! `unsafe` lives in the memory map, the kernels, the pool and the C interface, and each use says why it is sound.

use super::Finding;
use crate::source::{Source, has_word};

const ALLOWED: [&str; 5] = [
    "crates/gguf/src/map.rs",
    "crates/cpu/src/kernels/",
    "crates/cpu/src/pool.rs",
    "crates/cpu/src/pool/",
    "crates/capi/",
];
/// Code lines between a reason and its `unsafe`.
const REACH: usize = 3;

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let is_allowed = ALLOWED.iter().any(|place| source.path.starts_with(place));
        for line in source.lines_with("unsafe") {
            if !is_allowed {
                findings.push(Finding::at(source, line, "`unsafe` is not allowed here"));
            } else if !is_type_only(source, line) && !has_reason(source, line) {
                findings.push(Finding::at(
                    source,
                    line,
                    "no `// SAFETY:` comment (`# Safety` for a function) above",
                ));
            }
        }
    }
    findings
}

/// `unsafe fn(...)` as a type, and `#[unsafe(...)]`, do nothing by themselves.
fn is_type_only(source: &Source, line: usize) -> bool {
    let code = source.code.lines().nth(line - 1).unwrap_or_default();
    let rest = code
        .replace("unsafe fn(", "")
        .replace("unsafe extern \"C\" fn(", "")
        .replace("unsafe(", "");
    !has_word(&rest, "unsafe")
}

/// Goes upwards over comments, and over a few lines of code, to the reason.
fn has_reason(source: &Source, line: usize) -> bool {
    let lines: Vec<&str> = source.text.lines().take(line).collect();
    let mut code_lines = 0;
    for (index, text) in lines.iter().enumerate().rev() {
        if text.contains("SAFETY:") || text.contains("# Safety") {
            return true;
        }
        let trimmed = text.trim_start();
        let is_passed = trimmed.starts_with("//") || trimmed.starts_with("#[") || index + 1 == line;
        code_lines += usize::from(!is_passed);
        if code_lines > REACH {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;

    #[test]
    fn unsafe_without_a_reason_or_in_the_wrong_place_is_found() {
        let kernel = concat!(
            "// SAFETY: the caller has checked the CPU,\n",
            "// and the length.\n",
            "let a = unsafe { f() };\n",
            "fn b() {\n",
            "\n",
            "    x();\n",
            "    let b = unsafe { g() };\n",
            "}\n",
            "type F = unsafe fn(u32);\n",
            "/// Adds.\n",
            "///\n",
            "/// # Safety\n",
            "/// The CPU has AVX2.\n",
            "#[target_feature(enable = \"avx2\")]\n",
            "unsafe fn h() {}\n",
        );
        let files = [
            ("crates/cpu/src/kernels/avx2.rs", kernel),
            (
                "crates/model/src/lib.rs",
                "#![forbid(unsafe_code)]\n// unsafe\nfn f() { unsafe { g() } } // SAFETY: no\n",
            ),
        ];
        assert_eq!(
            found(check, &files),
            [
                "crates/cpu/src/kernels/avx2.rs:7: no `// SAFETY:` comment (`# Safety` for a function) above",
                "crates/model/src/lib.rs:3: `unsafe` is not allowed here",
            ]
        );
    }
}
