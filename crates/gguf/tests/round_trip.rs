//! What is written is read back identical.

mod raw;

use std::fs;
use std::io;

use proptest::collection::vec;
use proptest::prelude::*;
use puna_gguf::{Array, ElementType, Gguf, GgufError, GgufWriter, StringArray, Value};

fn written(writer: GgufWriter<'_>) -> Vec<u8> {
    let mut file = Vec::new();
    let len = writer.write_to(&mut file).unwrap();
    assert_eq!(len, file.len() as u64);
    file
}

fn scalars() -> impl Strategy<Value = Array> {
    prop_oneof![
        vec(any::<u8>(), 0..9).prop_map(|v| Array::from(&v[..])),
        vec(any::<i8>(), 0..9).prop_map(|v| Array::from(&v[..])),
        vec(any::<u16>(), 0..9).prop_map(|v| Array::from(&v[..])),
        vec(any::<i16>(), 0..9).prop_map(|v| Array::from(&v[..])),
        vec(any::<u32>(), 0..9).prop_map(|v| Array::from(&v[..])),
        vec(any::<i32>(), 0..9).prop_map(|v| Array::from(&v[..])),
        vec(any::<u64>(), 0..9).prop_map(|v| Array::from(&v[..])),
        vec(any::<i64>(), 0..9).prop_map(|v| Array::from(&v[..])),
        vec(any::<f32>(), 0..9).prop_map(|v| Array::from(&v[..])),
        vec(any::<f64>(), 0..9).prop_map(|v| Array::from(&v[..])),
        vec(any::<bool>(), 0..9).prop_map(|v| Array::from(&v[..])),
    ]
}

fn array() -> impl Strategy<Value = Array> {
    let strings = vec(vec(any::<u8>(), 0..20), 0..9)
        .prop_map(|strings| Array::Strings(strings.into_iter().collect::<StringArray>()));
    let flat = prop_oneof![scalars(), strings];
    flat.prop_recursive(4, 32, 4, |inner| vec(inner, 0..4).prop_map(Array::Arrays))
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u8>().prop_map(Value::U8),
        any::<i8>().prop_map(Value::I8),
        any::<u16>().prop_map(Value::U16),
        any::<i16>().prop_map(Value::I16),
        any::<u32>().prop_map(Value::U32),
        any::<i32>().prop_map(Value::I32),
        any::<u64>().prop_map(Value::U64),
        any::<i64>().prop_map(Value::I64),
        any::<f32>().prop_map(Value::F32),
        any::<f64>().prop_map(Value::F64),
        any::<bool>().prop_map(Value::Bool),
        any::<String>().prop_map(Value::from),
        array().prop_map(Value::Array),
    ]
}

/// Type, dimensions in blocks and rows, and a seed for the bytes.
fn tensor() -> impl Strategy<Value = (ElementType, Vec<u64>)> {
    let types = (0..ElementType::ALL.len()).prop_map(|i| ElementType::ALL[i]);
    (types, vec(1..4u64, 1..=4)).prop_map(|(element_type, mut dims)| {
        dims[0] *= element_type.block_len() as u64;
        (element_type, dims)
    })
}

fn byte_len((element_type, dims): &(ElementType, Vec<u64>)) -> usize {
    let rows: u64 = dims[1..].iter().product();
    element_type.row_bytes(dims[0] as usize).unwrap() * rows as usize
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back_identical(
        version in 2..=3u32,
        alignment in proptest::option::of(0..9u32),
        entries in vec(("[a-z.]{1,12}", value()), 0..8),
        tensors in vec(tensor(), 0..5),
        seed in any::<u8>(),
    ) {
        let mut writer = GgufWriter::new();
        writer.version(version).unwrap();
        if let Some(power) = alignment {
            writer.alignment(1 << power).unwrap();
        }
        for (key, value) in &entries {
            writer.set(key, value.clone()).unwrap();
        }
        let metadata = writer.metadata().clone();
        let data = |i: usize, len: usize| (0..len).map(|k| (k + i) as u8 ^ seed).collect::<Vec<u8>>();
        for (i, tensor) in tensors.iter().enumerate() {
            let bytes = data(i, byte_len(tensor));
            if i % 2 == 0 {
                writer.tensor(&format!("t{i}"), &tensor.1, tensor.0, bytes).unwrap();
            } else {
                writer.stream(&format!("t{i}"), &tensor.1, tensor.0, move |out| out.write_all(&bytes)).unwrap();
            }
        }
        let file = written(writer);

        let gguf = Gguf::from_bytes(file.clone()).unwrap();
        prop_assert_eq!(gguf.version(), version);
        prop_assert_eq!(gguf.alignment(), alignment.map_or(32, |power| 1 << power));
        // As text: a NaN is not equal to itself.
        prop_assert_eq!(format!("{:?}", gguf.metadata()), format!("{metadata:?}"));
        prop_assert_eq!(gguf.tensors().len(), tensors.len());
        for (i, (tensor, info)) in tensors.iter().zip(gguf.tensors()).enumerate() {
            prop_assert_eq!((&info.name, &info.dims, info.element_type), (&format!("t{i}"), &tensor.1, tensor.0));
            prop_assert_eq!(gguf.data(info), data(i, byte_len(tensor)));
        }
        prop_assert!(written(GgufWriter::from_gguf(&gguf).unwrap()) == file);
    }

    #[test]
    fn arbitrary_bytes_after_the_magic_are_an_answer_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Gguf::from_bytes([&b"GGUF\x03\0\0\0"[..], &bytes].concat());
    }
}

