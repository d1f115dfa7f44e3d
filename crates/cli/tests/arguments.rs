//! What the program makes of its arguments, before any model is read.

mod tiny;

use serde_json::Value;
use std::process::Output;
use tiny::{Kind, Tiny, bare, failure, ids, success};

/// Notes on the standard error of a run that succeeds.
fn notes(output: &Output) -> Vec<String> {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    error.lines().map(str::to_owned).collect()
}

/// The same as `Tiny::output`, but the model is not behind a flag.
fn with_model_first(tiny: &Tiny, command: &str, arguments: &[&str]) -> Output {
    let mut program = tiny.command();
    program.arg(command).arg(&tiny.model).args(arguments);
    program.output().unwrap()
}

#[test]
fn the_model_may_be_the_first_word_of_every_command() {
    let tiny = Tiny::new(Kind::Chat);
    for (command, arguments) in [
        ("inspect", &["--tensors"][..]),
        ("tokenize", &["-p", "hello"]),
        ("tokenize", &["hello"]),
        ("eval", &["--tokens", "1,2"]),
        ("run", &["-n", "3", "--temp", "0", "-p", "hello"]),
        ("run", &["hello", "-n", "3", "--temp", "0"]),
        ("run", &["-n", "3", "--temp", "0", "-fa", "hello"]),
    ] {
        let first = success(with_model_first(&tiny, command, arguments));
        let mut flags: Vec<_> = arguments.to_vec();
        if let Some(at) = flags.iter().position(|word| *word == "hello")
            && flags.get(at.wrapping_sub(1)) != Some(&"-p")
        {
            flags.insert(at, "-p");
        }
        assert_eq!(first, tiny.text(command, &flags), "{command} {arguments:?}");
    }
    success(with_model_first(
        &tiny,
        "bench",
        &["-p", "4", "-n", "0", "-r", "1"],
    ));
    let pulled = success(with_model_first(&tiny, "pull", &[]));
    assert_eq!(pulled.trim_end(), tiny.model.to_str().unwrap());
}

#[test]
fn a_model_or_a_prompt_that_is_given_twice_is_a_usage_error() {
    let tiny = Tiny::new(Kind::Chat);
    for command in [
        "run",
        "inspect",
        "tokenize",
        "eval --tokens 1",
        "bench",
        "pull",
    ] {
        let error = tiny.error(2, command, &["other.gguf"]);
        assert!(
            error.contains("other.gguf") && error.contains("twice"),
            "{command}: {error}"
        );
    }
    let given = |more: &[&str]| failure(&with_model_first(&tiny, "run", more), 2);
    given(&["hello", "-p", "hello"]);
    given(&["hello", "-f", "hello"]);
    given(&["-hf", "a/b"]);
    given(&["hello", "the"]);
    let error = failure(&bare(&["run", "Why is the sky blue?"]), 2);
    assert!(
        error.contains("is no file") && error.contains("-p"),
        "{error}"
    );
    let error = failure(&bare(&["inspect", "hello"]), 1);
    assert!(
        error.contains("`hello`") && error.contains("first word"),
        "{error}"
    );
    let error = failure(&bare(&["run", ""]), 2);
    assert!(error.contains("name of the model is empty"), "{error}");
}

#[test]
fn flags_of_llama_cpp_that_change_nothing_are_taken_with_a_note() {
    let tiny = Tiny::new(Kind::Chat);
    let run = ["-n", "4", "--temp", "0", "-p", "hello"];
    let flags = [
        "--no-mmap",
        "--mlock",
        "--jinja",
        "-ngl",
        "99",
        "--no-warmup",
        "--numa",
        "distribute",
        "-dev",
        "none",
        "-tb",
        "4",
        "--no-perf",
        "-nkvo",
        "-np",
        "1",
        "--prio",
        "2",
        "--no-display-prompt",
        "-st",
        "-dt",
        "-1",
        "--keep=3",
        "--mirostat",
        "0",
        "--typical",
        "1.0",
        "--log-colors",
        "--n-gpu-layers=all",
    ];
    let output = tiny.output("run", &[&flags[..], &run].concat());
    let notes = notes(&output);
    assert_eq!(notes.len(), 20, "{notes:?}");
    for note in &notes {
        assert!(
            note.starts_with("note: -") && note.contains("changes nothing: "),
            "{note}"
        );
    }
    assert_eq!(success(output), tiny.text("run", &run));
    let bench = tiny.output("bench -p 4 -n 0 -r 1 --no-warmup -ngl 0 -fa 1 --mlock", &[]);
    let noted = self::notes(&bench);
    assert_eq!(noted.len(), 3, "{noted:?}");
    success(bench);
    success(with_model_first(
        &tiny,
        "eval",
        &["--tokens", "1", "--no-mmap"],
    ));
}

