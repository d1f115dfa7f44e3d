//! A slow interpreter in `f64`: what every backend is compared with.

use crate::{Graph, GraphError, Op, Rows, Weight, ops};
use std::collections::HashMap;

/// Runs `graph` on one sequence of `tokens` from position 0; returns the output of the rows `outputs`, in order.
///
/// # Errors
/// [`GraphError::Attribute`] where a weight's type cannot be dequantized, a token is outside of its table, or the graph has no output.
pub fn run(graph: &Graph, tokens: &[u32], outputs: &[u32]) -> Result<Vec<Vec<f64>>, GraphError> {
    let fail = |op, reason| GraphError::Attribute { op, reason };
    let mut matrices: HashMap<u32, Vec<f32>> = HashMap::new();
    let mut values: Vec<Vec<Vec<f64>>> = Vec::with_capacity(graph.nodes().len());
    for node in graph.nodes() {
        let rows = match node.shape.rows {
            Rows::Tokens => tokens.len(),
            Rows::Outputs => outputs.len(),
        };
        if let Op::Linear(ops::Linear { weight, .. }) | Op::Embed(ops::Embed { table: weight, .. }) =
            &node.op
            && !matrices.contains_key(&weight.0)
        {
            matrices.insert(weight.0, dequantize(graph.weight(*weight))?);
        }
        let input = |i: usize, row: usize| -> &[f64] { &values[node.inputs[i].index()][row] };
        let mut result = Vec::with_capacity(rows);
        for row in 0..rows {
            result.push(match &node.op {
                Op::Embed(op) => {
                    let n = node.shape.features;
                    let start = tokens[row] as usize * n;
                    let table = &matrices[&op.table.0];
                    let row = table.get(start..start + n);
                    op.reference(
                        row.ok_or_else(|| fail("embed", "token outside of the table".into()))?,
                    )
                }
                Op::Linear(op) => {
                    let scale = graph.weight(op.weight).scale();
                    op.reference(&matrices[&op.weight.0], scale, input(0, row))
                }
                Op::Norm(op) => op.reference(input(0, row)),
                Op::Add(_) => ops::Add::reference(input(0, row), input(1, row)),
                Op::Mul(_) => ops::Mul::reference(input(0, row), input(1, row)),
                Op::Scale(op) => op.reference(input(0, row)),
                Op::Softcap(op) => op.reference(input(0, row)),
                Op::Activation(op) => op.reference(input(0, row)),
                Op::GatedActivation(op) => op.reference(input(0, row), input(1, row)),
                Op::Rope(op) => op.reference(input(0, row), row as u32),
                Op::Attention(op) => {
                    let [k, v] = [1, 2].map(|i| &values[node.inputs[i].index()]);
                    op.reference(input(0, row), k, v, row)
                }
                Op::SelectOutputs(_) => input(0, outputs[row] as usize).to_vec(),
            });
        }
        values.push(result);
    }
    let output = graph
        .output()
        .ok_or_else(|| fail("graph", "no output".into()))?;
    Ok(values.swap_remove(output.index()))
}

fn dequantize(weight: &Weight) -> Result<Vec<f32>, GraphError> {
    let fail = |reason| GraphError::Attribute {
        op: "dequantize",
        reason,
    };
    let codec = weight.element_type().codec().ok_or_else(|| {
        fail(format!(
            "type {} is not supported yet",
            weight.element_type().name()
        ))
    })?;
    let mut out = vec![0.0; weight.rows() * weight.cols()];
    codec
        .dequantize(weight.bytes(), &mut out)
        .map_err(|e| fail(format!("tensor `{}`: {e}", weight.name())))?;
    Ok(out)
}
