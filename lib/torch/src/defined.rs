//! Operators that PyTorch defines in Python only, computed here from operators of the dispatcher.
//!
//! One table, sorted by name. `quantized_decomposed.*` follows `torch/ao/quantization/fx/_decomposed.py` of PyTorch 2.13,
//! `torchao.*` follows `torchao/quantization/quant_primitives.py` of torchao 0.18, `prims.*` follows `torch/_prims`,
//! `torchvision.*` and `transformers.*` their own kernels. The order of roundings is theirs: results are equal bit by bit.

mod affine;
mod experts;
mod float8;
mod math;
mod per_axis;
mod per_tensor;
mod prims;
mod vision;

use crate::engine::Engine;
use crate::error::Error;
use crate::value::Value;

/// An operator with its definition.
pub struct Definition {
    /// The operator with its overload.
    pub op: &'static str,
    /// The names of its parameters.
    pub parameters: &'static [&'static str],
    /// Its results, one a return.
    pub compute: fn(&Engine, &Given<'_>) -> Result<Vec<Value>, Error>,
}

/// The arguments of a call by the names of its parameters.
pub struct Given<'a> {
    /// The definition's parameters.
    pub parameters: &'static [&'static str],
    /// As many as were given.
    pub values: &'a [Value],
}

impl Given<'_> {
    /// An argument; `None` where it is not given.
    pub fn get(&self, name: &str) -> &Value {
        let at = self.parameters.iter().position(|parameter| *parameter == name);
        at.and_then(|at| self.values.get(at)).unwrap_or(&Value::None)
    }

    fn with<T>(&self, name: &str, read: impl FnOnce(&Value) -> Result<T, Error>) -> Result<T, Error> {
        read(self.get(name)).map_err(|error| Error::value(format!("argument {name}: {error}")))
    }

    /// A tensor.
    pub fn tensor(&self, name: &str) -> Result<&crate::Tensor, Error> {
        self.get(name).tensor().map_err(|error| Error::value(format!("argument {name}: {error}")))
    }

    /// An integer, or a dtype's number.
    pub fn int(&self, name: &str) -> Result<i64, Error> {
        self.with(name, Value::int)
    }

    /// A float.
    pub fn float(&self, name: &str) -> Result<f64, Error> {
        self.with(name, Value::float)
    }

    /// An integer, or none.
    pub fn int_or(&self, name: &str) -> Result<Option<i64>, Error> {
        if matches!(self.get(name), Value::None) { Ok(None) } else { self.int(name).map(Some) }
    }

    /// Integers.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>, Error> {
        self.with(name, |value| match value {
            Value::List(items) => items.iter().map(Value::int).collect(),
            other => Err(Error::value(format!("expected a list, found {}", other.describe()))),
        })
    }
}

pub use prims::same;

/// The definition of an operator.
pub fn find(op: &str) -> Option<&'static Definition> {
    TABLE.binary_search_by_key(&op, |row| row.op).ok().and_then(|at| TABLE.get(at))
}

macro_rules! table {
    ($($op:literal ($($parameter:literal)*) $compute:path;)*) => {
        /// All of them.
        pub static TABLE: &[Definition] = &[$(Definition { op: $op, parameters: &[$($parameter),*], compute: $compute }),*];
    };
}

