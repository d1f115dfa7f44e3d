//! Every prefix and every change of one byte of a small file: an answer or an error, never a panic, and never
//! more memory than the file justifies.

mod raw;

use std::alloc::System;
use std::panic;

use puna_gguf::Gguf;
use raw::{Raw, STRING, TYPE_F32, sample};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that opening may ask for in all, whatever becomes of them: entries, names and messages take more
/// memory than bytes in the file, by a small factor.
const BOUND: usize = 16 << 10;

/// Opens, looks at everything, and returns whether it opened and how much memory was asked for.
fn open_and_look(bytes: &[u8]) -> (bool, usize) {
    let owned = bytes.to_vec();
    let region = Region::new(ALLOCATOR);
    let opened = match Gguf::from_bytes(owned) {
        Ok(gguf) => {
            let data: usize = gguf.tensors().iter().map(|t| gguf.data(t).len()).sum();
            assert!(data <= bytes.len());
            for (key, value) in gguf.metadata().iter() {
                assert!(!key.is_empty());
                let _ = value.describe();
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    };
    let change = region.change();
    (
        opened,
        change
            .bytes_allocated
            .saturating_add_signed(change.bytes_reallocated.max(0)),
    )
}

fn check(what: &str, bytes: &[u8]) -> bool {
    let result = panic::catch_unwind(|| open_and_look(bytes));
    let (opened, asked) = result.unwrap_or_else(|_| panic!("{what}: panicked"));
    assert!(asked <= BOUND, "{what}: asked for {asked} bytes");
    opened
}

// One test in this file: the allocator counts for the whole process.
#[test]
fn no_damage_to_a_small_file_panics_or_asks_for_much_memory() {
    let whole = sample().bytes();
    assert!(check("the whole file", &whole));
    for len in 0..whole.len() {
        assert!(
            !check(&format!("the first {len} bytes"), &whole[..len]),
            "{len} bytes of {}",
            whole.len()
        );
    }
    let header = whole.len() - 64 - 18;
    let mut opened = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        for change in 1..=255u8 {
            // Tensor data is never looked at, so a few changes will do.
            if at >= header && !change.is_power_of_two() {
                continue;
            }
            bytes[at] = whole[at] ^ change;
            opened += usize::from(check(&format!("byte {at} changed by {change:#x}"), &bytes));
        }
    }
    assert!(opened > 0, "changed letters of a name should do no harm");

    // Claims of a file that is larger than the sample, so that a bound which only looks at the count would show.
    for count in [1 << 20, 1 << 33, 1 << 60, u64::MAX / 8, u64::MAX] {
        for element_type in 0..=12 {
            let file = Raw::new().array("k", element_type, count, &[0; 2000]);
            check(
                &format!("{count} elements of type {element_type}"),
                &file.bytes(),
            );
        }
        let value = count.to_le_bytes();
        check(
            "a long string",
            &Raw::new().entry(b"k", STRING, &value).bytes(),
        );
        let mut file = Raw::new().tensor("w", &[8], TYPE_F32, 0).data(2000);
        file.tensor_count = Some(count);
        check("many tensors", &file.bytes());
        file.tensor_count = None;
        file.entry_count = Some(count);
        check("many entries", &file.bytes());
    }
}
