//! A library never prints, exits or reads the environment: it returns what happened, and is handed its settings.

use super::Finding;
use crate::source::Source;

const FORBIDDEN: [(&str, &str); 11] = [
    ("print!", "prints"),
    ("println!", "prints"),
    ("eprint!", "prints"),
    ("eprintln!", "prints"),
    ("dbg!", "prints"),
    ("process::exit", "exits"),
    ("process::abort", "exits"),
    ("env::var", "reads the environment"),
    ("env::var_os", "reads the environment"),
    ("env::vars", "reads the environment"),
    ("env::args", "reads the command line"),
];
const PROGRAMS: [&str; 2] = ["crates/cli", "xtask"];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let is_library = source.is_rust()
            && source.path.starts_with("crates/")
            && !PROGRAMS.contains(&source.package());
        if !is_library || source.path.ends_with("/build.rs") {
            continue;
        }
        for (call, does) in FORBIDDEN {
            for line in source
                .lines_with(call)
                .filter(|line| !source.is_test(*line))
            {
                findings.push(Finding::at(
                    source,
                    line,
                    format!("`{call}`: a library that {does}"),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;

    #[test]
    fn a_library_that_makes_itself_heard_is_found() {
        let noisy = concat!(
            "fn a() { println!(\"x\"); }\n",
            "fn b() { std::process::exit(1) }\n",
            "fn c() { std::env::var(\"X\"); env!(\"X\"); }\n",
            "/// println!(1)\n",
            "#[cfg(test)]\nmod tests { fn d() { eprintln!(\"skipped\"); } }\n",
        );
        let files = [
            ("crates/gguf/src/lib.rs", noisy),
            ("crates/cli/src/main.rs", noisy),
            ("crates/gguf/benches/b.rs", noisy),
        ];
        assert_eq!(
            found(check, &files),
            [
                "crates/gguf/src/lib.rs:1: `println!`: a library that prints",
                "crates/gguf/src/lib.rs:2: `process::exit`: a library that exits",
                "crates/gguf/src/lib.rs:3: `env::var`: a library that reads the environment",
            ]
        );
    }
}
