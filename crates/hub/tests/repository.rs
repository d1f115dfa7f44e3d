//! `hf:owner/repo`, against a small hub.

mod server;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use puna_hub::{Freshness, HubConfig, HubError, ModelSpec, NoProgress, Token, resolve};
use server::{Reply, Request, Server};
use sha2::{Digest, Sha256};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn sha256(bytes: &[u8]) -> String {
    puna_hub::Sha256Digest::from_bytes(Sha256::digest(bytes).into()).to_string()
}

/// A listing whose files hold their own names.
fn listing(files: &[&str]) -> String {
    let siblings: Vec<String> = files
        .iter()
        .map(|file| {
            let (digest, size) = (sha256(file.as_bytes()), file.len());
            format!(r#"{{"rfilename":"{file}","size":{size},"lfs":{{"sha256":"{digest}","size":{size},"pointerSize":1}}}}"#)
        })
        .collect();
    format!(
        r#"{{"id":"o/r","sha":"{COMMIT}","siblings":[{{"rfilename":"README.md","size":3}},{}]}}"#,
        siblings.join(",")
    )
}

fn hub(files: &'static [&'static str]) -> Server {
    Server::start(move |request| answer(request, files))
}

fn answer(request: &Request, files: &[&str]) -> Reply {
    if request.path == "/api/models/o/r/revision/main?blobs=true" {
        return Reply::text(listing(files));
    }
    match request
        .path
        .strip_prefix(&format!("/o/r/resolve/{COMMIT}/"))
    {
        Some(file) if files.contains(&file) => Reply::file(request, file.as_bytes()),
        _ => Reply::status(404).header("X-Error-Message", "Repository not found"),
    }
}

fn config(cache: &Path, server: &Server) -> HubConfig {
    let mut config = HubConfig::new(cache);
    config.endpoint.clone_from(&server.address);
    config.stall_timeout = Duration::from_secs(5);
    config.retry_delay = Duration::from_millis(1);
    config
}

fn fetch(name: &str, config: &HubConfig) -> Result<String, HubError> {
    let path = resolve(&ModelSpec::parse(name).unwrap(), config, &mut NoProgress)?;
    Ok(String::from_utf8(std::fs::read(path).unwrap()).unwrap())
}

#[test]
fn the_quantization_asked_for_is_fetched_and_found_again_without_the_hub() {
    let cache = tempfile::tempdir().unwrap();
    let server = hub(&[
        "m-F16.gguf",
        "m-Q4_K_M.gguf",
        "m-Q8_0.gguf",
        "mmproj-F16.gguf",
    ]);
    let config = config(cache.path(), &server);
    for (name, expected) in [
        ("hf:o/r", "m-Q4_K_M.gguf"),
        ("o/r:q8_0", "m-Q8_0.gguf"),
        ("hf:o/r/m-F16.gguf", "m-F16.gguf"),
    ] {
        assert_eq!(fetch(name, &config).unwrap(), expected, "{name}");
        let asked = server.requests().len();
        assert_eq!(fetch(name, &config).unwrap(), expected, "{name}");
        assert_eq!(server.requests().len(), asked, "{name}");
    }
    let error = fetch("hf:o/r:Q2_K", &config).unwrap_err().to_string();
    assert!(
        error.contains("o/r has no Q2_K; it has F16, Q8_0, Q4_K_M"),
        "{error}"
    );
}

#[test]
fn a_split_model_is_fetched_whole() {
    let cache = tempfile::tempdir().unwrap();
    let server = hub(&["Q8_0/m-00001-of-00002.gguf", "Q8_0/m-00002-of-00002.gguf"]);
    let config = config(cache.path(), &server);
    let path = resolve(
        &ModelSpec::parse("hf:o/r").unwrap(),
        &config,
        &mut NoProgress,
    )
    .unwrap();
    assert_eq!(path.file_name().unwrap(), "m-00001-of-00002.gguf");
    assert!(path.with_file_name("m-00002-of-00002.gguf").is_file());
}