#[test]
fn a_file_made_by_hand_is_written_again_as_it_was() {
    // The tensors of the sample are not in the order of their data, so only the entries are compared.
    let mut sample = raw::sample();
    sample.tensors.clear();
    sample.data.clear();
    let bytes = sample.bytes();
    let gguf = Gguf::from_bytes(bytes.clone()).unwrap();
    let again = written(GgufWriter::from_gguf(&gguf).unwrap());
    assert_eq!(again[..bytes.len()], bytes);
    assert!(again[bytes.len()..].iter().all(|&b| b == 0) && again.len().is_multiple_of(32));
}

#[test]
fn the_writer_refuses_what_the_reader_would_refuse() {
    let mut w = GgufWriter::new();
    w.tensor("t", &[8], ElementType::F32, vec![0; 32]).unwrap();
    let refused = |result: Result<&mut GgufWriter<'_>, GgufError>, words: &str| {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    };
    let f32 = ElementType::F32;
    refused(
        w.tensor("t", &[8], f32, vec![0; 32]),
        "tensor `t` occurs twice",
    );
    refused(
        w.tensor("u", &[8], f32, vec![0; 31]),
        "tensor `u`: 31 bytes of data, expected 32",
    );
    refused(
        w.tensor("u", &[8, 0], f32, vec![]),
        "dimension 1 of shape [8, 0] is 0",
    );
    refused(
        w.tensor("u", &[1; 5], f32, vec![0; 4]),
        "5 dimensions, expected at most 4",
    );
    refused(
        w.tensor("u", &[33], ElementType::Q8_0, vec![]),
        "expected a multiple of 32",
    );
    refused(
        w.tensor("", &[8], f32, vec![0; 32]),
        "tensor 1: the name is empty",
    );
    refused(
        w.tensor(&"u".repeat(64), &[8], f32, vec![0; 32]),
        "the name is longer than 63 bytes",
    );
    refused(w.set("", 1u32), "metadata entry 0: the key is empty");
    refused(
        w.set("general.alignment", 24u32),
        "24 is not usable, expected a power of two",
    );
    refused(
        w.set("general.alignment", "32"),
        "found string, expected u32",
    );
    refused(
        w.set("general.architecture", 1u32),
        "found u32, expected string",
    );
    refused(
        w.set("split.count", 2u16),
        "`split.count` is set by the writer itself",
    );
    refused(w.version(1), "GGUF version 1 is not supported");
    let mut deep = Array::from(&[1u8][..]);
    for _ in 0..8 {
        deep = Array::Arrays(vec![deep]);
    }
    refused(w.set("deep", deep), "arrays are nested more than 8 deep");
    assert_eq!(
        written(w).len(),
        64 + 32,
        "what was refused must not be written"
    );
}

#[test]
fn a_stream_of_the_wrong_length_is_an_error_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    for len in [31, 33] {
        let mut writer = GgufWriter::new();
        writer
            .stream("t", &[8], ElementType::F32, move |out| {
                out.write_all(&vec![0; len])
            })
            .unwrap();
        let error = writer.write_file(&path).unwrap_err();
        assert!(
            matches!(error.root(), GgufError::DataLength { expected: 32, .. }),
            "{error}"
        );
    }
    let mut writer = GgufWriter::new();
    writer
        .stream("t", &[8], ElementType::F32, |_| {
            Err(io::Error::other("no more"))
        })
        .unwrap();
    assert!(
        writer
            .write_file(&path)
            .unwrap_err()
            .to_string()
            .contains("no more")
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_model_can_be_written_over_the_file_that_it_is_read_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    fs::write(&path, raw::sample().bytes()).unwrap();
    let gguf = Gguf::open(&path).unwrap();
    let mut writer = GgufWriter::from_gguf(&gguf).unwrap();
    writer.set("general.name", "renamed").unwrap();
    writer.write_file(&path).unwrap();
    let again = Gguf::open(&path).unwrap();
    assert_eq!(
        again.metadata().str("general.name").unwrap(),
        Some("renamed")
    );
    for tensor in gguf.tensors() {
        assert_eq!(
            gguf.data(tensor),
            again.data(again.tensor(&tensor.name).unwrap())
        );
    }
}
