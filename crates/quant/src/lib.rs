//! puna-quant
