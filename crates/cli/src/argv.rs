//! What is done to the arguments before the parser sees them: llama.cpp's flags of several letters behind one dash get their long forms,
//! values that may be left out are joined to their flags, and llama.cpp's flags that are not here are told of.

use crate::elsewhere::{self, Elsewhere, Takes};
use clap::{Arg, Command, builder::PossibleValue};
use std::ffi::{OsStr, OsString};

/// Flags of several letters behind one dash, which the parser does not know, and their long forms.
const LONG: [(&str, &str); 13] = [
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
];

/// Arguments for the parser.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) arguments: Vec<OsString>,
    /// What the user should know of flags that change nothing.
    pub(crate) notes: Vec<String>,
}

/// Prepares the arguments for `program`, which must be built. What is wrong with them is the error.
pub(crate) fn prepare(
    arguments: impl Iterator<Item = OsString>,
    program: &Command,
) -> Result<Prepared, String> {
    let mut rest = arguments.collect::<Vec<_>>().into_iter();
    let mut prepared = Prepared {
        arguments: rest.by_ref().take(2).collect(),
        notes: Vec::new(),
    };
    let command = prepared.arguments.get(1);
    let Some(command) = command.and_then(|name| program.find_subcommand(name)) else {
        prepared.arguments.extend(rest);
        return Ok(prepared);
    };
    let known = Known::new(command);
    while let Some(word) = rest.next() {
        if word == "--" {
            prepared.arguments.push(word);
            break;
        }
        let next = rest.as_slice().first().map(OsString::as_os_str);
        match known.classify(&word, next)? {
            Word::Alone(word) => prepared.arguments.push(word),
            Word::WithValue(word) => {
                prepared.arguments.push(word);
                prepared.arguments.extend(rest.next());
            }
            Word::Joined(word) => {
                prepared.arguments.push(word);
                rest.next();
            }
            Word::Noted { note, with_value } => {
                prepared.notes.push(note);
                if with_value {
                    rest.next();
                }
            }
        }
    }
    prepared.arguments.extend(rest);
    Ok(prepared)
}

/// What becomes of a word.
enum Word {
    /// It goes to the parser.
    Alone(OsString),
    /// It and the next one, which is its value, go to the parser.
    WithValue(OsString),
    /// It goes to the parser and has the next one in it.
    Joined(OsString),
    /// It changes nothing, nor does its value, if that is the next word.
    Noted { note: String, with_value: bool },
}

/// The flags of a subcommand.
struct Known<'a> {
    flags: Vec<&'a Arg>,
    /// Whether llama.cpp's flags may be expected.
    runs_models: bool,
}

impl<'a> Known<'a> {
    fn new(command: &'a Command) -> Self {
        let flags: Vec<_> = command.get_arguments().collect();
        let runs_models = flags.iter().any(|flag| flag.get_short() == Some('m'));
        Self { flags, runs_models }
    }

    fn long(&self, name: &str) -> Option<&'a Arg> {
        let name = name.strip_prefix("--")?;
        self.flags.iter().copied().find(|flag| {
            let aliases = flag.get_all_aliases().unwrap_or_default();
            flag.get_long() == Some(name) || aliases.contains(&name)
        })
    }

    fn short(&self, letter: char) -> Option<&'a Arg> {
        let flags = self.flags.iter().copied();
        flags.into_iter().find(|f| f.get_short() == Some(letter))
    }

    fn classify(&self, word: &OsStr, next: Option<&OsStr>) -> Result<Word, String> {
        let alone = || Ok(Word::Alone(word.to_owned()));
        let Some(text) = word
            .to_str()
            .filter(|text| text.len() > 1 && text.starts_with('-'))
        else {
            return alone();
        };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let long = LONG.iter().find(|(short, _)| *short == name);
        let long = long.map_or(name, |(_, long)| *long);
        let given = || value.map_or_else(|| long.to_owned(), |value| format!("{long}={value}"));
        if let Some(flag) = self.long(long) {
            return Ok(match (value, next) {
                (None, Some(next)) if may_go_without(flag) => match named(flag, next) {
                    Some(value) => Word::Joined(format!("{long}={}", value.get_name()).into()),
                    None => Word::Alone(given().into()),
                },
                (None, Some(next)) if is_value(flag, next) => Word::WithValue(given().into()),
                _ => Word::Alone(given().into()),
            });
        }
        let is_ours = name.len() == 2 && self.last_of_cluster(name).is_some();
        if self.runs_models
            && !is_ours
            && let Some(flag) = elsewhere::find(long)
        {
            return noted(flag, name, value, next);
        }
        match self.last_of_cluster(text) {
            Some(flag) if next.is_some_and(|next| is_value(flag, next)) => {
                Ok(Word::WithValue(word.to_owned()))
            }
            _ => Ok(Word::Alone(given().into())),
        }
    }

    /// The flag that the next word may be the value of, in a word such as `-vn`.
    fn last_of_cluster(&self, text: &str) -> Option<&'a Arg> {
        let mut letters = text.strip_prefix('-')?.chars();
        loop {
            let flag = self.short(letters.next()?)?;
            if takes_values(flag) {
                return letters.as_str().is_empty().then_some(flag);
            }
        }
    }
}

