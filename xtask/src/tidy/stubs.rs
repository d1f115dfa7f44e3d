//! What is in the repository is finished.

use super::Finding;
use crate::source::Source;

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        for stub in ["todo!", "unimplemented!"] {
            findings.extend(
                source
                    .lines_with(stub)
                    .map(|line| Finding::at(source, line, format!("`{stub}` is left to do"))),
            );
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;

    #[test]
    fn a_stub_is_found() {
        let files = [(
            "crates/a/src/lib.rs",
            "// todo!()\nfn a() { todo!() }\nfn b() { unimplemented!(\"later\") }\n",
        )];
        assert_eq!(
            found(check, &files),
            [
                "crates/a/src/lib.rs:2: `todo!` is left to do",
                "crates/a/src/lib.rs:3: `unimplemented!` is left to do"
            ]
        );
    }
}
