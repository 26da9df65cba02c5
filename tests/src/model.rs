//! Makes a whole `.pt2` file of a program's JSON: reads which tensors the program's signature wants, gives them
//! counter-based weights (or holes), and writes the archive that `torch.export.save` of PyTorch 2.13 would.

use std::io::{self, BufWriter, Seek, Write};

use serde_json::{Map, Value, json};

use crate::archive::ArchiveWriter;
use crate::weights;

/// Why no model could be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is not JSON.
    #[error("the program is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The program lacks something that every exported program has.
    #[error("the program has no {0}")]
    Missing(String),
    /// A tensor whose elements cannot be made.
    #[error(
        "{name}: serialized dtype {dtype} has no counter-based values; there are 1-5 and 12 (integers), 6, 7, 8 and 13"
    )]
    Dtype {
        /// The tensor.
        name: String,
        /// Its number in the export schema.
        dtype: u64,
    },
    /// A shape that is symbolic or too large.
    #[error("{name}: the shape {shape} is no list of numbers whose product is below 2^63")]
    Shape {
        /// The tensor.
        name: String,
        /// The shape as the program spells it.
        shape: String,
    },
    /// The file could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How a tensor enters the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A parameter or persistent buffer, kept among the weights.
    Weight {
        /// Whether it is a parameter.
        is_param: bool,
    },
    /// A buffer that is not persistent, or a lifted constant.
    Constant,
    /// What the caller gives.
    Input,
}

/// A tensor of the program's signature.
pub struct Tensor {
    /// The qualified name, or `in_N` for an input.
    pub name: String,
    /// How it enters.
    pub kind: Kind,
    /// The shape.
    pub shape: Vec<u64>,
    /// The dtype's number in the export schema.
    pub dtype: u64,
    meta: Value,
}

impl Tensor {
    fn new(name: String, kind: Kind, meta: &Value) -> Result<Self, Error> {
        let dims = meta["sizes"].as_array().map(|sizes| sizes.iter().map(|size| size["as_int"].as_u64()).collect());
        let shape: Option<Vec<u64>> = dims.flatten();
        let dtype = meta["dtype"].as_u64();
        let (Some(shape), Some(dtype)) = (shape, dtype) else {
            return Err(Error::Shape { name, shape: meta["sizes"].to_string() });
        };
        let elements = shape.iter().try_fold(16u64, |product, size| product.checked_mul(*size));
        if elements.is_none_or(|product| product > i64::MAX as u64) {
            return Err(Error::Shape { name, shape: format!("{shape:?}") });
        }
        Ok(Tensor { name, kind, shape, dtype, meta: meta.clone() })
    }

    fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The bytes of one element.
    fn width(&self) -> Result<u64, Error> {
        match self.dtype {
            1 | 2 | 12 => Ok(1),
            3 | 6 | 13 => Ok(2),
            4 | 7 => Ok(4),
            5 | 8 => Ok(8),
            dtype => Err(Error::Dtype { name: self.name.clone(), dtype }),
        }
    }

    /// How many bytes the tensor holds.
    pub fn len_bytes(&self) -> Result<u64, Error> {
        Ok(self.elements() * self.width()?)
    }

    /// Writes the elements of tensor `number` in order.
    pub fn write(&self, number: u64, range: (f64, f64), out: &mut dyn Write) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, out);
        for element in 0..self.elements() {
            let value = weights::value(number, element, range);
            match self.dtype {
                7 => out.write_all(&(value as f32).to_le_bytes())?,
                13 => out.write_all(&half::bf16::from_f32(value as f32).to_le_bytes())?,
                6 => out.write_all(&half::f16::from_f32(value as f32).to_le_bytes())?,
                8 => out.write_all(&value.to_le_bytes())?,
                5 => out.write_all(&[0; 8])?,
                4 => out.write_all(&[0; 4])?,
                3 => out.write_all(&[0; 2])?,
                _ => out.write_all(&[0])?,
            }
        }
        out.flush()
    }
}

/// A program and the tensors of its signature, in order.
pub struct Model {
    text: String,
    /// Parameters, buffers, constants and inputs in signature order.
    pub tensors: Vec<Tensor>,
}

