//! What the allowed calls make: tensors, storages, devices and the few containers that are not opcodes.

use m2m_record::DType;

use super::globals::{self, Callable};
use super::machine::Machine;
use super::{Error, Global, Id, MAX_RANK, Object, Storage, Subclass, Tensor, Value};

/// Most arguments of a call that torch writes.
const MAX_ARGS: usize = 16;

/// The kinds of several values, for a message.
fn kinds(values: &[&Value<'_>]) -> String {
    values.iter().take(MAX_ARGS).map(|v| v.kind()).collect::<Vec<_>>().join(", ")
}

impl<'a> Machine<'a> {
    /// REDUCE: calls a global of the list, or describes the call when it is a subclass's own.
    pub(super) fn reduce(&mut self) -> Result<(), Error> {
        let (args, function) = (self.pop()?, self.pop()?);
        let (function, items) = match (self.value(function), self.value(args)) {
            (Value::Global(function), Value::Tuple(items)) if items.len() <= MAX_ARGS => (**function, items.clone()),
            (function, _) => return Err(self.operand("a function and a short tuple to call", function.kind())),
        };
        let value = match globals::callable(function) {
            Some(callable) => self.call(callable, function, &items)?,
            None if globals::is_plain(function) => {
                return Err(Error::Code { at: self.at, global: function.to_string() });
            }
            None => Value::Object(Box::new(Object { class: function, args, state: None })),
        };
        self.push(value);
        Ok(())
    }

    fn call(&mut self, callable: Callable, function: Global<'a>, args: &[Id]) -> Result<Value<'a>, Error> {
        match (callable, args) {
            (Callable::OrderedDict, []) => Ok(Value::Dict(Vec::new())),
            (Callable::OrderedDict, [pairs]) => self.pairs(*pairs),
            (Callable::Tensor, [storage, offset, sizes, strides, ..]) => {
                self.tensor(*storage, *offset, *sizes, *strides, None)
            }
            (Callable::TypedTensor, [storage, offset, sizes, strides, _, _, dtype, ..]) => {
                self.tensor(*storage, *offset, *sizes, *strides, Some(*dtype))
            }
            (Callable::MetaTensor, [dtype, sizes, strides, ..]) => {
                self.spend(2 * MAX_RANK)?;
                let (sizes, strides) = (self.dims(*sizes)?, self.dims(*strides)?);
                Ok(Value::Tensor(Box::new(Tensor {
                    storage: None,
                    dtype: self.dtype(*dtype)?,
                    offset: 0,
                    sizes,
                    strides,
                })))
            }
            (Callable::Parameter, [tensor, ..]) => self.parameter(*tensor),
            (Callable::FromType, [inner, class, args, state]) => self.typed(*inner, *class, *args, *state),
            (Callable::Size, [sizes]) => match self.value(*sizes) {
                Value::Tuple(items) | Value::List(items) => {
                    let items = items.clone();
                    self.spend(items.len())?;
                    Ok(Value::Tuple(items))
                }
                other => Err(self.operand("a tuple for torch.Size", other.kind())),
            },
            (Callable::Layout | Callable::Device | Callable::Complex, _) => self.simple(callable, args),
            _ => Err(self.operand("the arguments that torch writes", format!("{} for {function}", args.len()))),
        }
    }

    fn simple(&self, callable: Callable, args: &[Id]) -> Result<Value<'a>, Error> {
        let values: Vec<&Value<'a>> = args.iter().map(|&id| self.value(id)).collect();
        match (callable, values.as_slice()) {
            (Callable::Layout, [Value::Str(name)]) => Ok(Value::Layout(name)),
            (Callable::Device, [Value::Str(kind)]) => Ok(Value::Device(kind, None)),
            (Callable::Device, [Value::Str(kind), Value::Int(index)]) => Ok(Value::Device(kind, Some(*index))),
            (Callable::Complex, [Value::Float(re), Value::Float(im)]) => Ok(Value::Complex(*re, *im)),
            (_, values) => Err(self.operand("the arguments that torch writes", kinds(values))),
        }
    }

    /// A parameter is the tensor inside it.
    fn parameter(&mut self, tensor: Id) -> Result<Value<'a>, Error> {
        match self.value(tensor).clone() {
            Value::Tensor(tensor) => {
                self.spend(2 * tensor.sizes.len())?;
                Ok(Value::Tensor(tensor))
            }
            Value::Subclass(subclass) => {
                self.spend(subclass.attributes.len())?;
                Ok(Value::Subclass(subclass))
            }
            other => Err(self.operand("a tensor for a parameter", other.kind())),
        }
    }

    fn pairs(&mut self, list: Id) -> Result<Value<'a>, Error> {
        let (Value::List(items) | Value::Tuple(items)) = self.value(list) else {
            return Err(self.operand("a list of pairs", self.value(list).kind()));
        };
        let items = items.clone();
        self.spend(items.len())?;
        let mut dict = Vec::with_capacity(items.len());
        for item in items {
            match self.value(item) {
                Value::Tuple(pair) | Value::List(pair) if pair.len() == 2 => dict.push((pair[0], pair[1])),
                other => return Err(self.operand("a pair", other.kind())),
            }
        }
        Ok(Value::Dict(dict))
    }

    /// `_rebuild_from_type_v2` wraps every tensor that has Python attributes, and every tensor subclass.
    fn typed(&mut self, inner: Id, class: Id, args: Id, state: Id) -> Result<Value<'a>, Error> {
        let (Value::Global(inner), Value::Global(class), Value::Tuple(args)) =
            (self.value(inner).clone(), self.value(class).clone(), self.value(args).clone())
        else {
            return Err(self.operand("a function, a class and a tuple", self.value(inner).kind()));
        };
        if inner.name == "_rebuild_wrapper_subclass" {
            let Value::Dict(attributes) = self.value(state) else {
                return Err(self.operand("a dict of attributes", self.value(state).kind()));
            };
            let attributes = attributes.clone();
            self.spend(attributes.len())?;
            return Ok(Value::Subclass(Box::new(Subclass { class: *class, attributes })));
        }
        if !globals::is_plain(*class) {
            return Err(Error::Code { at: self.at, global: class.to_string() });
        }
        match (globals::callable(*inner), args.as_slice()) {
            (Some(Callable::Tensor), [storage, offset, sizes, strides, ..]) => {
                self.tensor(*storage, *offset, *sizes, *strides, None)
            }
            (Some(Callable::TypedTensor), [storage, offset, sizes, strides, _, _, dtype, ..]) => {
                self.tensor(*storage, *offset, *sizes, *strides, Some(*dtype))
            }
            (Some(Callable::Parameter), [tensor, ..]) => self.parameter(*tensor),
            _ => Err(Error::Code { at: self.at, global: inner.to_string() }),
        }
    }

    fn tensor(
        &mut self,
        storage: Id,
        offset: Id,
        sizes: Id,
        strides: Id,
        dtype: Option<Id>,
    ) -> Result<Value<'a>, Error> {
        let Value::Storage(storage) = self.value(storage).clone() else {
            return Err(self.operand("a storage", self.value(storage).kind()));
        };
        let dtype = match dtype {
            Some(id) => self.dtype(id)?,
            None => storage.dtype.ok_or_else(|| self.operand("a typed storage", "an untyped one"))?,
        };
        let (sizes, strides, offset) = (self.dims(sizes)?, self.dims(strides)?, self.int(offset)?);
        if sizes.len() != strides.len() || offset < 0 {
            return Err(self.operand("one stride a dimension and a positive offset", format!("{sizes:?}, {strides:?}")));
        }
        self.spend(2 * sizes.len())?;
        Ok(Value::Tensor(Box::new(Tensor { storage: Some(*storage), dtype, offset, sizes, strides })))
    }

    fn dtype(&self, id: Id) -> Result<DType, Error> {
        if let Value::Global(global) = self.value(id)
            && let Some(dtype) = globals::dtype(**global)
        {
            return Ok(dtype);
        }
        Err(self.operand("a torch dtype", self.value(id).kind()))
    }

    fn int(&self, id: Id) -> Result<i64, Error> {
        match self.value(id) {
            Value::Int(n) => Ok(*n),
            other => Err(self.operand("an integer", other.kind())),
        }
    }

    fn dims(&self, id: Id) -> Result<Vec<i64>, Error> {
        match self.value(id) {
            Value::Tuple(items) | Value::List(items) if items.len() <= MAX_RANK => {
                let dims = items.iter().map(|&id| self.int(id)).collect::<Result<Vec<_>, _>>()?;
                match dims.iter().find(|&&n| n < 0) {
                    Some(n) => Err(self.operand("sizes and strides from 0", n.to_string())),
                    None => Ok(dims),
                }
            }
            other => Err(self.operand("a tuple of at most 64 integers", other.kind())),
        }
    }

    /// BINPERSID: a storage beside the pickle.
    pub(super) fn persistent(&mut self) -> Result<(), Error> {
        let id = self.pop()?;
        let Value::Tuple(items) = self.value(id) else {
            return Err(self.operand("a tuple as persistent id", self.value(id).kind()));
        };
        let values: Vec<&Value<'a>> = items.iter().map(|&id| self.value(id)).collect();
        let [Value::Str("storage"), Value::Global(class), Value::Str(key), Value::Str(device), Value::Int(len)] =
            values.as_slice()
        else {
            return Err(self.operand("(\"storage\", class, key, device, size)", kinds(&values)));
        };
        let dtype =
            globals::storage_dtype(**class).ok_or_else(|| self.operand("a storage class", class.to_string()))?;
        let storage = Storage { key, dtype, len: *len, device };
        self.push(Value::Storage(Box::new(storage)));
        Ok(())
    }
}
