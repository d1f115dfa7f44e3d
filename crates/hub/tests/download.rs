//! Downloads by URL, against a server that misbehaves.

mod server;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use puna_hub::{Freshness, HubConfig, HubError, ModelSpec, NoProgress, Progress, resolve};
use server::{Reply, Request, Server};

const MIB: usize = 1 << 20;

fn model(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 4093) as u8).collect()
}

fn config(cache: &Path) -> HubConfig {
    let mut config = HubConfig::new(cache);
    config.stall_timeout = Duration::from_millis(400);
    config.retry_delay = Duration::from_millis(1);
    config
}

/// Keeps everything it hears.
#[derive(Default)]
struct Heard {
    totals: Vec<Option<u64>>,
    last: u64,
    finished: usize,
    notes: Vec<String>,
}

impl Progress for Heard {
    fn total(&mut self, _: &str, bytes: Option<u64>) {
        self.totals.push(bytes);
    }
    fn advanced(&mut self, position: u64) {
        self.last = position;
    }
    fn finished(&mut self) {
        self.finished += 1;
    }
    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

fn url(server: &Server, file: &str) -> ModelSpec {
    ModelSpec::parse(format!("{}/{file}", server.address)).unwrap()
}

fn left_overs(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_whole_file_arrives_is_reported_and_is_not_fetched_twice() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|request| Reply::file(request, &model(3 * MIB + 5)));
    let mut heard = Heard::default();
    let path = resolve(&url(&server, "m.gguf"), &config(cache.path()), &mut heard).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), model(3 * MIB + 5));
    assert_eq!(path.file_name().unwrap(), "m.gguf");
    assert_eq!(
        (heard.totals, heard.last, heard.finished),
        (vec![Some(3 * MIB as u64 + 5)], 3 * MIB as u64 + 5, 1)
    );
    assert_eq!(
        resolve(
            &url(&server, "m.gguf"),
            &config(cache.path()),
            &mut NoProgress
        )
        .unwrap(),
        path
    );
    assert_eq!(server.requests().len(), 1);
    assert_eq!(left_overs(cache.path()), ["m.gguf", "m.gguf.lock"]);
}

#[test]
fn a_broken_connection_is_taken_up_where_it_broke() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|request| {
        let reply = Reply::file(request, &model(3 * MIB)).header("ETag", "\"a\"");
        if request.range().is_none() {
            reply.cut_after(MIB + 100)
        } else {
            reply
        }
    });
    let mut heard = Heard::default();
    let path = resolve(&url(&server, "m.gguf"), &config(cache.path()), &mut heard).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), model(3 * MIB));
    let ranges: Vec<_> = server.requests().iter().map(Request::range).collect();
    assert_eq!(ranges, [None, Some((MIB + 100, None))]);
    assert!(
        heard.notes[0].contains("the connection broke at byte 1048676"),
        "{:?}",
        heard.notes
    );
}

#[test]
fn a_later_run_takes_up_what_an_earlier_one_left() {
    let cache = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let server = Server::start(move |request| {
        let reply = Reply::file(request, &model(3 * MIB)).header("ETag", "\"a\"");
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            reply.cut_after(2 * MIB + 100)
        } else {
            reply
        }
    });
    let mut once = config(cache.path());
    once.retries = 0;
    let error = resolve(&url(&server, "m.gguf"), &once, &mut NoProgress).unwrap_err();
    assert!(
        matches!(error, HubError::Interrupted { position, .. } if position == 2 * MIB as u64 + 100),
        "{error}"
    );
    let path = resolve(&url(&server, "m.gguf"), &once, &mut NoProgress).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), model(3 * MIB));
    assert_eq!(server.requests()[1].range(), Some((2 * MIB, None)));
}

