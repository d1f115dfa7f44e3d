//! Weights of a file by name, checked against the architecture's table.

use crate::{
    HyperParameters, Keys, LoadOptions, ModelError, Size, TensorSpec, arch::Architecture,
    vocabulary,
};
use puna_gguf::{Gguf, TensorInfo};
use puna_graph::{Vector, Weight};
use std::sync::Arc;

/// Gives an architecture's `build` its weights and hyper-parameters.
pub struct Loader<'a> {
    gguf: &'a Arc<Gguf>,
    architecture: &'static Architecture,
    hyper: HyperParameters,
    options: &'a LoadOptions,
}

impl<'a> Loader<'a> {
    /// Reads the hyper-parameters and checks that all tensors are there and known.
    pub(crate) fn new(
        gguf: &'a Arc<Gguf>,
        architecture: &'static Architecture,
        options: &'a LoadOptions,
    ) -> Result<Self, ModelError> {
        let keys = Keys::new(gguf.metadata(), architecture.name);
        let hyper = HyperParameters::read(&keys, vocabulary::size(gguf, &keys)?)?;
        if keys.size("expert_count")?.is_some() {
            return Err(ModelError::Unsupported {
                what: format!("a mixture of experts (`{}`)", keys.full("expert_count")),
            });
        }
        let loader = Self {
            gguf,
            architecture,
            hyper,
            options,
        };
        loader.check_names()?;
        Ok(loader)
    }

    fn check_names(&self) -> Result<(), ModelError> {
        let layers = self.hyper.block_count;
        let mut missing = Vec::new();
        for spec in self.architecture.tensors.iter().filter(|s| s.required) {
            let all = if spec.per_layer() { 0..layers } else { 0..1 };
            missing.extend(
                all.map(|i| spec.name(spec.per_layer().then_some(i)))
                    .filter(|name| self.gguf.tensor(name).is_none()),
            );
        }
        let tables = self.architecture.tensors;
        let known = |name: &str| {
            let weight = companion_of(name);
            let mut hits = tables
                .iter()
                .filter_map(|s| s.matches(weight.as_deref().unwrap_or(name)));
            hits.any(|layer| layer.is_none_or(|i| i < layers))
        };
        let unknown: Vec<_> = self
            .gguf
            .tensors()
            .iter()
            .filter(|t| !known(&t.name))
            .map(|t| t.name.clone())
            .collect();
        if missing.is_empty() && unknown.is_empty() {
            Ok(())
        } else {
            Err(ModelError::Tensors { missing, unknown })
        }
    }

    /// Hyper-parameters.
    pub fn hyper(&self) -> &HyperParameters {
        &self.hyper
    }