#[test]
fn b052_a_listing_without_a_part_downloads_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let server = hub(&["m-00001-of-00003.gguf", "m-00003-of-00003.gguf"]);
    let error = fetch("hf:o/r", &config(cache.path(), &server))
        .unwrap_err()
        .to_string();
    assert!(error.contains("m-00002-of-00003.gguf"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_token_goes_to_the_hub_and_not_to_the_storage_host() {
    let cache = tempfile::tempdir().unwrap();
    let storage = Server::start(|request| Reply::file(request, b"m.gguf"));
    let location = format!("{}/blob?signed=1", storage.address);
    let server = Server::start(move |request| {
        if request.path.starts_with("/api/") {
            return answer(request, &["m.gguf"]);
        }
        if request.path.starts_with("/o/r/") {
            return Reply::status(307)
                .header("Location", &request.path.replace("/o/r/", "/o/renamed/"));
        }
        Reply::status(302)
            .header("Location", &location)
            .header("X-Linked-Etag", &format!("\"{}\"", sha256(b"m.gguf")))
    });
    let mut config = config(cache.path(), &server);
    config.token = Some(Token("hf_secret".to_owned()));
    assert_eq!(fetch("hf:o/r", &config).unwrap(), "m.gguf");
    let asked = server.requests();
    assert_eq!(asked.len(), 3);
    assert!(
        asked
            .iter()
            .all(|request| request.header("authorization") == Some("Bearer hf_secret"))
    );
    let stored = storage.requests();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].header("authorization"), None);
}

#[test]
fn a_file_with_another_digest_than_listed_is_refused_and_not_kept() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|request| {
        if request.path.starts_with("/api/") {
            answer(request, &["m.gguf"])
        } else {
            Reply::file(request, b"M.gguf")
        }
    });
    let error = fetch("hf:o/r", &config(cache.path(), &server)).unwrap_err();
    assert!(matches!(error, HubError::Hash { .. }), "{error}");
    let folder = cache.path().join("hub/o/r");
    let left: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["m.gguf.lock"]);
}

#[test]
fn a_file_of_another_size_than_listed_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|request| {
        if request.path.starts_with("/api/") {
            answer(request, &["m.gguf"])
        } else {
            Reply::file(request, b"longer.gguf")
        }
    });
    let error = fetch("hf:o/r", &config(cache.path(), &server)).unwrap_err();
    assert!(
        matches!(
            error,
            HubError::Size {
                found: 11,
                expected: 6,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn b237_a_digest_that_is_not_sixty_four_hex_digits_is_refused() {
    let digest = sha256(b"m.gguf");
    let too_long = format!("{digest}0");
    for bad in [
        "../../../../tmp/x",
        &digest[1..],
        &too_long,
        "",
        "sha256:../x",
    ] {
        let cache = tempfile::tempdir().unwrap();
        let text = listing(&["m.gguf"]).replace(&digest, bad);
        let server = Server::start(move |_| Reply::text(text.clone()));
        let error = fetch("hf:o/r", &config(cache.path(), &server)).unwrap_err();
        assert!(matches!(error, HubError::Digest { .. }), "{bad}: {error}");

        let header = bad.to_owned();
        let server = Server::start(move |request| {
            if request.path.starts_with("/api/") {
                return Reply::text(r#"{"siblings":[{"rfilename":"m.gguf"}]}"#);
            }
            Reply::file(request, b"m.gguf").header("X-Linked-Etag", &format!("\"{header}\""))
        });
        let error = fetch("hf:o/r", &config(cache.path(), &server)).unwrap_err();
        assert!(matches!(error, HubError::Digest { .. }), "{bad}: {error}");
        assert!(!cache.path().join("hub/o/r/m.gguf").exists());
    }
}

#[test]
fn b237_a_listed_name_that_leaves_the_folder_is_not_offered() {
    let cache = tempfile::tempdir().unwrap();
    let server = hub(&["../../m.gguf", "/etc/m.gguf", "a/../../m.gguf", "C:m.gguf"]);
    let error = fetch("hf:o/r", &config(cache.path(), &server)).unwrap_err();
    assert!(matches!(error, HubError::NoGguf { .. }), "{error}");
}

#[test]
fn a_repository_that_is_not_there_says_so() {
    let cache = tempfile::tempdir().unwrap();
    let server = hub(&["m.gguf"]);
    let error = fetch("hf:o/other", &config(cache.path(), &server))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("HTTP 404 (Repository not found); no such repository"),
        "{error}"
    );
}

#[test]
fn a_listing_of_nonsense_is_an_error_that_names_the_address() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_| Reply::text("<html>log in</html>"));
    let error = fetch("hf:o/r", &config(cache.path(), &server))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/api/models/o/r/") && error.contains("the listing is not understood"),
        "{error}"
    );
}