#[test]
fn b236_a_connection_that_stalls_at_ninety_nine_percent_is_noticed_and_taken_up() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|request| {
        let reply = Reply::file(request, &model(2 * MIB)).header("ETag", "\"a\"");
        if request.range().is_none() {
            reply.stall_after(2 * MIB - 1000)
        } else {
            reply
        }
    });
    let mut heard = Heard::default();
    let path = resolve(&url(&server, "m.gguf"), &config(cache.path()), &mut heard).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), model(2 * MIB));
    assert_eq!(server.requests()[1].range(), Some((2 * MIB - 1000, None)));
    assert!(
        heard.notes[0].contains("no data for 0.4 s at byte 2096152"),
        "{:?}",
        heard.notes
    );
}

#[test]
fn b236_a_range_spoilt_on_disk_is_the_only_one_fetched_again() {
    let cache = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let server = Server::start(move |request| {
        let reply = Reply::file(request, &model(5 * MIB)).header("ETag", "\"a\"");
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            reply.cut_after(4 * MIB)
        } else {
            reply
        }
    });
    let mut once = config(cache.path());
    once.retries = 0;
    resolve(&url(&server, "m.gguf"), &once, &mut NoProgress).unwrap_err();
    let folder = std::fs::read_dir(cache.path().join("url"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let part = folder.join("m.gguf.part");
    let mut bytes = std::fs::read(&part).unwrap();
    bytes[MIB + 17] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    let path = resolve(&url(&server, "m.gguf"), &once, &mut NoProgress).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), model(5 * MIB));
    let ranges: Vec<_> = server.requests()[1..]
        .iter()
        .map(|request| request.range().unwrap())
        .collect();
    assert_eq!(ranges, [(MIB, Some(2 * MIB - 1)), (4 * MIB, None)]);
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|request| Reply::file(request, b"x").pause(Duration::from_secs(10)));
    let mut once = config(cache.path());
    once.retries = 1;
    let error = resolve(&url(&server, "m.gguf"), &once, &mut NoProgress).unwrap_err();
    assert!(matches!(error, HubError::Stalled { .. }), "{error}");
}

#[test]
fn a_server_without_ranges_sends_the_whole_file_again() {
    let cache = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        let reply =
            Reply::text(String::from_utf8(vec![b'm'; 2 * MIB]).unwrap()).header("ETag", "\"a\"");
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            reply.cut_after(MIB + 1)
        } else {
            reply
        }
    });
    let path = resolve(
        &url(&server, "m.gguf"),
        &config(cache.path()),
        &mut NoProgress,
    )
    .unwrap();
    assert_eq!(std::fs::read(path).unwrap(), vec![b'm'; 2 * MIB]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_file_that_changed_between_two_runs_is_fetched_anew() {
    let cache = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let server = Server::start(move |request| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::file(request, &vec![1; 3 * MIB])
            .header("ETag", "\"a\"")
            .cut_after(MIB + 1),
        _ => Reply::file(request, &model(3 * MIB)).header("ETag", "\"b\""),
    });
    let path = resolve(
        &url(&server, "m.gguf"),
        &config(cache.path()),
        &mut NoProgress,
    )
    .unwrap();
    assert_eq!(std::fs::read(path).unwrap(), model(3 * MIB));
    let ranges: Vec<_> = server.requests().iter().map(Request::range).collect();
    assert_eq!(ranges, [None, Some((MIB + 1, None)), None]);
}

#[test]
fn b234_two_pulls_of_one_file_at_once_both_succeed_with_one_transfer() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|request| {
        Reply::file(request, &model(4 * MIB)).pause(Duration::from_millis(100))
    });
    let spec = url(&server, "m.gguf");
    std::thread::scope(|scope| {
        let pulls: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| resolve(&spec, &config(cache.path()), &mut NoProgress)))
            .collect();
        for pull in pulls {
            assert_eq!(
                std::fs::read(pull.join().unwrap().unwrap()).unwrap(),
                model(4 * MIB)
            );
        }
    });
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn refusals_say_what_to_do() {
    let cases = [
        (401, "set HF_TOKEN"),
        (403, "accept the model's terms"),
        (404, "check the spelling"),
        (410, "refused"),
    ];
    for (status, advice) in cases {
        let cache = tempfile::tempdir().unwrap();
        let server =
            Server::start(move |_| Reply::status(status).header("X-Error-Message", "because"));
        let error = resolve(
            &url(&server, "m.gguf"),
            &config(cache.path()),
            &mut NoProgress,
        )
        .unwrap_err()
        .to_string();
        assert!(
            error.contains(advice) && error.contains(&format!("HTTP {status} (because)")),
            "{error}"
        );
        assert_eq!(server.requests().len(), 1, "a refusal is not asked again");
    }
}

