//! A file on its way: `NAME.part` holds what has arrived, `NAME.part.blocks` tells of whom it is a part and the sha256 of
//! each whole block as it arrived. A later run checks the blocks, asks again for those that the disk has spoilt, and goes
//! on behind the last whole one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::lock::beside;
use crate::settle::settle;
use crate::{HubError, Sha256Digest};

/// Bytes per checked block.
pub(crate) const BLOCK: u64 = 1 << 20;
/// A journal longer than this (16 TiB of model) is nonsense.
const LONGEST_JOURNAL: u64 = 1 << 30;

pub(crate) struct Partial {
    target: PathBuf,
    part: PathBuf,
    journal_path: PathBuf,
    file: File,
    journal: File,
    identity: Option<String>,
    len: u64,
    whole: Sha256,
    block: Sha256,
    in_block: u64,
    resumed: bool,
}

impl Partial {
    /// Opens what an earlier run left of `target`, or starts empty. `repair(identity, offset)` is asked for each spoilt block's
    /// bytes; where it gives none, or others than the journal knows, the rest of the file is dropped.
    pub(crate) fn open(
        target: &Path,
        repair: &mut dyn FnMut(&str, u64) -> Option<Vec<u8>>,
    ) -> Result<Self, HubError> {
        let part = beside(target, "part");
        let journal_path = beside(&part, "blocks");
        let open = |path: &Path| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .map_err(HubError::io(path))
        };
        let (file, journal) = (open(&part)?, open(&journal_path)?);
        let mut partial = Self {
            target: target.to_owned(),
            part,
            journal_path,
            file,
            journal,
            identity: None,
            len: 0,
            whole: Sha256::new(),
            block: Sha256::new(),
            in_block: 0,
            resumed: false,
        };
        let mut text = String::new();
        if (&partial.journal)
            .take(LONGEST_JOURNAL)
            .read_to_string(&mut text)
            .is_err()
        {
            text.clear();
        }
        let mut lines = text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'));
        let identity = lines
            .next()
            .filter(|line| !line.is_empty())
            .map(str::to_owned);
        let blocks: Vec<Sha256Digest> = lines.map_while(Sha256Digest::parse).collect();
        if let Err(error) = partial.take_up(identity, &blocks, repair) {
            return Err(HubError::io(&partial.part)(error));
        }
        Ok(partial)
    }

    fn take_up(
        &mut self,
        identity: Option<String>,
        blocks: &[Sha256Digest],
        repair: &mut dyn FnMut(&str, u64) -> Option<Vec<u8>>,
    ) -> io::Result<()> {
        let Some(identity) = identity else {
            return self.restart(None);
        };
        let mut buffer = vec![0; BLOCK as usize];
        let present = self.file.metadata()?.len();
        for (index, expected) in blocks.iter().enumerate() {
            let offset = index as u64 * BLOCK;
            if offset + BLOCK > present {
                break;
            }
            self.file.seek(SeekFrom::Start(offset))?;
            self.file.read_exact(&mut buffer)?;
            if sha256(&buffer) != *expected {
                match repair(&identity, offset) {
                    Some(bytes) if bytes.len() == buffer.len() && sha256(&bytes) == *expected => {
                        self.file.seek(SeekFrom::Start(offset))?;
                        self.file.write_all(&bytes)?;
                        buffer = bytes;
                    }
                    _ => break,
                }
            }
            self.whole.update(&buffer);
            self.len += BLOCK;
        }
        self.file.set_len(self.len)?;
        self.file.seek(SeekFrom::Start(self.len))?;
        self.resumed = self.len > 0;
        self.identity = Some(identity.clone());
        self.write_journal(&identity, &blocks[..(self.len / BLOCK) as usize])
    }

    fn write_journal(&mut self, identity: &str, blocks: &[Sha256Digest]) -> io::Result<()> {
        let blocks: Vec<String> = blocks.iter().map(ToString::to_string).collect();
        let mut text = format!("{identity}\n{}", blocks.join("\n"));
        if !blocks.is_empty() {
            text.push('\n');
        }
        self.journal.set_len(0)?;
        self.journal.seek(SeekFrom::Start(0))?;
        self.journal.write_all(text.as_bytes())
    }

    /// Drops everything. A file without `identity` cannot be recognized and is not resumed by a later run.
    pub(crate) fn restart(&mut self, identity: Option<&str>) -> io::Result<()> {
        self.len = 0;
        self.in_block = 0;
        self.resumed = false;
        self.whole = Sha256::new();
        self.block = Sha256::new();
        self.identity = identity.map(str::to_owned);
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.write_journal(identity.unwrap_or(""), &[])
    }

    /// Bytes that are here.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whose bytes these are, where the sender could tell.
    pub(crate) fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// Whether some of the bytes come from an earlier run.
    pub(crate) fn is_resumed(&self) -> bool {
        self.resumed
    }

    pub(crate) fn path(&self) -> &Path {
        &self.part
    }

    /// Appends.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = (BLOCK - self.in_block).min(bytes.len() as u64) as usize;
            let (now, later) = bytes.split_at(room);
            self.file.write_all(now)?;
            self.whole.update(now);
            self.block.update(now);
            self.in_block += room as u64;
            self.len += room as u64;
            bytes = later;
            if self.in_block == BLOCK {
                let digest = Sha256Digest::from_bytes(self.block.finalize_reset().into());
                self.in_block = 0;
                // The block's bytes go to disk before the journal vouches for them only as far as the system keeps order;
                // a crash that breaks it is what the check at the next start is for.
                self.journal.write_all(format!("{digest}\n").as_bytes())?;
            }
        }
        Ok(())
    }

    /// The digest of everything so far.
    pub(crate) fn sha256(&self) -> Sha256Digest {
        Sha256Digest::from_bytes(self.whole.clone().finalize().into())
    }

    /// Gives the file its final name.
    pub(crate) fn finish(self) -> Result<(), HubError> {
        settle(&self.file).map_err(HubError::io(&self.part))?;
        drop(self.file);
        drop(self.journal);
        std::fs::rename(&self.part, &self.target).map_err(HubError::io(&self.target))?;
        std::fs::remove_file(&self.journal_path).map_err(HubError::io(&self.journal_path))
    }

    /// Deletes what has arrived.
    pub(crate) fn discard(self) -> Result<(), HubError> {
        drop(self.file);
        drop(self.journal);
        std::fs::remove_file(&self.part).map_err(HubError::io(&self.part))?;
        std::fs::remove_file(&self.journal_path).map_err(HubError::io(&self.journal_path))
    }
}

