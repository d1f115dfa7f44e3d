//! What the reader takes, and what it refuses with which words.

mod raw;

use puna_gguf::{Array, Gguf, GgufError, Value};
use raw::{ARRAY, BOOL, Raw, STRING, TYPE_F32, TYPE_Q4_0, U8, sample};

#[test]
fn every_value_type_is_read() {
    for version in [2, 3] {
        let mut file = sample();
        file.version = version;
        let gguf = file.open().unwrap();
        assert_eq!(gguf.version(), version);
        let m = gguf.metadata();
        assert_eq!(m.len(), 16);
        for (key, value) in [
            ("u8", Value::U8(200)),
            ("i8", Value::I8(-1)),
            ("u16", Value::U16(60_000)),
            ("i16", Value::I16(-2)),
            ("u32", Value::U32(4_000_000_000)),
            ("i32", Value::I32(-3)),
            ("f32", Value::F32(1.5)),
            ("bool", Value::Bool(true)),
            ("u64", Value::U64(u64::MAX)),
            ("i64", Value::I64(i64::MIN)),
            ("f64", Value::F64(-0.25)),
            ("general.architecture", "llama".into()),
        ] {
            assert_eq!(m.get(key), Some(&value), "{key}");
        }
        assert_eq!(m.get("absent"), None);
        assert_eq!(
            m.iter().next(),
            Some(("general.architecture", &"llama".into()))
        );
        let tokens = m.strings("tokens").unwrap().unwrap();
        assert_eq!(
            tokens.iter().collect::<Vec<_>>(),
            ["<unk>".as_bytes(), b"", "▁the".as_bytes()]
        );
        assert_eq!(
            (tokens.len(), tokens.get(1), tokens.get(3)),
            (3, Some(&b""[..]), None)
        );
        assert_eq!(m.bools("flags").unwrap(), Some(vec![false, true]));
        assert_eq!(m.integers("numbers").unwrap(), Some(vec![7, -1]));
    }
}

#[test]
fn arrays_in_arrays_may_differ_in_type_and_length() {
    let gguf = sample().open().unwrap();
    let Some(Array::Arrays(nested)) = gguf.metadata().array("nested").unwrap() else {
        panic!("not an array of arrays");
    };
    assert_eq!(nested.len(), 3);
    assert_eq!(nested[0], Array::from(&[1u32, 2][..]));
    assert_eq!(nested[1].iter().collect::<Vec<_>>(), [Value::from("x")]);
    assert_eq!(nested[2].get(0), Some(Value::from(&[] as &[u8])));
}

#[test]
fn tensors_may_lie_in_any_order_and_leave_gaps() {
    let gguf = sample().open().unwrap();
    let names: Vec<_> = gguf.tensors().iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["a.weight", "b.weight", "scalar"]);
    let a = gguf.tensor("a.weight").unwrap();
    assert_eq!(
        (a.dims.as_slice(), a.row_len(), a.rows(), a.elements()),
        (&[4, 2][..], 4, 2, 8)
    );
    assert_eq!(gguf.data(a), (0..32).collect::<Vec<u8>>());
    let b = gguf.tensor("b.weight").unwrap();
    assert_eq!(
        (b.byte_len, gguf.data(b)),
        (18, &(64..82).collect::<Vec<u8>>()[..])
    );
    let scalar = gguf.tensor("scalar").unwrap();
    assert_eq!(
        (scalar.elements(), gguf.data(scalar)),
        (1, &[32, 33, 34, 35][..])
    );
    assert_eq!(gguf.tensor("c.weight"), None);
    assert_eq!(gguf.files()[0].byte_len(), b.file_offset() + 18);
}

#[test]
fn shared_data_outlives_the_model() {
    let gguf = sample().open().unwrap();
    let bytes = gguf.shared_data(gguf.tensor("b.weight").unwrap()).unwrap();
    drop(gguf);
    assert_eq!(&*bytes, (64..82).collect::<Vec<u8>>());
}

#[test]
fn a_tensor_of_another_model_gives_no_bytes_outside_of_this_one() {
    let large = Raw::new()
        .tensor("w", &[1024], TYPE_F32, 0)
        .data(4096)
        .open()
        .unwrap();
    let small = Raw::new()
        .tensor("w", &[8], TYPE_F32, 0)
        .data(32)
        .open()
        .unwrap();
    let mut tensor = large.tensors()[0].clone();
    assert_eq!(small.data(&tensor), b"");
    assert!(small.shared_data(&tensor).is_none());
    tensor.byte_len = usize::MAX;
    assert_eq!(large.data(&tensor).len(), 4096);
}

