//! Files made by the `gguf` Python package are read, and files made here are read by it.
//!
//! `data/reference.gguf` was written by `make_reference.py`.

use std::path::{Path, PathBuf};
use std::process::Command;

use puna_gguf::{ElementType, Gguf, GgufWriter, StringArray, Value};

fn reference() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/reference.gguf")
}

#[test]
fn a_file_of_the_python_package_is_read() {
    let gguf = Gguf::open(&reference()).unwrap();
    let m = gguf.metadata();
    let values = [
        ("general.architecture", Value::from("llama")),
        ("n.u8", Value::U8(200)),
        ("n.i8", Value::I8(-1)),
        ("n.u16", Value::U16(60_000)),
        ("n.i16", Value::I16(-2)),
        ("n.u32", Value::U32(4_000_000_000)),
        ("n.i32", Value::I32(-3)),
        ("n.f32", Value::F32(1.5)),
        ("n.bool", Value::Bool(true)),
        ("n.u64", Value::U64(u64::MAX)),
        ("n.i64", Value::I64(i64::MIN)),
        ("n.f64", Value::F64(-0.25)),
        ("n.text", "naïve 🦙".into()),
        (
            "tokenizer.ggml.tokens",
            ["<unk>", "<s>", "▁the", "é"]
                .iter()
                .collect::<StringArray>()
                .into(),
        ),
        (
            "tokenizer.ggml.scores",
            (&[0.0f32, 0.0, -1.5, -2.0][..]).into(),
        ),
        ("tokenizer.ggml.token_type", (&[2i32, 3, 1, 1][..]).into()),
        ("n.bools", (&[true, false][..]).into()),
        ("general.alignment", Value::U32(64)),
    ];
    let expected: Vec<(&str, &Value)> = values.iter().map(|(key, value)| (*key, value)).collect();
    assert_eq!(m.iter().collect::<Vec<_>>(), expected);
    assert_eq!((gguf.version(), gguf.alignment()), (3, 64));

    let tensors: Vec<_> = gguf
        .tensors()
        .iter()
        .map(|t| (t.name.as_str(), &t.dims[..], t.element_type, t.byte_len))
        .collect();
    assert_eq!(
        tensors,
        [
            ("f32.weight", &[32, 3][..], ElementType::F32, 384),
            ("f16.weight", &[32, 1][..], ElementType::F16, 64),
            ("q8_0.weight", &[32, 3][..], ElementType::Q8_0, 102),
        ]
    );
    let floats = gguf.data(&gguf.tensors()[0]).chunks_exact(4);
    let floats: Vec<f32> = floats
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    assert_eq!(
        floats,
        (0..96u8).map(|i| f32::from(i) - 40.0).collect::<Vec<f32>>()
    );
    // The first row of -40 to -9: the scale is 40/127 in f16, the first number -127.
    assert_eq!(gguf.data(&gguf.tensors()[2])[..3], [0x0a, 0x35, 0x81]);
}

#[test]
fn a_file_of_the_python_package_is_written_again_byte_for_byte() {
    let gguf = Gguf::open(&reference()).unwrap();
    let mut file = Vec::new();
    GgufWriter::from_gguf(&gguf)
        .unwrap()
        .write_to(&mut file)
        .unwrap();
    assert!(file == std::fs::read(reference()).unwrap());
}

#[test]
fn the_python_package_reads_a_file_written_here() {
    if !Command::new("python3")
        .args(["-c", "import gguf, numpy"])
        .output()
        .is_ok_and(|out| out.status.success())
    {
        eprintln!("skipped: python3 with the `gguf` package is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.gguf");
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").unwrap();
    writer.set("n.i64", -5i64).unwrap();
    writer.set("n.f64", 0.5f64).unwrap();
    writer.set("n.bool", false).unwrap();
    writer
        .set("tokens", ["a", "", "ü"].iter().collect::<StringArray>())
        .unwrap();
    writer.set("numbers", &[1u16, 2, 3][..]).unwrap();
    writer.alignment(128).unwrap();
    writer
        .tensor("a.weight", &[5, 3], ElementType::F32, vec![1; 60])
        .unwrap();
    writer
        .stream("b.weight", &[256, 2], ElementType::Q4_K, |out| {
            out.write_all(&[2; 288])
        })
        .unwrap();
    writer.write_file(&path).unwrap();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/make_reference.py");
    let out = Command::new("python3")
        .arg(script)
        .arg("check")
        .arg(&path)
        .env("PYTHONIOENCODING", "utf-8")
        .output();
    let out = out.unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let expected = "\
key general.architecture STRING 'llama'
key n.i64 INT64 -5
key n.f64 FLOAT64 0.5
key n.bool BOOL False
key tokens ARRAY/STRING ['a', '', 'ü']
key numbers ARRAY/UINT16 [1, 2, 3]
key general.alignment UINT32 128
tensor a.weight 5,3 F32 60 60
tensor b.weight 256,2 Q4_K 288 576
";
    assert_eq!(
        String::from_utf8_lossy(&out.stdout).replace("\r\n", "\n"),
        expected
    );
}
