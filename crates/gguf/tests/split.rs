//! Split sets on the disk.

mod raw;

use std::fs;
use std::path::{Path, PathBuf};

use puna_gguf::{ElementType, Gguf, GgufError, GgufWriter, SplitLimit};
use raw::{I32, Raw, TYPE_F32};

const U16: u32 = 2;

/// File `number` (from 0) of `count`, with one tensor.
fn part(number: u16, count: u16, total: i32) -> Raw {
    let file = Raw::new();
    let file = if number == 0 {
        file.string("general.architecture", "llama")
    } else {
        file
    };
    file.entry(b"split.no", U16, &number.to_le_bytes())
        .entry(b"split.count", U16, &count.to_le_bytes())
        .entry(b"split.tensors.count", I32, &total.to_le_bytes())
        .tensor(&format!("t{number}"), &[8], TYPE_F32, 0)
        .data(32)
}

fn write_set(folder: &Path, parts: &[Raw]) -> Vec<PathBuf> {
    let count = parts.len();
    let paths = parts.iter().zip(1..).map(|(file, number)| {
        let path = folder.join(format!("m-{number:05}-of-{count:05}.gguf"));
        fs::write(&path, file.bytes()).unwrap();
        path
    });
    paths.collect()
}

#[test]
fn any_file_of_a_set_opens_the_whole_set() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_set(
        folder.path(),
        &[part(0, 3, 3), part(1, 3, 3), part(2, 3, 3)],
    );
    for path in &paths {
        let gguf = Gguf::open(path).unwrap();
        assert_eq!(
            gguf.metadata().str("general.architecture").unwrap(),
            Some("llama")
        );
        let found: Vec<_> = gguf
            .files()
            .iter()
            .map(|file| file.path().unwrap())
            .collect();
        assert_eq!(found, paths);
        for (number, tensor) in gguf.tensors().iter().enumerate() {
            assert_eq!(
                (tensor.name.clone(), tensor.file_index()),
                (format!("t{number}"), number)
            );
            assert_eq!(gguf.data(tensor), (0..32).collect::<Vec<u8>>());
        }
        assert_eq!(gguf.tensors().len(), 3);
    }
}

#[test]
fn a_missing_file_is_named_before_any_other_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_set(
        folder.path(),
        &[part(0, 3, 3), part(1, 3, 3), part(2, 3, 3)],
    );
    fs::remove_file(&paths[1]).unwrap();
    // Were this one read, the error would be another.
    fs::write(&paths[0], b"no GGUF file").unwrap();
    for path in &paths {
        let error = Gguf::open(path).unwrap_err();
        assert!(
            matches!(&error, GgufError::MissingParts { missing, count: 3 } if missing == &paths[1..2]),
            "{error}"
        );
        assert!(
            error.to_string().contains("m-00002-of-00003.gguf"),
            "{error}"
        );
    }
}

