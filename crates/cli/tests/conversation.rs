//! Conversations at a terminal.
#![cfg(target_os = "linux")]

mod tiny;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    fs::{File, OpenOptions},
    io::Write,
    process::Stdio,
};
use tiny::{Kind, Tiny};

/// What a conversation printed.
struct Talk {
    /// Answers, between prompts.
    answers: String,
    /// What the program says itself.
    told: Vec<String>,
}

/// Types these lines at a terminal, then Ctrl-D.
fn talk(tiny: &Tiny, flags: &[&str], lines: &[&str]) -> Talk {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = OpenOptions::new().read(true).write(true).open(name);
    let mut command = tiny.command();
    command.arg("run").arg(&tiny.model).args(flags);
    // A terminal without abilities, on which lines are not edited.
    command.env("TERM", "dumb").stdin(terminal.unwrap());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let mut keys = File::from(master);
    for line in lines {
        writeln!(keys, "{line}").unwrap();
    }
    keys.write_all(b"\x04").unwrap();
    let output = child.wait_with_output().unwrap();
    drop(keys);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{error}");
    Talk {
        answers: String::from_utf8(output.stdout).unwrap(),
        told: error.lines().map(str::to_owned).collect(),
    }
}

/// The lines after the first, which names the model.
fn told(tiny: &Tiny, flags: &[&str], lines: &[&str]) -> Vec<String> {
    let talk = talk(tiny, flags, lines);
    assert_eq!(talk.told[0], "tiny.gguf (/help for commands)");
    talk.told[1..].to_vec()
}

#[test]
fn every_command_says_in_one_line_what_it_did() {
    let tiny = Tiny::new(Kind::Chat);
    let file = tiny.path("talk.json");
    let file = file.to_str().unwrap();
    let flags = ["-n", "2", "--ignore-eos", "--temp", "0"];
    let lines = [
        "/system",
        "/system be short",
        "hello",
        &format!("/save {file}"),
        "/reset",
        &format!("/load {file}"),
        "/system \"\"",
        "/load no-such-file",
    ];
    let told = told(&tiny, &flags, &lines);
    let expected = [
        "there is no system message".to_owned(),
        "the system's message is \"be short\"".to_owned(),
        "note: the limit of -n is reached".to_owned(),
        format!("3 messages saved to `{file}`"),
        "2 messages forgotten; the system's message is \"be short\"".to_owned(),
        format!("3 messages loaded from `{file}`; the system's message is \"be short\""),
        "there is no system message".to_owned(),
        "error: `no-such-file`: No such file or directory (os error 2)".to_owned(),
    ];
    assert_eq!(told, expected);
}

#[test]
fn the_systems_message_of_the_command_line_is_shown_and_used() {
    let tiny = Tiny::new(Kind::Chat);
    let told = told(&tiny, &["-sys", "be\\nkind"], &["/reset"]);
    assert_eq!(told[0], "the system's message is \"be\\nkind\"");
    assert!(told[1].starts_with("0 messages forgotten; the system's"));
}

#[test]
fn a_command_that_is_none_lists_those_there_are() {
    let tiny = Tiny::new(Kind::Chat);
    let told = told(&tiny, &[], &["/sytem x", "/save", "/bye", "/reset"]);
    assert_eq!(told.len(), 2, "{told:?}");
    for (line, typed) in told.iter().zip(["`/sytem x`", "`/save`"]) {
        for word in [
            typed,
            "/help",
            "/system",
            "/reset",
            "/save FILE",
            "/load FILE",
            "/bye",
        ] {
            assert!(line.contains(word), "{word}: {line}");
        }
    }
    let help = talk(&tiny, &[], &["/help"]).answers;
    for command in [
        "/help",
        "/system TEXT",
        "/reset",
        "/save",
        "/load",
        "/bye",
        "Ctrl-D",
    ] {
        assert!(help.contains(command), "{help}");
    }
}

#[test]
fn a_conversation_gives_the_answers_of_single_prompts() {
    let tiny = Tiny::new(Kind::Chat);
    let flags = ["-n", "6", "--temp", "0", "--ignore-eos", "-l", "10-inf"];
    let single = tiny.text("run", &[&flags[..], &["-p", "hello\nthe"]].concat());
    let answers = talk(&tiny, &flags, &["hello\\", "the"]).answers;
    assert!(
        answers.contains(single.trim_end()),
        "{answers:?} {single:?}"
    );
}

#[test]
fn json_needs_a_prompt() {
    let tiny = Tiny::new(Kind::Chat);
    let error = tiny.error(2, "run --json", &[]);
    assert!(error.contains("prompt"), "{error}");
}
