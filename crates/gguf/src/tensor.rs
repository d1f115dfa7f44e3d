//! Descriptions of tensors, and the rules that their sizes and offsets must keep.

use puna_quant::ElementType;

use crate::error::{GgufError, shown};

/// The most dimensions that a tensor may have.
pub const MAX_DIMENSIONS: usize = 4;

/// One tensor of an opened file. Its bytes: [`Gguf::data`](crate::Gguf::data).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name, as in `blk.0.attn_q.weight`.
    pub name: String,
    /// The dimensions as in the file: innermost (the row length) first, none of them 0; no dimensions for a
    /// single number. At most [`MAX_DIMENSIONS`].
    pub dims: Vec<u64>,
    /// How the elements are stored.
    pub element_type: ElementType,
    /// Bytes of the whole tensor.
    pub byte_len: usize,
    /// Position of the file in the split set, from 0.
    pub(crate) part: usize,
    /// First byte in the data section of the file.
    pub(crate) offset: u64,
    /// First byte in the file.
    pub(crate) start: usize,
    /// Kept apart from `byte_len`, which a caller can change.
    pub(crate) end: usize,
}

impl TensorInfo {
    /// The number of elements. It cannot overflow: the reader checked it.
    pub fn elements(&self) -> u64 {
        self.dims.iter().fold(1, |n, &dim| n.saturating_mul(dim))
    }

    /// Elements of a row: the innermost dimension.
    pub fn row_len(&self) -> u64 {
        self.dims.first().copied().unwrap_or(1)
    }

    /// The number of rows: the product of the other dimensions.
    pub fn rows(&self) -> u64 {
        self.dims
            .iter()
            .skip(1)
            .fold(1, |n, &dim| n.saturating_mul(dim))
    }

    /// Which of [`Gguf::files`](crate::Gguf::files) holds the tensor.
    pub fn file_index(&self) -> usize {
        self.part
    }

    /// Where the first byte of the tensor lies in its file.
    pub fn file_offset(&self) -> u64 {
        self.start as u64
    }

    /// What to call it in an error message: name, shape and type.
    pub(crate) fn describe(&self) -> String {
        let (name, dims, element_type) = (shown(&self.name), &self.dims, self.element_type.name());
        format!("tensor `{name}` {dims:?} {element_type}")
    }
}

/// Bytes of a tensor; an error when a dimension is 0, there are too many, rows are not whole blocks, or a
/// product overflows.
pub(crate) fn byte_len(
    name: &str,
    dims: &[u64],
    element_type: ElementType,
) -> Result<usize, GgufError> {
    if dims.len() > MAX_DIMENSIONS {
        return Err(GgufError::TooManyDimensions {
            tensor: shown(name),
            found: u32::try_from(dims.len()).unwrap_or(u32::MAX),
        });
    }
    if let Some(dimension) = dims.iter().position(|&dim| dim == 0) {
        return Err(GgufError::ZeroDimension {
            tensor: shown(name),
            dimension,
            shape: dims.to_vec(),
        });
    }
    let row = dims.first().copied().unwrap_or(1);
    let block = element_type.block_len() as u64;
    if !row.is_multiple_of(block) {
        return Err(GgufError::BrokenRow {
            tensor: shown(name),
            shape: dims.to_vec(),
            row,
            block,
            element_type: element_type.name(),
        });
    }
    let elements = dims
        .iter()
        .try_fold(1i64, |n, &dim| n.checked_mul(i64::try_from(dim).ok()?));
    let rows = dims
        .iter()
        .skip(1)
        .try_fold(1usize, |n, &dim| n.checked_mul(usize::try_from(dim).ok()?));
    elements
        .and(usize::try_from(row).ok())
        .and_then(|row| element_type.row_bytes(row)?.checked_mul(rows?))
        .ok_or_else(|| GgufError::ShapeTooLarge {
            tensor: shown(name),
            shape: dims.to_vec(),
        })
}

/// An error when two tensors have one name.
pub(crate) fn check_unique(tensors: &[TensorInfo]) -> Result<(), GgufError> {
    let mut names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        if let [name, next] = pair
            && name == next
        {
            return Err(GgufError::DuplicateTensor {
                tensor: shown(name),
            });
        }
    }
    Ok(())
}

/// Checks that the tensors of one file begin at multiples of the alignment, share no bytes and lie inside the
/// file, and sets where each lies. Gaps between tensors are allowed, and so is any order.
pub(crate) fn place(
    tensors: &mut [TensorInfo],
    data_start: u64,
    alignment: u64,
    file_len: u64,
) -> Result<(), GgufError> {
    let mut spans = Vec::with_capacity(tensors.len());
    let mut file_end = 0; // a file without tensors needs no data section, and no padding before it
    for (index, tensor) in tensors.iter().enumerate() {
        let offset = tensor.offset;
        if !offset.is_multiple_of(alignment) {
            return Err(GgufError::Misaligned {
                tensor: shown(&tensor.name),
                offset,
                alignment,
            });
        }
        let len = tensor.byte_len as u64;
        let end = offset.checked_add(len);
        match end.and_then(|end| Some((end, end.checked_add(data_start)?))) {
            Some((end, end_in_file)) => {
                spans.push((offset, end, index));
                file_end = file_end.max(end_in_file);
            }
            None => {
                return Err(GgufError::OffsetTooLarge {
                    tensor: shown(&tensor.name),
                    offset,
                    len,
                });
            }
        }
    }
    spans.sort_unstable();
    check_overlap(tensors, &spans)?;
    if file_end > file_len {
        return Err(truncated(tensors, &spans, data_start, file_end, file_len));
    }
    for tensor in tensors {
        // Inside the file, which is in memory: the conversions cannot fail.
        tensor.start =
            usize::try_from(data_start.saturating_add(tensor.offset)).unwrap_or(usize::MAX);
        tensor.end = tensor.start.saturating_add(tensor.byte_len);
    }
    Ok(())
}

/// `spans`: begin, end and position of each tensor, sorted. No span is empty, so neighbours tell everything.
fn check_overlap(tensors: &[TensorInfo], spans: &[(u64, u64, usize)]) -> Result<(), GgufError> {
    let name = |index: usize| {
        tensors
            .get(index)
            .map_or_else(String::new, |t| shown(&t.name))
    };
    for pair in spans.windows(2) {
        if let &[(_, end, first), (begin, _, second)] = pair
            && begin < end
        {
            return Err(GgufError::Overlap {
                first: name(first),
                second: name(second),
                end,
                begin,
            });
        }
    }
    Ok(())
}

/// Names the first tensor that is not complete, and the size that the file needs for all of them.
fn truncated(
    tensors: &[TensorInfo],
    spans: &[(u64, u64, usize)],
    data_start: u64,
    expected: u64,
    have: u64,
) -> GgufError {
    let first = spans
        .iter()
        .find(|(_, end, _)| end.saturating_add(data_start) > have)
        .and_then(|&(_, _, index)| tensors.get(index));
    GgufError::Truncated {
        place: first.map_or_else(|| "the tensor data".to_owned(), TensorInfo::describe),
        expected,
        have,
    }
}