    /// Metadata through the architecture's prefix.
    pub fn keys(&self) -> Keys<'a> {
        Keys::new(self.gguf.metadata(), self.architecture.name)
    }

    /// Context that the caller asked for, or that of the training.
    pub fn context(&self) -> usize {
        self.options.context.unwrap_or(self.hyper.context_length)
    }

    /// Weights of one layer.
    pub fn layer(&self, index: usize) -> Layer<'_, 'a> {
        Layer {
            loader: self,
            index,
        }
    }

    /// A matrix outside of layers.
    pub fn matrix(&self, name: &str) -> Result<Weight, ModelError> {
        self.need(name, None, |l| l.find_matrix(name, None))
    }

    /// A matrix outside of layers that some files lack.
    pub fn optional_matrix(&self, name: &str) -> Result<Option<Weight>, ModelError> {
        self.find_matrix(name, None)
    }

    /// A vector outside of layers.
    pub fn vector(&self, name: &str) -> Result<Vector, ModelError> {
        self.need(name, None, |l| l.find_vector(name, None))
    }

    /// A vector outside of layers that some files lack.
    pub fn optional_vector(&self, name: &str) -> Result<Option<Vector>, ModelError> {
        self.find_vector(name, None)
    }

    /// `output.weight`, or the token embedding where output is tied to it.
    pub fn output(&self) -> Result<Weight, ModelError> {
        match self.optional_matrix("output.weight")? {
            Some(output) => Ok(output),
            None => self.matrix("token_embd.weight"),
        }
    }

    fn need<T>(
        &self,
        template: &str,
        layer: Option<usize>,
        find: impl FnOnce(&Self) -> Result<Option<T>, ModelError>,
    ) -> Result<T, ModelError> {
        let name = || {
            layer.map_or_else(
                || template.to_owned(),
                |i| template.replace("{i}", &i.to_string()),
            )
        };
        find(self)?.ok_or_else(|| ModelError::Tensors {
            missing: vec![name()],
            unknown: Vec::new(),
        })
    }

    fn find_matrix(
        &self,
        template: &str,
        layer: Option<usize>,
    ) -> Result<Option<Weight>, ModelError> {
        let Some(info) = self.find(template, layer)? else {
            return Ok(None);
        };
        let [cols, rows] = *info.dims.as_slice() else {
            return Err(ModelError::Shape {
                tensor: info.name.clone(),
                found: info.dims.iter().rev().copied().collect(),
                expected: vec![],
                source_keys: "a matrix".into(),
            });
        };
        // A view that keeps the file open. A tensor of this file has one.
        let bytes = self
            .gguf
            .shared_data(info)
            .unwrap_or_else(|| Vec::new().into());
        let range = 0..bytes.len();
        let shape = [rows as usize, cols as usize];
        let name = info.name.clone();
        let weight = Weight::new(name, info.element_type, shape, Arc::new(bytes), range)?;
        let scale = self.factor(&info.name)?;
        Ok(Some(weight.with_scale(scale)))
    }

    /// The factor that a file may keep beside a matrix `X.weight` as `X.scale`.
    fn factor(&self, weight: &str) -> Result<f32, ModelError> {
        let name = weight
            .strip_suffix(".weight")
            .map(|stem| format!("{stem}.scale"));
        let Some(info) = name.and_then(|name| self.gguf.tensor(&name)) else {
            return Ok(1.0);
        };
        match self.dequantize(info)?.as_slice() {
            [scale] if scale.is_finite() => Ok(*scale),
            [_] => Err(ModelError::NonFinite {
                tensor: info.name.clone(),
                block: 0,
            }),
            _ => Err(ModelError::Shape {
                tensor: info.name.clone(),
                found: info.dims.clone(),
                expected: vec![1],
                source_keys: format!("`{weight}`"),
            }),
        }
    }

    fn find_vector(
        &self,
        template: &str,
        layer: Option<usize>,
    ) -> Result<Option<Vector>, ModelError> {
        let Some(info) = self.find(template, layer)? else {
            return Ok(None);
        };
        let data = self.dequantize(info)?;
        Ok(Some(Vector::new(info.name.clone(), data)))
    }

    fn dequantize(&self, info: &TensorInfo) -> Result<Vec<f32>, ModelError> {
        let codec = codec(info)?;
        // The element count was checked against the file's size when it was opened.
        let count: u64 = info.dims.iter().product();
        let mut data = vec![0.0; count as usize];
        codec
            .dequantize(self.gguf.data(info), &mut data)
            .map_err(|_| ModelError::UnsupportedType {
                tensor: info.name.clone(),
                element_type: info.element_type.name(),
            })?;
        Ok(data)
    }

    /// The tensor in the file, its shape and type checked.
    fn find(
        &self,
        template: &str,
        layer: Option<usize>,
    ) -> Result<Option<&TensorInfo>, ModelError> {
        let spec = self
            .architecture
            .tensors
            .iter()
            .find(|s| s.gguf == template);
        // Blocks that architectures share ask for weights that only some of them have.
        let Some(spec) = spec else { return Ok(None) };
        let name = spec.name(layer);
        let Some(info) = self.gguf.tensor(&name) else {
            return Ok(None);
        };
        self.check_shape(spec, info, layer.unwrap_or(0))?;
        let codec = codec(info)?;
        if self.options.check_tensors
            && let Some(block) =
                puna_quant::first_non_finite(codec.element_type(), self.gguf.data(info))
        {
            return Err(ModelError::NonFinite {
                tensor: name,
                block,
            });
        }
        Ok(Some(info))
    }

    fn check_shape(
        &self,
        spec: &TensorSpec,
        info: &TensorInfo,
        layer: usize,
    ) -> Result<(), ModelError> {
        // Trailing dimensions of one say nothing.
        let mut found: Vec<u64> = info.dims.clone();
        while found.len() > spec.shape.len() && found.last() == Some(&1) {
            found.pop();
        }
        found.reverse();
        let expected: Vec<_> = spec.shape.iter().map(|s| self.size(*s, layer)).collect();
        let fits = found.len() == expected.len()
            && found
                .iter()
                .zip(&expected)
                .all(|(f, e)| e.is_none_or(|e| e as u64 == *f));
        if fits {
            return Ok(());
        }
        let keys: Vec<_> = spec.shape.iter().map(|s| format!("{s:?}")).collect();
        Err(ModelError::Shape {
            tensor: info.name.clone(),
            expected: expected
                .iter()
                .zip(found.iter().chain(std::iter::repeat(&0)))
                .map(|(e, f)| e.map_or(*f, |e| e as u64))
                .collect(),
            found,
            source_keys: format!("[{}] of `{}`", keys.join(", "), self.architecture.name),
        })
    }

    fn size(&self, size: Size, layer: usize) -> Option<usize> {
        let h = &self.hyper;
        let (queries, kv) = (h.head_count[layer], h.head_count_kv[layer]);
        Some(match size {
            Size::Vocabulary => h.vocabulary,
            Size::Embedding => h.embedding_length,
            Size::FeedForward => h.feed_forward_length[layer],
            Size::Queries => queries * h.key_length,
            Size::Keys => kv * h.key_length,
            Size::Values => kv * h.value_length,
            Size::FusedQkv => (queries + kv) * h.key_length + kv * h.value_length,
            Size::AttentionOut => queries * h.value_length,
            Size::KeyDim => h.key_length,
            Size::RopePairs => h.rope_dims / 2,
            Size::Any => return None,
        })
    }
}