#[test]
fn a_part_under_another_name_says_how_to_rename_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, part(1, 3, 3).bytes()).unwrap();
    let error = Gguf::open(&path).unwrap_err();
    assert!(
        matches!(
            error.root(),
            GgufError::UnknownSplitName {
                number: 2,
                count: 3
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("NAME-00002-of-00003.gguf"),
        "{error}"
    );
}

#[test]
fn files_that_do_not_belong_together_are_refused_by_name() {
    let stray = Raw::new().tensor("t1", &[8], TYPE_F32, 0).data(32);
    for (what, parts, file, words) in [
        (
            "order",
            [part(1, 2, 2), part(0, 2, 2)],
            "m-00001",
            "`split.no` is 1, expected 0",
        ),
        (
            "count",
            [part(0, 2, 2), part(1, 3, 2)],
            "m-00002",
            "`split.count` is 3, expected 2",
        ),
        (
            "no keys",
            [part(0, 2, 2), stray],
            "m-00002",
            "`split.count` is absent, expected 2",
        ),
        (
            "cut",
            [part(0, 2, 2), part(1, 2, 2).data(30)],
            "m-00002",
            "the file ends inside tensor `t1`",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let paths = write_set(folder.path(), &parts);
        let text = Gguf::open(&paths[0]).unwrap_err().to_string();
        assert!(
            text.contains(file) && text.contains(words),
            "{what}: {text:?}"
        );
    }
    let set = |parts: [Raw; 2]| {
        Gguf::from_split_bytes(parts.iter().map(Raw::bytes).collect())
            .unwrap_err()
            .to_string()
    };
    let text = set([part(0, 2, 5), part(1, 2, 5)]);
    assert!(
        text.contains("`split.tensors.count` is 5, expected 2"),
        "{text}"
    );
    let text = set([part(0, 2, 2), part(1, 2, 12)]);
    assert!(
        text.contains("`split.tensors.count` is 12, expected 2"),
        "{text}"
    );
    let text = set([
        part(0, 2, 3),
        part(1, 2, 3).tensor("t0", &[8], TYPE_F32, 32).data(64),
    ]);
    assert!(text.contains("tensor `t0` occurs twice"), "{text}");
}

/// Five tensors of 40 bytes, 64 with padding.
fn model() -> GgufWriter<'static> {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").unwrap();
    for i in 0..5u8 {
        let data = vec![i; 40];
        writer
            .tensor(&format!("t{i}"), &[5, 2], ElementType::F32, data)
            .unwrap();
    }
    writer
}

#[test]
fn a_split_model_is_read_back_as_the_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut whole = Vec::new();
    model().write_to(&mut whole).unwrap();
    for (what, limit, tensors) in [
        ("bytes", SplitLimit::bytes(128), vec![2, 2, 1]),
        ("less than a tensor", SplitLimit::bytes(1), vec![1; 5]),
        ("tensors", SplitLimit::tensors(3), vec![3, 2]),
        (
            "metadata alone",
            SplitLimit::tensors(4).metadata_alone(),
            vec![0, 4, 1],
        ),
        ("all in one", SplitLimit::bytes(u64::MAX), vec![5]),
    ] {
        let prefix = folder.path().join(what).join("m");
        fs::create_dir(folder.path().join(what)).unwrap();
        let paths = model().write_split(&prefix, &limit).unwrap();
        assert_eq!(
            fs::read_dir(folder.path().join(what)).unwrap().count(),
            paths.len()
        );
        let gguf = Gguf::open(paths.last().unwrap()).unwrap();
        let mut found = vec![0; gguf.files().len()];
        gguf.tensors()
            .iter()
            .for_each(|t| found[t.file_index()] += 1);
        assert_eq!(found, tensors, "{what}");
        let mut merged = Vec::new();
        GgufWriter::from_gguf(&gguf)
            .unwrap()
            .write_to(&mut merged)
            .unwrap();
        assert!(merged == whole, "{what}: merged, the model is another");
    }
}

#[test]
fn every_file_of_a_set_keeps_the_alignment() {
    let mut writer = model();
    writer.alignment(128).unwrap();
    let parts = writer.split(&SplitLimit::tensors(2)).unwrap();
    let files = parts.into_iter().map(|part| {
        let mut file = Vec::new();
        part.write_to(&mut file).unwrap();
        file
    });
    let gguf = Gguf::from_split_bytes(files.collect()).unwrap();
    assert_eq!(gguf.files().len(), 3);
    assert!(
        gguf.tensors()
            .iter()
            .all(|t| t.file_offset().is_multiple_of(128))
    );
    assert_eq!(gguf.data(gguf.tensor("t4").unwrap()), [4; 40]);
}

#[test]
fn a_limit_of_nothing_is_refused() {
    for limit in [SplitLimit::bytes(0), SplitLimit::tensors(0)] {
        assert!(matches!(
            model().split(&limit),
            Err(GgufError::BadSplit { .. })
        ));
    }
}