impl Model {
    /// Reads a program of the export schema.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let program: Value = serde_json::from_str(text)?;
        let module = &program["graph_module"];
        let specs = module["signature"]["input_specs"].as_array();
        let specs = specs.ok_or_else(|| Error::Missing("graph_module.signature.input_specs".into()))?;
        let mut tensors = Vec::new();
        let mut inputs = 0;
        for (kind, body) in specs.iter().filter_map(Value::as_object).flatten() {
            let (name, kind) = match kind.as_str() {
                "parameter" => (body["parameter_name"].as_str(), Kind::Weight { is_param: true }),
                "buffer" if body["persistent"] == json!(true) => {
                    (body["buffer_name"].as_str(), Kind::Weight { is_param: false })
                }
                "buffer" => (body["buffer_name"].as_str(), Kind::Constant),
                "tensor_constant" => (body["tensor_constant_name"].as_str(), Kind::Constant),
                "user_input" => (Some(""), Kind::Input),
                _ => continue,
            };
            let argument = if kind == Kind::Input { &body["arg"]["as_tensor"] } else { &body["arg"] };
            let mut name = name.ok_or_else(|| Error::Missing(format!("name in {body}")))?.to_owned();
            if kind == Kind::Input {
                name = format!("in_{inputs}");
                inputs += 1;
            }
            let value =
                argument["name"].as_str().ok_or_else(|| Error::Missing(format!("tensor argument in {body}")))?;
            tensors.push(Tensor::new(name, kind, &module["graph"]["tensor_values"][value])?);
        }
        Ok(Model { text: text.trim_end().to_owned(), tensors })
    }

    /// The tensors of the program's state with the number each has for `weights`.
    pub fn state(&self) -> impl Iterator<Item = (u64, &Tensor)> {
        (0..).zip(self.tensors.iter().filter(|tensor| tensor.kind != Kind::Input))
    }

    /// Writes the archive; `hollow` leaves the state's bytes as holes that read as zeros.
    pub fn write_archive<W: Write + Seek>(&self, out: W, hollow: bool) -> Result<W, Error> {
        let mut archive = ArchiveWriter::new(out, "model");
        let (mut weight_config, mut constant_config) = (Map::new(), Map::new());
        for (number, tensor) in self.state() {
            let (folder, prefix, config, is_param) = match tensor.kind {
                Kind::Weight { is_param } => ("weights", "weight", &mut weight_config, is_param),
                _ => ("constants", "tensor", &mut constant_config, false),
            };
            let path = format!("{prefix}_{}", config.len());
            let (entry, len_bytes) = (format!("data/{folder}/{path}"), tensor.len_bytes()?);
            if hollow {
                archive.hole(&entry, len_bytes)?;
            } else {
                let range = weights::range(&tensor.name, &tensor.shape);
                archive.stream(&entry, len_bytes, |out| tensor.write(number, range, out))?;
            }
            let meta =
                json!({"path_name": path, "is_param": is_param, "use_pickle": false, "tensor_meta": tensor.meta});
            config.insert(tensor.name.clone(), meta);
        }
        archive.bytes(
            "data/weights/model_weights_config.json",
            json!({ "config": weight_config }).to_string().as_bytes(),
        )?;
        archive.bytes(
            "data/constants/model_constants_config.json",
            json!({ "config": constant_config }).to_string().as_bytes(),
        )?;
        archive.bytes("models/model.json", self.text.as_bytes())?;
        archive.bytes("data/sample_inputs/model.pt", b"")?;
        archive.bytes("archive_format", b"pt2")?;
        archive.bytes("archive_version", b"0")?;
        archive.bytes(".data/version", b"6\n")?;
        archive.bytes("byteorder", b"little")?;
        archive.bytes(".data/serialization_id", &[b'0'; 40])?;
        Ok(archive.finish()?)
    }

    /// Writes the inputs as safetensors: floats of unit variance, integers of zero.
    pub fn write_inputs(&self, out: &mut dyn Write) -> Result<(), Error> {
        let inputs: Vec<&Tensor> = self.tensors.iter().filter(|tensor| tensor.kind == Kind::Input).collect();
        let (mut header, mut offset) = (Map::new(), 0);
        for tensor in &inputs {
            let dtype = match tensor.dtype {
                5 => "I64",
                7 => "F32",
                13 => "BF16",
                dtype => return Err(Error::Dtype { name: tensor.name.clone(), dtype }),
            };
            let end = offset + tensor.len_bytes()?;
            header.insert(
                tensor.name.clone(),
                json!({"dtype": dtype, "shape": tensor.shape, "data_offsets": [offset, end]}),
            );
            offset = end;
        }
        let mut text = Value::Object(header).to_string();
        let padded = (text.len() + 8).next_multiple_of(64) - 8;
        text.extend(std::iter::repeat_n(' ', padded - text.len()));
        out.write_all(&(text.len() as u64).to_le_bytes())?;
        out.write_all(text.as_bytes())?;
        for (index, tensor) in (0..).zip(inputs) {
            tensor.write(weights::FIRST_INPUT + index, weights::INPUT_RANGE, out)?;
        }
        Ok(())
    }
}