#[test]
fn a_file_of_metadata_alone_needs_no_padding() {
    let gguf = Raw::new().u32("n", 1).open().unwrap();
    assert!(gguf.tensors().is_empty());
    assert_eq!(gguf.metadata().u32("n").unwrap(), Some(1));
}

#[test]
fn types_that_no_kernel_knows_yet_are_opened() {
    let gguf = Raw::new()
        .tensor("w", &[256], 16, 0)
        .data(66)
        .open()
        .unwrap();
    assert_eq!(
        (
            gguf.tensors()[0].element_type.name(),
            gguf.tensors()[0].byte_len
        ),
        ("IQ2_XXS", 66)
    );
}

/// What it is, the file, and what its error has to say.
type Refused = Vec<(&'static str, Raw, &'static str)>;

fn refused_headers() -> Refused {
    let version = |version| Raw {
        version,
        ..sample()
    };
    vec![
        ("version 1", version(1), "GGUF version 1 is not supported"),
        (
            "version 4",
            version(4),
            "GGUF version 4 is not supported (versions 2 and 3 are)",
        ),
        ("version 0", version(0), "GGUF version 0 is not supported"),
        (
            "big endian",
            version(3u32.swap_bytes()),
            "a big-endian GGUF file (version 3)",
        ),
        (
            "ggml",
            Raw {
                magic: *b"tjgg",
                ..sample()
            },
            "a GGML file, older than GGUF",
        ),
        (
            "a zip file",
            Raw {
                magic: *b"PK\x03\x04",
                ..sample()
            },
            "it begins with \"PK\\x03\\x04\"",
        ),
    ]
}

fn refused_entries() -> Refused {
    vec![
        (
            "key not UTF-8",
            Raw::new().entry(b"\xff", U8, &[1]),
            "metadata entry 0: the key is not UTF-8",
        ),
        (
            "long key",
            Raw::new().entry(&[b'k'; 65_536], U8, &[1]),
            "the key is longer than 65535 bytes",
        ),
        (
            "value type",
            Raw::new().entry(b"k", 13, &[1]),
            "metadata entry 0 `k`: value type 13 does not exist",
        ),
        (
            "element type",
            Raw::new().array("k", 99, 0, &[]),
            "metadata entry 0 `k`: value type 99 does not exist",
        ),
        (
            "boolean",
            Raw::new().entry(b"k", BOOL, &[2]),
            "metadata entry 0 `k`: a boolean is stored as 2",
        ),
        (
            "booleans",
            Raw::new().array("k", BOOL, 2, &[1, 9]),
            "a boolean is stored as 9",
        ),
        (
            "array count",
            Raw::new().array("k", U8, 1 << 61, &[]),
            "the file ends inside metadata entry 0 `k`",
        ),
        (
            "array count wraps",
            Raw::new().array("k", 10, 1 << 61, &[]),
            "the file ends inside metadata entry 0 `k`",
        ),
        (
            "strings count",
            Raw::new().array("k", STRING, u64::MAX, &[]),
            "the file ends inside metadata entry 0 `k`",
        ),
        (
            "arrays count",
            Raw::new().array("k", ARRAY, u64::MAX, &[]),
            "the file ends inside metadata entry 0 `k`",
        ),
        (
            "architecture",
            Raw::new().u32("general.architecture", 1),
            "`general.architecture`: found u32, expected string",
        ),
        (
            "split count",
            Raw::new().string("split.count", "2"),
            "`split.count`: found string, expected an integer",
        ),
        (
            "a part alone",
            Raw::new().u32("split.count", 3).u32("split.no", 1),
            "this is file 2 of 3 of a split model",
        ),
    ]
}