/// The matrix that a factor belongs to: `X.scale` on the product, or `X.input_scale`, which only engines that quantize activations
/// to four bits read.
fn companion_of(name: &str) -> Option<String> {
    let stem = name
        .strip_suffix(".input_scale")
        .or_else(|| name.strip_suffix(".scale"))?;
    Some(format!("{stem}.weight"))
}

fn codec(info: &TensorInfo) -> Result<&'static dyn puna_quant::Codec, ModelError> {
    info.element_type
        .codec()
        .ok_or_else(|| ModelError::UnsupportedType {
            tensor: info.name.clone(),
            element_type: info.element_type.name(),
        })
}

/// Weights of one layer; names are those after `blk.{i}.`.
pub struct Layer<'l, 'a> {
    loader: &'l Loader<'a>,
    /// Index of the layer.
    pub index: usize,
}

impl<'a> Layer<'_, 'a> {
    /// The model that this is a layer of.
    pub fn model(&self) -> &Loader<'a> {
        self.loader
    }
    /// A matrix.
    pub fn matrix(&self, name: &str) -> Result<Weight, ModelError> {
        let template = template(name);
        self.loader.need(&template, Some(self.index), |l| {
            l.find_matrix(&template, Some(self.index))
        })
    }
    /// A matrix that some files lack.
    pub fn optional_matrix(&self, name: &str) -> Result<Option<Weight>, ModelError> {
        self.loader.find_matrix(&template(name), Some(self.index))
    }
    /// A vector.
    pub fn vector(&self, name: &str) -> Result<Vector, ModelError> {
        let template = template(name);
        self.loader.need(&template, Some(self.index), |l| {
            l.find_vector(&template, Some(self.index))
        })
    }
    /// A vector that some files lack.
    pub fn optional_vector(&self, name: &str) -> Result<Option<Vector>, ModelError> {
        self.loader.find_vector(&template(name), Some(self.index))
    }
}

fn template(name: &str) -> String {
    format!("blk.{{i}}.{name}")
}
