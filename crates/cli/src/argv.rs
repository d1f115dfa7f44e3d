//! llama.cpp's flags of several letters behind one dash, which the argument parser does not know, in their long forms.

use std::ffi::{OsStr, OsString};

/// Flag and long form.
const LONG: [(&str, &str); 31] = [
    ("-ub", "--ubatch-size"),
    ("-ctk", "--cache-type-k"),
    ("-ctv", "--cache-type-v"),
    ("-fa", "--flash-attn"),
    ("-sys", "--system-prompt"),
    ("-sysf", "--system-prompt-file"),
    ("-hf", "--hf-repo"),
    ("-hfr", "--hf-repo"),
    ("-mu", "--model-url"),
    ("-co", "--color"),
    ("-np", "--parallel"),
    ("-cnv", "--chat"),
    ("-no-cnv", "--raw"),
    // Not here: in their long form they are refused by their whole name, and not taken for a short flag with a value.
    ("-ngl", "--gpu-layers"),
    ("-tb", "--threads-batch"),
    ("-mli", "--multiline-input"),
    ("-dev", "--device"),
    ("-mg", "--main-gpu"),
    ("-ts", "--tensor-split"),
    ("-sm", "--split-mode"),
    ("-ot", "--override-tensor"),
    ("-lv", "--verbosity"),
    ("-cmoe", "--cpu-moe"),
    ("-nkvo", "--no-kv-offload"),
    ("-mm", "--mmproj"),
    ("-hff", "--hf-file"),
    ("-hft", "--hf-token"),
    ("-jf", "--json-schema-file"),
    ("-bs", "--backend-sampling"),
    ("-st", "--single-turn"),
    ("-ptc", "--print-token-count"),
];

/// Flags whose value is any text, which must stay as it is even where it looks like a flag.
const TEXT_VALUES: [&str; 9] = [
    "-p",
    "--prompt",
    "-f",
    "--file",
    "-sys",
    "--system-prompt",
    "-r",
    "--reverse-prompt",
    "-m",
];

/// The arguments with every such flag replaced, up to `--`.
pub(crate) fn with_long_flags(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut result: Vec<OsString> = Vec::new();
    let mut is_value = false;
    let mut ended = false;
    for argument in arguments {
        let replaced = if ended || is_value {
            None
        } else {
            long_form(&argument)
        };
        ended |= !is_value && argument == "--";
        is_value = !is_value && TEXT_VALUES.iter().any(|flag| argument == *flag);
        result.push(replaced.unwrap_or(argument));
    }
    result
}

fn long_form(argument: &OsStr) -> Option<OsString> {
    let text = argument.to_str()?;
    let (flag, value) = match text.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (text, None),
    };
    let (_, long) = LONG.iter().find(|(short, _)| *short == flag)?;
    Some(match value {
        Some(value) => format!("{long}={value}").into(),
        None => (*long).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &str, expected: &str) {
        let arguments = arguments.split(' ').map(OsString::from);
        let got: Vec<_> = with_long_flags(arguments);
        let expected: Vec<_> = expected.split(' ').map(OsString::from).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn flags_of_several_letters_get_their_long_forms_and_texts_stay() {
        check(
            "puna run -ub 64 -fa on",
            "puna run --ubatch-size 64 --flash-attn on",
        );
        check(
            "puna run -p -fa -ctk q8_0",
            "puna run -p -fa --cache-type-k q8_0",
        );
        check("puna run -p -p -fa", "puna run -p -p --flash-attn");
        check(
            "puna run -sys -ub -ub=3",
            "puna run --system-prompt -ub --ubatch-size=3",
        );
        check("puna run -- -fa", "puna run -- -fa");
        check("puna run -c 5", "puna run -c 5");
    }
}