#[test]
fn a_server_in_trouble_is_asked_again_until_it_has_recovered() {
    let cache = tempfile::tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let server = Server::start(move |request| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::status(503),
        1 => Reply::status(429),
        _ => Reply::file(request, b"GGUF"),
    });
    let path = resolve(
        &url(&server, "m.gguf"),
        &config(cache.path()),
        &mut NoProgress,
    )
    .unwrap();
    assert_eq!(std::fs::read(path).unwrap(), b"GGUF");
}

#[test]
fn endless_redirects_and_strange_ones_are_errors() {
    for (location, words) in [
        ("/m.gguf", "more than 10 redirects"),
        ("file:///etc/passwd", "which is no URL"),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let server = Server::start(move |_| Reply::status(302).header("Location", location));
        let error = resolve(
            &url(&server, "m.gguf"),
            &config(cache.path()),
            &mut NoProgress,
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_url_of_one_part_brings_all_parts() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|request| Reply::file(request, request.path.as_bytes()));
    let path = resolve(
        &url(&server, "m-00002-of-00003.gguf?k=v"),
        &config(cache.path()),
        &mut NoProgress,
    )
    .unwrap();
    assert_eq!(path.file_name().unwrap(), "m-00001-of-00003.gguf");
    assert_eq!(std::fs::read(&path).unwrap(), b"/m-00001-of-00003.gguf?k=v");
    assert!(path.with_file_name("m-00003-of-00003.gguf").is_file());
}

#[test]
fn b052_a_url_of_a_split_model_that_lacks_a_part_downloads_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|request| {
        if request.path.contains("00002") {
            Reply::status(404)
        } else {
            Reply::file(request, b"part")
        }
    });
    let error = resolve(
        &url(&server, "m-00001-of-00003.gguf"),
        &config(cache.path()),
        &mut NoProgress,
    )
    .unwrap_err();
    assert!(
        matches!(&error, HubError::MissingParts { missing, .. } if missing == &["m-00002-of-00003.gguf"]),
        "{error}"
    );
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.method == "HEAD")
    );
}

#[test]
fn offline_mode_asks_nobody() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|request| Reply::file(request, b"GGUF"));
    let mut offline = config(cache.path());
    offline.freshness = Freshness::Offline;
    let error = resolve(&url(&server, "m.gguf"), &offline, &mut NoProgress).unwrap_err();
    assert!(matches!(error, HubError::Offline { .. }), "{error}");
    let path = resolve(
        &url(&server, "m.gguf"),
        &config(cache.path()),
        &mut NoProgress,
    )
    .unwrap();
    assert_eq!(
        resolve(&url(&server, "m.gguf"), &offline, &mut NoProgress).unwrap(),
        path
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_proxy_is_used_but_not_for_the_hosts_excepted() {
    let proxy = Server::start(|_| Reply::status(407));
    let direct = Server::start(|request| Reply::file(request, b"direct"));
    let cache = tempfile::tempdir().unwrap();
    let mut config = config(cache.path());
    config.proxy = Some(proxy.address.clone());
    let error = resolve(&url(&direct, "m.gguf"), &config, &mut NoProgress)
        .unwrap_err()
        .to_string();
    assert!(error.contains("the proxy says"), "{error}");
    assert_eq!(proxy.requests()[0].method, "CONNECT");
    config.no_proxy = Some("other.example, 127.0.0.1".to_owned());
    let path = resolve(&url(&direct, "m.gguf"), &config, &mut NoProgress).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), b"direct");
}
