//! A position in the bytes of a file that cannot leave them.

use crate::error::{GgufError, Place};

/// Reads forward; each read says which entry it belongs to, for the error when the file ends inside it.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Bytes between the position and the end of the file.
    pub(crate) fn left(&self) -> u64 {
        (self.bytes.len() as u64).saturating_sub(self.at as u64)
    }

    /// The error of a file that would have to go on for `more` bytes from here.
    pub(crate) fn short(&self, more: u64, place: Place<'_>) -> GgufError {
        GgufError::Truncated {
            place: place.to_string(),
            expected: (self.at as u64).saturating_add(more),
            have: self.bytes.len() as u64,
        }
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: u64, place: Place<'_>) -> Result<&'a [u8], GgufError> {
        let taken = usize::try_from(len)
            .ok()
            .and_then(|len| self.at.checked_add(len))
            .and_then(|end| Some((end, self.bytes.get(self.at..end)?)));
        match taken {
            Some((end, bytes)) => {
                self.at = end;
                Ok(bytes)
            }
            None => Err(self.short(len, place)),
        }
    }

    pub(crate) fn u32(&mut self, place: Place<'_>) -> Result<u32, GgufError> {
        self.array(place).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, place: Place<'_>) -> Result<u64, GgufError> {
        self.array(place).map(u64::from_le_bytes)
    }

    /// A 64-bit length and that many bytes.
    pub(crate) fn string(&mut self, place: Place<'_>) -> Result<&'a [u8], GgufError> {
        let len = self.u64(place)?;
        self.take(len, place)
    }

    fn array<const N: usize>(&mut self, place: Place<'_>) -> Result<[u8; N], GgufError> {
        match self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<N>) {
            Some(bytes) => {
                self.at = self.at.saturating_add(N);
                Ok(*bytes)
            }
            None => Err(self.short(N as u64, place)),
        }
    }
}