fn refused_tensors() -> Refused {
    let f32 = |name, offset| Raw::new().tensor(name, &[8], TYPE_F32, offset);
    vec![
        (
            "no name",
            Raw::new().tensor("", &[8], TYPE_F32, 0),
            "tensor 0: the name is empty",
        ),
        (
            "one name twice",
            f32("w", 0).tensor("w", &[8], TYPE_F32, 32).data(64),
            "tensor `w` occurs twice",
        ),
        (
            "five dimensions",
            Raw::new().tensor("w", &[1; 5], TYPE_F32, 0),
            "tensor `w`: 5 dimensions, expected at most 4",
        ),
        (
            "unknown type",
            Raw::new().tensor("w", &[8], 1000, 0),
            "tensor `w`: element type 1000 is unknown",
        ),
        (
            "retired type",
            Raw::new().tensor("w", &[8], 31, 0),
            "tensor `w`: element type 31 is unknown (Q4_0_4_4",
        ),
        (
            "half a block",
            Raw::new().tensor("w", &[33], TYPE_Q4_0, 0),
            "`w`: a row of shape [33] has 33 elements, expected a multiple of 32 for type Q4_0",
        ),
        (
            "overflow",
            Raw::new().tensor("w", &[1 << 32, 1 << 32], TYPE_F32, 0),
            "`w`: shape [4294967296, 4294967296] is too large",
        ),
        (
            "misaligned",
            f32("w", 4).data(64),
            "tensor `w`: offset 4 is not a multiple of the alignment 32",
        ),
        (
            "overlap",
            f32("b", 32).tensor("a", &[16], TYPE_F32, 0).data(64),
            "tensors `a` and `b` overlap: the first ends at byte 64 of the data, the second begins at 32",
        ),
        (
            "same place",
            f32("a", 0).tensor("b", &[8], TYPE_F32, 0).data(64),
            "tensors `a` and `b` overlap",
        ),
        (
            "outside",
            f32("w", 1 << 40).data(64),
            "the file ends inside tensor `w` [8] F32: expected at least 1099511627",
        ),
        (
            "end of data",
            f32("w", 0).data(31),
            "the file ends inside tensor `w` [8] F32",
        ),
        (
            "offset wraps",
            f32("w", 0u64.wrapping_sub(32)).data(64),
            "tensor `w`: 32 bytes at offset 18446744073709551584 lie outside of any file",
        ),
    ]
}

#[test]
fn what_is_wrong_is_refused_by_name() {
    for (what, file, words) in [refused_headers(), refused_entries(), refused_tensors()].concat() {
        let text = file.error().to_string();
        assert!(text.contains(words), "{what}: {words:?} is not in {text:?}");
    }
}

#[test]
fn files_of_other_kinds_are_told_apart() {
    for (bytes, words) in [
        (&b""[..], "the file is empty"),
        (b"<!DOCTYPE html>", "it looks like a web page"),
        (
            b"version https://git-lfs.github.com/spec/v1",
            "a Git LFS pointer",
        ),
        (b"\x10\0\0\0\0\0\0\0{\"a\":1}", "a safetensors file"),
        (b"FUGG", "it begins with \"FUGG\""),
        (b"GG", "the file ends inside the header"),
    ] {
        let text = Gguf::from_bytes(bytes.to_vec()).unwrap_err().to_string();
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }
}

#[test]
fn errors_of_opening_name_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent.gguf");
    let error = Gguf::open(&absent).unwrap_err();
    assert!(
        matches!(&error, GgufError::Io { path, .. } if *path == absent),
        "{error}"
    );
    let error = Gguf::open(folder.path()).unwrap_err();
    assert!(matches!(&error, GgufError::NotAFile { .. }), "{error}");
    let empty = folder.path().join("empty.gguf");
    std::fs::write(&empty, b"").unwrap();
    let error = Gguf::open(&empty).unwrap_err();
    assert!(
        error.to_string().contains("empty.gguf: not a GGUF file"),
        "{error}"
    );
}

#[test]
fn a_hostile_name_cannot_write_to_the_terminal() {
    let text = Raw::new()
        .tensor("\u{1b}[2J", &[0], TYPE_F32, 0)
        .error()
        .to_string();
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn an_opened_model_can_be_shared_between_threads() {
    let gguf = std::sync::Arc::new(sample().open().unwrap());
    let other = std::sync::Arc::clone(&gguf);
    let sum = std::thread::spawn(move || {
        other
            .tensors()
            .iter()
            .map(|t| other.data(t).len())
            .sum::<usize>()
    });
    assert_eq!(
        sum.join().unwrap(),
        gguf.tensors().iter().map(|t| t.byte_len).sum::<usize>()
    );
}
