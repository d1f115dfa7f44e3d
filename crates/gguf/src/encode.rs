//! The bytes of a header, of metadata and of tensor descriptions.

use crate::array::Array;
use crate::metadata::Metadata;
use crate::parse::MAGIC;
use crate::value::{Value, ValueType};

/// A tensor description as it is written.
pub(crate) struct Description<'a> {
    pub(crate) name: &'a str,
    pub(crate) dims: &'a [u64],
    pub(crate) type_id: u32,
    /// First byte in the data section.
    pub(crate) offset: u64,
}

/// Everything before the tensor data, without the padding between the two.
pub(crate) fn header(version: u32, metadata: &Metadata, tensors: &[Description<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&(tensors.len() as u64).to_le_bytes());
    out.extend_from_slice(&(metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata.iter() {
        put_string(&mut out, key.as_bytes());
        put_type(&mut out, value.value_type());
        put_value(&mut out, value);
    }
    for tensor in tensors {
        put_string(&mut out, tensor.name.as_bytes());
        out.extend_from_slice(&(tensor.dims.len() as u32).to_le_bytes());
        for dim in tensor.dims {
            out.extend_from_slice(&dim.to_le_bytes());
        }
        out.extend_from_slice(&tensor.type_id.to_le_bytes());
        out.extend_from_slice(&tensor.offset.to_le_bytes());
    }
    out
}

fn put_type(out: &mut Vec<u8>, value_type: ValueType) {
    out.extend_from_slice(&value_type.id().to_le_bytes());
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U8(n) => out.push(*n),
        Value::I8(n) => out.extend_from_slice(&n.to_le_bytes()),
        Value::U16(n) => out.extend_from_slice(&n.to_le_bytes()),
        Value::I16(n) => out.extend_from_slice(&n.to_le_bytes()),
        Value::U32(n) => out.extend_from_slice(&n.to_le_bytes()),
        Value::I32(n) => out.extend_from_slice(&n.to_le_bytes()),
        Value::U64(n) => out.extend_from_slice(&n.to_le_bytes()),
        Value::I64(n) => out.extend_from_slice(&n.to_le_bytes()),
        Value::F32(x) => out.extend_from_slice(&x.to_le_bytes()),
        Value::F64(x) => out.extend_from_slice(&x.to_le_bytes()),
        Value::Bool(b) => out.push(u8::from(*b)),
        Value::String(string) => put_string(out, string.as_bytes()),
        Value::Array(array) => put_array(out, array),
    }
}

fn put_array(out: &mut Vec<u8>, array: &Array) {
    put_type(out, array.element_type());
    out.extend_from_slice(&(array.len() as u64).to_le_bytes());
    match array {
        Array::Scalars(scalars) => out.extend_from_slice(scalars.as_bytes()),
        Array::Strings(strings) => out.extend_from_slice(strings.as_file_bytes()),
        Array::Arrays(arrays) => {
            for array in arrays {
                put_array(out, array);
            }
        }
    }
}