table! {
    "prims.amax.default" ("inp" "dims" "output_dtype") prims::amax;
    "prims.amin.default" ("inp" "dims" "output_dtype") prims::amin;
    "prims.broadcast_in_dim.default" ("a" "shape" "broadcast_dimensions") prims::broadcast_in_dim;
    "prims.cbrt.default" ("self") prims::cbrt;
    "prims.clone.default" ("a" "memory_format") prims::clone;
    "prims.collapse.default" ("a" "start" "end") prims::collapse;
    "prims.collapse_view.default" ("a" "start" "end") prims::collapse_view;
    "prims.convert_element_type.default" ("a" "dtype") prims::convert_element_type;
    "prims.copy_strided.default" ("a" "stride") prims::copy_strided;
    "prims.device_put.default" ("a" "device" "non_blocking") prims::view_of;
    "prims.div.default" ("a" "b") prims::div;
    "prims.empty.default" ("shape" "dtype" "device" "requires_grad") prims::empty;
    "prims.empty_permuted.default" ("shape" "physical_layout" "dtype" "device" "requires_grad") prims::empty;
    "prims.empty_strided.default" ("shape" "strides" "dtype" "device" "requires_grad") prims::empty;
    "prims.fft_c2c.default" ("self" "dim" "forward") prims::fft_c2c;
    "prims.fft_c2r.default" ("self" "dim" "last_dim_size") prims::fft_c2r;
    "prims.fft_r2c.default" ("self" "dim" "onesided") prims::fft_r2c;
    "prims.full.default" ("shape" "fill_value" "dtype" "device" "requires_grad") prims::full;
    "prims.full_like.default" ("a" "fill_value" "dtype" "device" "requires_grad") prims::full_like;
    "prims.iota.default" ("length" "start" "step" "dtype" "device" "requires_grad") prims::iota;
    "prims.normal.default" ("shape" "mean" "std" "dtype" "device" "requires_grad" "generator") prims::normal;
    "prims.prod.default" ("inp" "dims" "output_dtype") prims::prod;
    "prims.scalar_tensor.default" ("s" "dtype" "device") prims::scalar_tensor;
    "prims.split_dim.default" ("a" "dim" "outer_length") prims::split_dim;
    "prims.sum.default" ("inp" "dims" "output_dtype") prims::sum;
    "prims.svd.default" ("A" "full_matrices") prims::svd;
    "prims.uniform.default" ("shape" "low" "high" "dtype" "device" "stride" "generator") prims::uniform;
    "prims.var.default" ("inp" "dims" "correction" "output_dtype") prims::var;
    "prims.view_of.default" ("a") prims::view_of;
    "quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default" ("input" "dtype") per_axis::choose_qparams_per_token_asymmetric;
    "quantized_decomposed.choose_qparams.tensor" ("input" "quant_min" "quant_max" "eps" "dtype") per_tensor::choose_qparams;
    "quantized_decomposed.choose_qparams_per_token.default" ("input" "dtype") per_axis::choose_qparams_per_token;
    "quantized_decomposed.choose_qparams_per_token_asymmetric.default" ("input" "dtype") per_axis::choose_qparams_per_token_asymmetric;
    "quantized_decomposed.choose_qparams_symmetric.tensor" ("input" "quant_min" "quant_max" "eps" "dtype") per_tensor::choose_qparams_symmetric;
    "quantized_decomposed.convert_element_type.no_fuse" ("a" "dtype") prims::convert_element_type;
    "quantized_decomposed.dequantize_per_channel.default" ("input" "scales" "zero_points" "axis" "quant_min" "quant_max" "dtype" "out_dtype") per_axis::dequantize_per_channel;
    "quantized_decomposed.dequantize_per_channel_group.default" ("input" "scales" "zero_points" "quant_min" "quant_max" "dtype" "group_size" "output_dtype") per_axis::dequantize_per_channel_group;
    "quantized_decomposed.dequantize_per_tensor.default" ("input" "scale" "zero_point" "quant_min" "quant_max" "dtype" "out_dtype") per_tensor::dequantize;
    "quantized_decomposed.dequantize_per_tensor.tensor" ("input" "scale" "zero_point" "quant_min" "quant_max" "dtype" "out_dtype") per_tensor::dequantize;
    "quantized_decomposed.dequantize_per_tensor.tensor2" ("input" "scale" "zero_point" "quant_min" "quant_max" "dtype" "out_dtype") per_tensor::dequantize;
    "quantized_decomposed.dequantize_per_token.default" ("input" "scales" "zero_points" "quant_min" "quant_max" "dtype" "output_dtype") per_axis::dequantize_per_token;
    "quantized_decomposed.fake_quant_per_channel.default" ("input" "scales" "zero_points" "axis" "quant_min" "quant_max") per_axis::fake_quant_per_channel;
    "quantized_decomposed.quantize_per_channel.default" ("input" "scales" "zero_points" "axis" "quant_min" "quant_max" "dtype") per_axis::quantize_per_channel;
    "quantized_decomposed.quantize_per_channel_group.default" ("input" "scales" "zero_points" "quant_min" "quant_max" "dtype" "group_size") per_axis::quantize_per_channel_group;
    "quantized_decomposed.quantize_per_tensor.default" ("input" "scale" "zero_point" "quant_min" "quant_max" "dtype") per_tensor::quantize;
    "quantized_decomposed.quantize_per_tensor.tensor" ("input" "scale" "zero_point" "quant_min" "quant_max" "dtype") per_tensor::quantize;
    "quantized_decomposed.quantize_per_tensor.tensor2" ("input" "scale" "zero_point" "quant_min" "quant_max" "dtype") per_tensor::quantize;
    "quantized_decomposed.quantize_per_token.default" ("input" "scales" "zero_points" "quant_min" "quant_max" "dtype") per_axis::quantize_per_token;
    "torchao.choose_qparams_affine.default" ("input" "mapping_type" "block_size" "target_dtype" "quant_min" "quant_max" "eps" "scale_dtype" "zero_point_dtype" "keepdim") affine::choose_qparams;
    "torchao.choose_scale_float8.default" ("tensor" "block_size" "float8_dtype" "scale_dtype" "hp_value_lb" "hp_value_ub") float8::choose_scale;
    "torchao.dequantize_affine.default" ("input" "block_size" "scale" "zero_point" "input_dtype" "quant_min" "quant_max" "output_dtype") affine::dequantize;
    "torchao.dequantize_affine_float8.default" ("tensor" "scale" "output_dtype") float8::dequantize;
    "torchao.dequantize_affine_float8_non_decomposed.default" ("tensor" "scale" "output_dtype") float8::dequantize;
    "torchao.quantize_affine.default" ("input" "block_size" "scale" "zero_point" "output_dtype" "quant_min" "quant_max") affine::quantize;
    "torchao.quantize_affine_float8.default" ("tensor" "scale" "float8_dtype") float8::quantize;
    "torchao.quantize_affine_float8_non_decomposed.default" ("tensor" "scale" "float8_dtype") float8::quantize;
    "torchvision.nms.default" ("boxes" "scores" "iou_threshold") vision::nms;
    "transformers.grouped_mm_fallback.default" ("input" "weight" "offs") experts::grouped_mm;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by(|a, b| a.op < b.op));
    }

    #[test]
    fn absent_arguments_are_none() {
        let given = Given { parameters: &["a", "b"], values: &[Value::Int(1)] };
        assert!(matches!((given.get("a"), given.get("b")), (Value::Int(1), Value::None)));
        assert_eq!(given.int("b").unwrap_err().to_string(), "argument b: expected an integer, found None");
    }
}