#[test]
fn latest_replaces_a_file_that_the_hub_has_changed() {
    let cache = tempfile::tempdir().unwrap();
    let changed = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&changed);
    let server = Server::start(move |request| {
        let text = if now.load(Ordering::SeqCst) {
            "M.gguf"
        } else {
            "m.gguf"
        };
        if request.path.starts_with("/api/") {
            Reply::text(listing(&["m.gguf"]).replace(&sha256(b"m.gguf"), &sha256(text.as_bytes())))
        } else {
            Reply::file(request, text.as_bytes())
        }
    });
    let mut config = config(cache.path(), &server);
    assert_eq!(fetch("hf:o/r", &config).unwrap(), "m.gguf");
    changed.store(true, Ordering::SeqCst);
    assert_eq!(fetch("hf:o/r", &config).unwrap(), "m.gguf");
    config.freshness = Freshness::Latest;
    assert_eq!(fetch("hf:o/r", &config).unwrap(), "M.gguf");
    let asked = server.requests().len();
    assert_eq!(fetch("hf:o/r", &config).unwrap(), "M.gguf");
    assert_eq!(
        server.requests().len(),
        asked + 1,
        "an unchanged file costs one question"
    );
}

#[test]
fn what_hugging_face_tools_have_fetched_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("hf/models--o--r");
    let snapshot = repository.join("snapshots").join(COMMIT);
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::create_dir_all(repository.join("refs")).unwrap();
    std::fs::write(repository.join("refs/main"), COMMIT).unwrap();
    std::fs::write(snapshot.join("m-Q8_0.gguf"), "m-Q8_0.gguf").unwrap();
    let server = hub(&["m-Q8_0.gguf", "m-Q4_0.gguf"]);
    let mut config = config(&folder.path().join("own"), &server);
    config.hugging_face_cache = Some(folder.path().join("hf"));
    assert_eq!(fetch("hf:o/r:Q8_0", &config).unwrap(), "m-Q8_0.gguf");
    assert_eq!(server.requests().len(), 0);
    assert_eq!(
        fetch("hf:o/r", &config).unwrap(),
        "m-Q4_0.gguf",
        "the better one for no wish"
    );
    config.freshness = Freshness::Offline;
    config.cache = Some(folder.path().join("empty"));
    assert_eq!(
        fetch("hf:o/r", &config).unwrap(),
        "m-Q8_0.gguf",
        "whatever is here when nobody can be asked"
    );
}

#[test]
fn b234_two_pulls_of_one_repository_at_once_both_succeed() {
    let cache = tempfile::tempdir().unwrap();
    let server = hub(&["m.gguf"]);
    let config = config(cache.path(), &server);
    std::thread::scope(|scope| {
        let pulls: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| fetch("hf:o/r", &config)))
            .collect();
        for pull in pulls {
            assert_eq!(pull.join().unwrap().unwrap(), "m.gguf");
        }
    });
    let files = server
        .requests()
        .iter()
        .filter(|request| request.path.contains("/resolve/"))
        .count();
    assert_eq!(files, 1);
}
