//! Bit-equality with the `gguf` Python package on the records of `data/golden.bin`, made by `make_golden.py`.

use puna_quant::{ElementType, dequantize, quantize};

const GOLDEN: &[u8] = include_bytes!("data/golden.bin");

/// What the package did: decode or encode.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Dequantize,
    Quantize,
}

struct Record {
    kind: Kind,
    element_type: ElementType,
    given: &'static [u8],
    expected: &'static [u8],
}

fn records() -> Vec<Record> {
    fn take(rest: &mut &'static [u8], n: usize) -> &'static [u8] {
        let (head, tail) = rest.split_at(n);
        *rest = tail;
        head
    }
    fn number(rest: &mut &'static [u8]) -> u32 {
        u32::from_le_bytes(take(rest, 4).try_into().unwrap())
    }
    let mut rest = GOLDEN;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let kind = match take(&mut rest, 1)[0] {
            0 => Kind::Dequantize,
            1 => Kind::Quantize,
            other => panic!("record of kind {other}"),
        };
        let element_type = ElementType::from_id(number(&mut rest)).unwrap();
        let (given, expected) = (number(&mut rest) as usize, number(&mut rest) as usize);
        records.push(Record {
            kind,
            element_type,
            given: take(&mut rest, given),
            expected: take(&mut rest, expected),
        });
    }
    records
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let (values, []) = bytes.as_chunks::<4>() else {
        panic!("{} bytes of f32", bytes.len());
    };
    values.iter().map(|&b| f32::from_le_bytes(b)).collect()
}

/// Equal bits; a NaN may be any NaN, because its payload depends on the machine that made it.
fn assert_same(element_type: ElementType, ours: &[f32], expected: &[f32]) {
    assert_eq!(ours.len(), expected.len());
    for (i, (a, b)) in ours.iter().zip(expected).enumerate() {
        assert!(
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            "{element_type}: value {i} is {a:e} ({:#x}), the package has {b:e} ({:#x})",
            a.to_bits(),
            b.to_bits()
        );
    }
}

#[test]
fn every_type_dequantizes_as_the_python_package_does() {
    let mut seen = Vec::new();
    for r in records().iter().filter(|r| r.kind == Kind::Dequantize) {
        let expected = floats(r.expected);
        let mut ours = vec![0.0; expected.len()];
        dequantize(r.element_type, r.given, &mut ours).unwrap();
        assert_same(r.element_type, &ours, &expected);
        seen.push(r.element_type);
    }
    for &t in ElementType::ALL.iter().filter(|t| t.codec().is_some()) {
        let absent_from_the_package = [ElementType::Q8_1, ElementType::Q8_K].contains(&t);
        assert_ne!(seen.contains(&t), absent_from_the_package, "{t}");
    }
}

#[test]
fn the_simple_types_quantize_as_the_python_package_does() {
    let mut seen = Vec::new();
    for r in records().iter().filter(|r| r.kind == Kind::Quantize) {
        let t = r.element_type;
        let mut ours = vec![0; r.expected.len()];
        quantize(t, &floats(r.given), &mut ours).unwrap();
        let size = t.block_bytes();
        for (i, (a, b)) in ours.chunks(size).zip(r.expected.chunks(size)).enumerate() {
            assert_eq!(a, b, "{t}: block {i}");
        }
        seen.push(t);
    }
    assert_eq!(seen.len(), 8);
}
