//! Opens arbitrary bytes as a file; what opens is looked at and must survive being written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use puna_gguf::{Gguf, GgufWriter};

fuzz_target!(|bytes: &[u8]| {
    let Ok(gguf) = Gguf::from_bytes(bytes.to_vec()) else {
        return;
    };
    for tensor in gguf.tensors() {
        assert_eq!(gguf.data(tensor).len(), tensor.byte_len);
    }
    // The writer takes shorter names than the reader.
    let Ok(writer) = GgufWriter::from_gguf(&gguf) else {
        return;
    };
    let mut file = Vec::new();
    // An alignment of gigabytes is legal, and its padding is of no interest.
    if gguf.alignment() > 4096 || writer.write_to(&mut file).is_err() {
        return;
    }
    let again = Gguf::from_bytes(file).expect("what is written is read");
    assert_eq!(
        format!("{:?}", again.tensors().len()),
        format!("{:?}", gguf.tensors().len())
    );
    for tensor in gguf.tensors() {
        let copy = again.tensor(&tensor.name).expect("every tensor is written");
        assert_eq!(again.data(copy), gguf.data(tensor));
    }
});