fn sha256(bytes: &[u8]) -> Sha256Digest {
    Sha256Digest::from_bytes(Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 3 * BLOCK as usize + 1000;

    fn bytes() -> Vec<u8> {
        (0..LEN).map(|i| (i * 31 + i / 977) as u8).collect()
    }

    fn left_over(folder: &Path) -> PathBuf {
        let target = folder.join("m.gguf");
        let mut partial = Partial::open(&target, &mut |_, _| None).unwrap();
        partial.restart(Some("etag:a")).unwrap();
        partial.write(&bytes()).unwrap();
        target
    }

    #[test]
    fn what_an_earlier_run_left_is_taken_up_behind_its_last_whole_block() {
        let folder = tempfile::tempdir().unwrap();
        let target = left_over(folder.path());
        let mut partial = Partial::open(&target, &mut |_, _| panic!("nothing to repair")).unwrap();
        assert_eq!(
            (partial.len(), partial.identity(), partial.is_resumed()),
            (3 * BLOCK, Some("etag:a"), true)
        );
        partial.write(&bytes()[3 * BLOCK as usize..]).unwrap();
        assert_eq!(partial.sha256(), sha256(&bytes()));
        partial.finish().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), bytes());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    fn spoil(target: &Path, at: u64) {
        let mut file = OpenOptions::new()
            .write(true)
            .open(beside(target, "part"))
            .unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(b"spoilt").unwrap();
    }

    #[test]
    fn b236_only_a_spoilt_block_is_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let target = left_over(folder.path());
        spoil(&target, BLOCK + 5);
        let mut asked = Vec::new();
        let mut partial = Partial::open(&target, &mut |identity, offset| {
            asked.push((identity.to_owned(), offset));
            Some(bytes()[offset as usize..][..BLOCK as usize].to_vec())
        })
        .unwrap();
        assert_eq!(partial.len(), 3 * BLOCK);
        partial.write(&bytes()[3 * BLOCK as usize..]).unwrap();
        assert_eq!(partial.sha256(), sha256(&bytes()));
        assert_eq!(asked, [("etag:a".to_owned(), BLOCK)]);
    }

    #[test]
    fn a_spoilt_block_that_nobody_repairs_drops_what_follows() {
        let folder = tempfile::tempdir().unwrap();
        let target = left_over(folder.path());
        spoil(&target, BLOCK + 5);
        let partial = Partial::open(&target, &mut |_, _| Some(vec![0; BLOCK as usize])).unwrap();
        assert_eq!(partial.len(), BLOCK);
    }

    #[test]
    fn a_journal_of_nonsense_starts_over() {
        for text in ["", "\n", "etag:a", "etag:a\n../../etc\n", "etag:a\nshort"] {
            let folder = tempfile::tempdir().unwrap();
            let target = left_over(folder.path());
            std::fs::write(beside(&target, "part.blocks"), text).unwrap();
            assert_eq!(
                Partial::open(&target, &mut |_, _| None).unwrap().len(),
                0,
                "{text:?}"
            );
        }
    }
}
