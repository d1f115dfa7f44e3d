//! The name that llama-bench gives a model: architecture, size, mixture of element types.

use crate::models;
use puna::Gguf;

/// What `general.file_type` says, by its number.
const FILE_TYPES: [(u64, &str); 33] = [
    (0, "all F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (7, "Q8_0"),
    (8, "Q5_0"),
    (9, "Q5_1"),
    (10, "Q2_K - Medium"),
    (11, "Q3_K - Small"),
    (12, "Q3_K - Medium"),
    (13, "Q3_K - Large"),
    (14, "Q4_K - Small"),
    (15, "Q4_K - Medium"),
    (16, "Q5_K - Small"),
    (17, "Q5_K - Medium"),
    (18, "Q6_K"),
    (19, "IQ2_XXS - 2.0625 bpw"),
    (20, "IQ2_XS - 2.3125 bpw"),
    (21, "Q2_K - Small"),
    (22, "IQ3_XS - 3.3 bpw"),
    (23, "IQ3_XXS - 3.0625 bpw"),
    (24, "IQ1_S - 1.5625 bpw"),
    (25, "IQ4_NL - 4.5 bpw"),
    (26, "IQ3_S - 3.4375 bpw"),
    (27, "IQ3_S mix - 3.66 bpw"),
    (28, "IQ2_S - 2.5 bpw"),
    (29, "IQ2_M - 2.7 bpw"),
    (30, "IQ4_XS - 4.25 bpw"),
    (31, "IQ1_M - 1.75 bpw"),
    (32, "BF16"),
    (36, "TQ1_0 - 1.69 bpw ternary"),
    (37, "TQ2_0 - 2.06 bpw ternary"),
    (38, "MXFP4 MoE"),
];

/// As in `qwen2 1.5B Q4_K - Medium`. Where the file does not say its size or type, they are told from its tensors.
pub(super) fn model_type(gguf: &Gguf) -> String {
    let metadata = gguf.metadata();
    let text = |key: &str| metadata.str(key).ok().flatten().filter(|t| !t.is_empty());
    let file_type = metadata.u64("general.file_type").ok().flatten();
    let named = |n: u64| FILE_TYPES.iter().find(|(number, _)| *number == n);
    let Some((_, types)) = file_type.and_then(named) else {
        return models::describe(gguf);
    };
    let architecture = text("general.architecture").unwrap_or("unknown");
    let size =
        text("general.size_label").map_or_else(|| label(models::parameters(gguf)), str::to_owned);
    format!("{architecture} {size} {types}")
}

/// A number of parameters as GGUF file names have it: two digits at least, `135M`, `1.5B`.
fn label(parameters: u64) -> String {
    let (scale, unit) = match parameters {
        0..1_000_000 => (1e3, "K"),
        1_000_000..1_000_000_000 => (1e6, "M"),
        1_000_000_000..1_000_000_000_000 => (1e9, "B"),
        _ => (1e12, "T"),
    };
    let value = parameters as f64 / scale;
    let digits = usize::from(value.round() < 10.0);
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_in_file_names() {
        for (parameters, expected) in [
            (80_000, "80K"),
            (134_515_008, "135M"),
            (1_543_714_304, "1.5B"),
            (9_960_000_000, "10B"),
            (70_553_706_496, "71B"),
            (1_000_000_000_000, "1.0T"),
        ] {
            assert_eq!(label(parameters), expected);
        }
    }

    #[test]
    fn file_types_are_listed_once_in_order() {
        assert!(FILE_TYPES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
