//! What is stored is read back as its GGUF type would be, in every set.

use super::*;
use crate::kernels::Set;
use crate::kernels::attention::tests::{Rng, sets};
use puna_quant::ElementType;

/// The numbers of `x` after a round trip through a type.
fn rounded(ty: KvType, x: &[f32]) -> Vec<f32> {
    let ty = match ty {
        KvType::F32 => ElementType::F32,
        KvType::F16 => ElementType::F16,
        KvType::Bf16 => ElementType::BF16,
        KvType::Q8_0 => ElementType::Q8_0,
        KvType::Q4_0 => ElementType::Q4_0,
    };
    let mut bytes = vec![0; ty.row_bytes(x.len()).unwrap()];
    puna_quant::quantize(ty, x, &mut bytes).unwrap();
    let mut out = vec![0.0; x.len()];
    puna_quant::dequantize(ty, &bytes, &mut out).unwrap();
    out
}

#[test]
fn a_stored_row_is_read_back_in_the_numbers_of_its_type() {
    for &k_type in KvType::ALL {
        for &v_type in KvType::ALL {
            for (k_dim, v_dim) in [(32, 64), (96, 32), (20, 40), (7, 100)] {
                let Ok(layout) = KvLayout::new(k_type, v_type, 3, k_dim, v_dim) else {
                    continue;
                };
                let mut rng = Rng(7);
                let rows: Vec<_> = (0..PAGE)
                    .map(|_| (rng.floats(3 * k_dim), rng.floats(3 * v_dim)))
                    .collect();
                let mut pages = Vec::new();
                for set in sets() {
                    let mut page = vec![0u8; layout.page_bytes()];
                    for (position, (k, v)) in rows.iter().enumerate() {
                        // SAFETY: the set is one that the CPU has, and the page is as large as the layout says.
                        unsafe {
                            store_fn(set)(&layout, page.as_mut_ptr(), 0..3, position, k, v);
                        }
                    }
                    pages.push(page);
                }
                assert!(pages.iter().all(|p| *p == pages[0]), "sets differ");
                for (position, (k, v)) in rows.iter().enumerate() {
                    let (mut k2, mut v2) = (vec![0.0; 3 * k_dim], vec![0.0; 3 * v_dim]);
                    load_row(&layout, &pages[0], position, &mut k2, &mut v2);
                    assert_eq!(k2, rounded(k_type, k), "{k_type:?} {position}");
                    assert_eq!(v2, rounded(v_type, v), "{v_type:?} {position}");
                }
            }
        }
    }
}

#[test]
fn a_store_of_some_heads_leaves_the_others_alone() {
    let layout = KvLayout::new(KvType::Q4_0, KvType::Q8_0, 4, 32, 32).unwrap();
    let mut page = vec![0x5a; layout.page_bytes()];
    let mut rng = Rng(1);
    let (k, v) = (rng.floats(128), rng.floats(128));
    // SAFETY: the portable set runs anywhere, and the page is as large as the layout says.
    unsafe { store_fn(Set::Portable)(&layout, page.as_mut_ptr(), 1..3, 9, &k, &v) };
    let (mut k2, mut v2) = (vec![0.0; 128], vec![0.0; 128]);
    load_row(&layout, &page, 9, &mut k2, &mut v2);
    assert_eq!(k2[32..96], rounded(KvType::Q4_0, &k)[32..96]);
    assert_eq!(v2[32..96], rounded(KvType::Q8_0, &v)[32..96]);
    for head in [0, 3] {
        let bytes = &page[layout.k_offset(head)..][..layout.k_bytes() + layout.v_bytes()];
        assert!(bytes.iter().all(|b| *b == 0x5a));
    }
    let written = page.iter().filter(|b| **b != 0x5a).count();
    assert!(written <= 2 * (18 + 34));
}

#[test]
fn heads_that_are_no_whole_blocks_are_refused_for_quantized_types() {
    let error = KvLayout::new(KvType::Q8_0, KvType::F16, 2, 80, 80).unwrap_err();
    assert_eq!(
        error.to_string(),
        "key cache type q8_0: head size 80 is not a multiple of 32; use f16, bf16 or f32"
    );
    let error = KvLayout::new(KvType::F16, KvType::F16, 0, 80, 80).unwrap_err();
    assert_eq!(
        error.to_string(),
        "number of KV heads: 0, expected 1 to 65536"
    );
    assert!(KvLayout::new(KvType::F16, KvType::F16, 1, 80, usize::MAX).is_err());
}

#[test]
fn names_of_types_are_found_in_any_case() {
    for &ty in KvType::ALL {
        assert_eq!(KvType::from_name(&ty.name().to_uppercase()), Some(ty));
    }
    assert_eq!(KvType::from_name("q5_1"), None);
}