#[test]
fn flags_of_llama_cpp_that_would_change_something_are_refused_by_name() {
    for flags in [
        "--mirostat 2",
        "--typical 0.5",
        "--grammar root::=x",
        "-j {}",
        "--lora a.gguf",
        "--control-vector x",
        "--rope-freq-base 1e6",
        "-md draft.gguf",
        "--mmproj x",
        "--prompt-cache x",
        "--context-shift",
        "--dry-multiplier 0.8",
        "--xtc-probability=0.5",
        "--chat-template-kwargs {}",
        "-o x",
        "-i",
        "-C 0xf",
        "--override-kv a=int:1",
    ] {
        let words: Vec<_> = ["run", "no-such.gguf", "-p", "x"]
            .into_iter()
            .chain(flags.split(' '))
            .collect();
        let error = failure(&bare(&words), 2);
        let flag = flags.split([' ', '=']).next().unwrap();
        assert!(
            error.contains(flag) && error.contains("not supported yet") && error.contains("--help"),
            "{flags}: {error}"
        );
    }
    let error = failure(&bare(&["run", "x", "-ngl"]), 2);
    assert!(error.contains("-ngl: a value is missing"), "{error}");
    let error = failure(&bare(&["list", "--mlock"]), 2);
    assert!(error.contains("--mlock"), "{error}");
}

#[test]
fn wrong_options_are_told_before_the_model_is_looked_for() {
    let tiny = Tiny::new(Kind::Chat);
    for wrong in [
        "--temp -1",
        "--temp nan",
        "--top-p 2",
        "--min-p -0.1",
        "--repeat-penalty 0",
        "--samplers top_q",
        "--sampler-seq d",
        "-l x",
        "-l 1+nan",
        "-n -3",
        "-s -2",
        "-t x",
        "-b 0",
    ] {
        let words: Vec<_> = ["run", "no-such.gguf", "-p", "x"]
            .into_iter()
            .chain(wrong.split(' '))
            .collect();
        let error = failure(&bare(&words), 2);
        assert!(!error.contains("no-such.gguf"), "{wrong}: {error}");
    }
    failure(&bare(&["run", "no-such.gguf", "-p", "x", "-r", ""]), 2);
    for words in [
        &["eval", "no-such.gguf"][..],
        &["tokenize", "no-such.gguf"],
        &["bench", "no-such.gguf", "-p", "0", "-n", "0"],
    ] {
        failure(&tiny.command().args(words).output().unwrap(), 2);
    }
}

/// What can be told without the model is wrong usage; an id that this model does not have is a failure.
#[test]
fn ids_are_wrong_usage_or_a_failure_alike_in_all_commands() {
    let tiny = Tiny::new(Kind::Chat);
    for (command, more) in [
        ("run -p x -n 1 -l", "+1"),
        ("tokenize --decode", ""),
        ("eval --tokens", ""),
    ] {
        let with = |id: &str| format!("{id}{more}");
        for wrong in ["x", "-1", "", "1.5", "99999999999"] {
            tiny.error(2, command, &[&with(wrong)]);
        }
        let error = tiny.error(1, command, &[&with("99999")]);
        assert!(error.contains("99999"), "{command}: {error}");
        assert!(
            tiny.output(command, &[&with("1")]).status.success(),
            "{command}"
        );
    }
}

#[test]
fn no_threads_and_fewer_mean_all_of_them_everywhere() {
    let tiny = Tiny::new(Kind::Chat);
    let all = std::thread::available_parallelism().unwrap().get();
    for t in ["0", "-1"] {
        tiny.text("run -n 1 -p x -t", &[t]);
        tiny.text("eval --tokens 1 -t", &[t]);
        let bench = tiny.json("bench --json -p 4 -n 0 -r 1 -t", &[t]);
        assert_eq!(bench[0]["n_threads"], all);
        let doctor = success(bare(&["doctor", "--json", "--no-measure", "-t", t]));
        let doctor: Value = serde_json::from_str(&doctor).unwrap();
        assert_eq!(doctor["threads"], all);
    }
}

#[test]
fn piped_text_is_taken_where_no_text_is_given() {
    let tiny = Tiny::new(Kind::Chat);
    let given = tiny.text("tokenize --ids", &["-p", "hello the"]);
    assert_eq!(
        success(tiny.piped("tokenize --ids", &[], "hello the\n")),
        given
    );
    let kept = success(tiny.piped("tokenize --ids --stdin", &[], "hello the\n"));
    assert_ne!(kept, given);
    assert_eq!(
        success(tiny.piped("tokenize --ids", &["-p", "hello the"], "other")),
        given
    );
    let decoded = success(tiny.piped("tokenize --no-bos", &["--decode", "104,105"], "other"));
    assert_eq!(decoded, "hi\n");
    let eval = success(tiny.piped("eval --json", &[], "hello the\n"));
    let eval: Value = serde_json::from_str(&eval).unwrap();
    assert_eq!(format!("{:?}\n", ids(&eval["tokens"])), given);
}

#[test]
fn help_tells_where_to_begin_and_what_the_exit_codes_mean() {
    let help = success(bare(&["--help"]));
    for words in ["puna run model.gguf", "Exit codes: 0", "2 the arguments"] {
        assert!(help.contains(words), "{help}");
    }
}
