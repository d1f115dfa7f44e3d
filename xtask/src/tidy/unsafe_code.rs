//! `unsafe` lives in the memory map, the C interface, and those parts of the CPU backend whose memory several threads share (kernels,
//! pool, plan, cache), and each use says why it is sound. Tests and
//! benches (a counting allocator, a kernel called by itself) may use it too, with a reason.

use super::Finding;
use crate::source::{Source, has_word};

const ALLOWED: [&str; 9] = [
    "crates/gguf/src/bytes.rs",
    "crates/cpu/src/kernels/",
    "crates/cpu/src/cache.rs",
    "crates/cpu/src/memory.rs",
    "crates/cpu/src/plan/",
    "crates/cpu/src/measure/",
    "crates/cpu/src/pool.rs",
    "crates/cpu/src/pool/",
    "crates/capi/",
];
/// Code lines between a reason and its `unsafe`.
const REACH: usize = 3;

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let is_allowed = ALLOWED.iter().any(|place| source.path.starts_with(place))
            || is_beside_the_library(&source.path);
        for line in source.lines_with("unsafe") {
            if !is_allowed {
                findings.push(Finding::at(source, line, "`unsafe` is not allowed here"));
            } else if !is_harmless(source, line) && !has_reason(source, line) {
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

fn is_beside_the_library(path: &str) -> bool {
    path.split('/')
        .nth(2)
        .is_some_and(|folder| matches!(folder, "tests" | "benches"))
}

/// `unsafe fn(...)` as a type and `#[unsafe(...)]` do nothing by themselves. A private `unsafe fn`, or one of a trait that
/// states the conditions, passes its caller's duty on to the blocks in it, which say what they rely on.
fn is_harmless(source: &Source, line: usize) -> bool {
    let code = source.code.lines().nth(line - 1).unwrap_or_default();
    let mut rest = code
        .replace("unsafe fn(", "")
        .replace("unsafe extern \"C\" fn(", "")
        .replace("unsafe(", "");
    if !has_word(code, "pub") {
        rest = rest
            .replace("unsafe fn ", "")
            .replace("unsafe extern \"C\" fn ", "");
    }
    !has_word(&rest, "unsafe")
}

/// Goes upwards to the reason: over comments and attributes, and for anything but a function over a few lines of code.
fn has_reason(source: &Source, line: usize) -> bool {
    let lines: Vec<&str> = source.text.lines().take(line).collect();
    let is_function = lines.last().is_some_and(|line| line.contains("unsafe fn"));
    let reach = if is_function { 0 } else { REACH };
    let mut code_lines = 0;
    // An attribute may go over several lines; from below, its end is seen first.
    let mut in_attribute = false;
    for (index, text) in lines.iter().enumerate().rev() {
        if text.contains("SAFETY:") || text.contains("# Safety") {
            return true;
        }
        let trimmed = text.trim_start();
        let begins = trimmed.starts_with("#[");
        in_attribute = !begins && (in_attribute || trimmed.trim_end().ends_with(")]"));
        let is_passed = begins || in_attribute || trimmed.starts_with("//") || index + 1 == line;
        code_lines += usize::from(!is_passed);
        if code_lines > reach {
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
            "#[target_feature(\n",
            "    enable = \"avx2\"\n",
            ")]\n",
            "pub unsafe fn h() {}\n",
            "pub(crate) unsafe fn i() {\n",
            "    0; 1;\n 2;\n 3;\n",
            "}\n",
            "unsafe fn j() {}\n",
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
                "crates/cpu/src/kernels/avx2.rs:18: no `// SAFETY:` comment (`# Safety` for a function) above",
                "crates/model/src/lib.rs:3: `unsafe` is not allowed here",
            ]
        );
    }
}