/// A flag that is not here, with its value.
fn noted(
    flag: &Elsewhere,
    name: &str,
    value: Option<&str>,
    next: Option<&OsStr>,
) -> Result<Word, String> {
    let next = next.and_then(OsStr::to_str);
    let takes_next = value.is_none()
        && match flag.takes {
            Takes::Nothing => false,
            Takes::Value => next.is_some_and(|next| !next.starts_with("--")),
            Takes::Switch => next.is_some_and(|next| elsewhere::SWITCH.contains(&next)),
        };
    let value = if takes_next { next } else { value };
    let note = flag.told(name, value)?;
    Ok(Word::Noted {
        note,
        with_value: takes_next,
    })
}

fn takes_values(flag: &Arg) -> bool {
    flag.get_num_args()
        .is_some_and(|range| range.takes_values())
}

fn may_go_without(flag: &Arg) -> bool {
    takes_values(flag)
        && flag
            .get_num_args()
            .is_some_and(|range| range.min_values() == 0)
}

/// Whether the parser takes this word for the flag's value.
fn is_value(flag: &Arg, word: &OsStr) -> bool {
    let is_number = || {
        word.to_str()
            .is_some_and(|text| text.parse::<f64>().is_ok())
    };
    let looks_like_a_flag = word.len() > 1 && word.to_string_lossy().starts_with('-');
    takes_values(flag)
        && (!looks_like_a_flag
            || flag.is_allow_hyphen_values_set()
            || (flag.is_allow_negative_numbers_set() && is_number()))
}

/// The value of the flag that this word names.
fn named(flag: &Arg, word: &OsStr) -> Option<PossibleValue> {
    let word = word.to_str()?;
    let mut values = flag.get_possible_values().into_iter();
    values.find(|value| value.matches(word, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;

    fn prepared(arguments: &str) -> Result<Prepared, String> {
        let mut program = Cli::command();
        program.build();
        prepare(arguments.split(' ').map(OsString::from), &program)
    }

    fn check(arguments: &str, expected: &str) {
        let got = prepared(arguments).unwrap();
        let expected: Vec<_> = expected.split(' ').map(OsString::from).collect();
        assert_eq!(got.arguments, expected, "{arguments}");
    }

    #[test]
    fn flags_of_several_letters_get_their_long_forms_and_texts_stay() {
        for (arguments, expected) in [
            (
                "puna run -ub 64 -ctk q8_0",
                "puna run --ubatch-size 64 --cache-type-k q8_0",
            ),
            ("puna run -p -fa -hf a/b", "puna run -p -fa --hf-repo a/b"),
            ("puna run -p -p -ub", "puna run -p -p --ubatch-size"),
            (
                "puna run -sys -ub -ub=3",
                "puna run --system-prompt -ub --ubatch-size=3",
            ),
            ("puna run -vp -ub -ub 3", "puna run -vp -ub --ubatch-size 3"),
            ("puna run -l5-inf -ngl 3 x", "puna run -l5-inf x"),
            ("puna run -n -1 -ub 3", "puna run -n -1 --ubatch-size 3"),
            ("puna run -- -fa -ngl", "puna run -- -fa -ngl"),
            ("puna run -c 5", "puna run -c 5"),
            ("puna frobnicate -ub", "puna frobnicate -ub"),
        ] {
            check(arguments, expected);
        }
    }

    #[test]
    fn a_value_that_may_be_left_out_is_not_taken_from_what_follows() {
        for (arguments, expected) in [
            ("puna run -fa on m.gguf", "puna run --flash-attn=on m.gguf"),
            ("puna run -fa m.gguf", "puna run --flash-attn m.gguf"),
            ("puna run -fa 1 m.gguf", "puna run --flash-attn=on m.gguf"),
            ("puna run --color m.gguf hi", "puna run --color m.gguf hi"),
            ("puna run -co auto m.gguf", "puna run --color=auto m.gguf"),
            ("puna bench -fa 1 m.gguf", "puna bench m.gguf"),
            ("puna bench -fa m.gguf", "puna bench m.gguf"),
        ] {
            check(arguments, expected);
        }
    }

    #[test]
    fn a_flag_that_is_here_is_not_told_of() {
        check(
            "puna bench --no-warmup -np 2",
            "puna bench --no-warmup --parallel 2",
        );
        let run = prepared("puna run --no-warmup -np 1 --mlock").unwrap();
        assert_eq!(run.arguments, ["puna", "run"].map(OsString::from));
        assert_eq!(run.notes.len(), 3);
        check("puna list --mlock", "puna list --mlock");
    }

    #[test]
    fn flags_that_would_change_something_are_refused() {
        for arguments in [
            "puna run --lora x",
            "puna run --mirostat=2",
            "puna eval -j {}",
            "puna run -ngl",
        ] {
            assert!(prepared(arguments).is_err(), "{arguments}");
        }
        let off = prepared("puna run --mirostat 0 --typical=1.0").unwrap();
        assert_eq!((off.arguments.len(), off.notes.len()), (2, 2));
    }
}
