//! Files that made other programs crash, hang or read outside of their buffers, one test each.

mod raw;

use puna_gguf::{Gguf, GgufError, GgufWriter};
use raw::{ARRAY, I32, Raw, STRING, TYPE_F32, U8, U64};

#[test]
fn an_empty_key_is_an_error_with_the_position_of_the_entry() {
    let file = Raw::new().entry(b"", U8, &[7]);
    assert_eq!(file.bytes().len(), 37);
    assert_eq!(
        file.error().to_string(),
        "metadata entry 0: the key is empty"
    );
}

#[test]
fn scores_of_single_bytes_are_not_read_as_floats() {
    let gguf = Raw::new()
        .array("tokenizer.ggml.scores", U8, 4, &[1, 2, 3, 4])
        .open()
        .unwrap();
    let error = gguf.metadata().floats("tokenizer.ggml.scores").unwrap_err();
    assert!(matches!(error, GgufError::WrongType { .. }));
    assert_eq!(
        error.to_string(),
        "metadata key `tokenizer.ggml.scores`: found array of u8, expected array of f32 or f64"
    );
}

#[test]
fn a_dimension_of_2_to_the_42_names_the_tensor_and_its_shape() {
    let second = (1 << 42) + 1;
    let error = Raw::new()
        .tensor("w", &[64, second], TYPE_F32, 0)
        .data(256)
        .error();
    assert!(matches!(error, GgufError::Truncated { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("tensor `w` [64, 4398046511105] F32"),
        "{text}"
    );
    let error = Raw::new()
        .tensor("w", &[1 << 40, second], TYPE_F32, 0)
        .data(256)
        .error();
    assert_eq!(
        error.to_string(),
        "tensor `w`: shape [1099511627776, 4398046511105] is too large (its size overflows)"
    );
}

#[test]
fn two_tensors_whose_sizes_together_wrap_are_an_error() {
    let error = Raw::new()
        .tensor("first", &[1 << 61], TYPE_F32, 0)
        .tensor("second", &[1 << 61], TYPE_F32, 1 << 63)
        .data(32)
        .error();
    assert!(
        matches!(&error, GgufError::OffsetTooLarge { tensor, .. } if tensor == "second"),
        "{error}"
    );
}

#[test]
fn a_tensor_count_beyond_the_file_is_an_error_before_anything_is_reserved() {
    for count in [u64::MAX, i64::MAX as u64 / 48, 1 << 32, 5] {
        let mut file = Raw::new().tensor("w", &[8], TYPE_F32, 0).data(32);
        file.tensor_count = Some(count);
        let error = file.error();
        assert!(
            matches!(error, GgufError::CountTooLarge { what: "tensors", count: c, .. } if c == count),
            "{error}"
        );
    }
}

#[test]
fn a_zero_dimension_is_an_error_that_names_it() {
    let error = Raw::new().tensor("w", &[4, 0], TYPE_F32, 0).error();
    assert_eq!(
        error.to_string(),
        "tensor `w`: dimension 1 of shape [4, 0] is 0, expected at least 1"
    );
    let error = Raw::new().tensor("w", &[0], TYPE_F32, 0).error();
    assert!(
        matches!(error, GgufError::ZeroDimension { dimension: 0, .. }),
        "{error}"
    );
}

#[test]
fn an_alignment_of_another_integer_type_is_taken_and_an_array_is_an_error() {
    let mut file = Raw::new()
        .entry(b"general.alignment", I32, &64i32.to_le_bytes())
        .tensor("w", &[8], TYPE_F32, 64)
        .data(96);
    file.alignment = 64;
    let gguf = file.open().unwrap();
    assert_eq!(gguf.alignment(), 64);
    let w = gguf.tensor("w").unwrap();
    assert_eq!(gguf.data(w), (64..96).collect::<Vec<u8>>());

    let error = Raw::new()
        .array("general.alignment", raw::U32, 1, &[32, 0, 0, 0])
        .error();
    assert_eq!(
        error.to_string(),
        "metadata key `general.alignment`: found array of u32, expected u32"
    );
}

#[test]
fn an_alignment_that_is_no_power_of_two_is_an_error_with_the_reason() {
    for (value_type, bytes, found) in [
        (raw::U32, 0u64, "0"),
        (raw::U32, 24, "24"),
        (I32, u64::MAX, "-1"),
        (U64, 1 << 32, "4294967296"),
    ] {
        let bytes = bytes.to_le_bytes();
        let len = if value_type == U64 { 8 } else { 4 };
        let error = Raw::new()
            .entry(b"general.alignment", value_type, &bytes[..len])
            .error();
        assert!(
            matches!(&error, GgufError::BadAlignment { found: f } if f == found),
            "{error}"
        );
        assert!(
            error.to_string().contains("expected a power of two"),
            "{error}"
        );
    }
}

#[test]
fn a_string_that_claims_a_gibibyte_is_an_error() {
    let mut value = (1u64 << 30).to_le_bytes().to_vec();
    value.extend(b"short");
    let error = Raw::new()
        .string("a", "b")
        .entry(b"big", STRING, &value)
        .error();
    assert!(
        matches!(&error, GgufError::Truncated { place, .. } if place == "metadata entry 1 `big`"),
        "{error}"
    );
}

#[test]
fn a_metadata_count_of_2_to_the_60_is_an_error() {
    let mut file = Raw::new();
    file.entry_count = Some(1 << 60);
    assert_eq!(
        file.error().to_string(),
        "the header announces 1152921504606846976 metadata entries, more than the 0 bytes after it can hold"
    );
}

#[test]
fn a_key_that_occurs_twice_is_an_error_that_names_it() {
    let error = Raw::new()
        .string("general.architecture", "llama")
        .u32("n", 1)
        .string("general.architecture", "llama")
        .error();
    assert_eq!(
        error.to_string(),
        "metadata key `general.architecture` occurs twice (entries 0 and 2)"
    );
}

#[test]
fn the_writer_never_writes_a_key_twice() {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").unwrap();
    writer.set("general.architecture", "qwen2").unwrap();
    let mut file = Vec::new();
    writer.write_to(&mut file).unwrap();
    let gguf = Gguf::from_bytes(file).unwrap();
    assert_eq!(gguf.metadata().len(), 1);
    assert_eq!(
        gguf.metadata().str("general.architecture").unwrap(),
        Some("qwen2")
    );
}

#[test]
fn a_file_cut_in_half_says_how_many_bytes_are_missing_and_to_join_the_pieces() {
    let whole = Raw::new()
        .tensor("first", &[64], TYPE_F32, 0)
        .tensor("second", &[64], TYPE_F32, 256)
        .data(512)
        .bytes();
    let half = &whole[..whole.len() - 300];
    let folder = tempfile::tempdir().unwrap();
    for (name, advice) in [
        ("m.gguf.part1of2", "join the pieces"),
        ("m.gguf-split-a", "join the pieces"),
        ("m.gguf", "fetch it again"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, half).unwrap();
        let error = Gguf::open(&path).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error.root(), GgufError::Truncated { expected, have, .. }
                if (*expected, *have) == (whole.len() as u64, half.len() as u64)),
            "{text}"
        );
        let sizes = format!(
            "expected at least {} bytes, have {}",
            whole.len(),
            half.len()
        );
        for part in [name, "tensor `first`", &sizes, advice] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }
    let path = folder.path().join("m.gguf.part2of2");
    std::fs::write(&path, &whole[half.len()..]).unwrap();
    let error = Gguf::open(&path).unwrap_err();
    assert!(matches!(error.root(), GgufError::NotGguf { .. }), "{error}");
    assert!(error.to_string().contains("join the pieces"), "{error}");
}

#[test]
fn arrays_nested_without_end_are_an_error_and_no_stack_overflow() {
    let deep: Vec<u8> = (0..100_000)
        .flat_map(|_| raw::array(ARRAY, 1, &[]))
        .collect();
    let error = Raw::new().entry(b"deep", ARRAY, &deep).error();
    assert!(
        matches!(error, GgufError::NestedTooDeep { limit: 8, .. }),
        "{error}"
    );
}
