//! Pickles without Python: an interpreter that can build containers, numbers, strings and tensor descriptions, and
//! nothing else.
//!
//! Every global must be on a list; a call of anything else stops the reader with the name and the byte where it stands.
//! Nothing is ever executed. Tensor subclasses become a class name with its attributes ([`Policy::Subclass`]). Values live
//! in one arena and refer to each other by number, so a pickle can neither blow up memory nor the stack.

mod build;
mod globals;
mod machine;

use thiserror::Error;

pub use globals::storage_dtype;
pub use machine::load;

use m2m_record::DType;

/// Largest pickle that is interpreted; the pickle of a hundred thousand tensors is smaller.
pub const MAX_PICKLE_BYTES: usize = 32 << 20;

/// Most dimensions that a tensor may have, as in PyTorch.
pub const MAX_RANK: usize = 64;

/// Deepest nesting of containers that callers follow.
pub const MAX_DEPTH: usize = 64;

/// Which classes a pickle may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Tensors, containers and plain values only.
    Tensors,
    /// Also one tensor subclass, with inert attribute objects from the package that defines it.
    Subclass,
}

/// A value's number in its [`Pickle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(pub(crate) u32);

/// What a pickle described.
#[derive(Debug)]
pub struct Pickle<'a> {
    values: Vec<Value<'a>>,
    root: Id,
}

impl<'a> Pickle<'a> {
    /// The value that the pickle is about.
    pub fn root(&self) -> Id {
        self.root
    }

    /// One value. An id of another pickle gives `None`.
    pub fn value(&self, id: Id) -> &Value<'a> {
        self.values.get(id.0 as usize).unwrap_or(&Value::None)
    }
}

/// One value of a pickle.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// `None`.
    None,
    /// `True` and `False`.
    Bool(bool),
    /// An integer of at most 64 bits.
    Int(i64),
    /// A float.
    Float(f64),
    /// `complex(re, im)`.
    Complex(f64, f64),
    /// Text.
    Str(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A tuple, or `torch.Size`.
    Tuple(Vec<Id>),
    /// A list.
    List(Vec<Id>),
    /// A dict or `OrderedDict`, in insertion order.
    Dict(Vec<(Id, Id)>),
    /// A class or function, named but not looked up.
    Global(Box<Global<'a>>),
    /// A storage of the enclosing file.
    Storage(Box<Storage<'a>>),
    /// A tensor over such a storage.
    Tensor(Box<Tensor<'a>>),
    /// A tensor of a subclass, as class and attributes.
    Subclass(Box<Subclass<'a>>),
    /// An inert object of a subclass's package: its class, constructor arguments and state.
    Object(Box<Object<'a>>),
    /// A device such as `cpu` or `cuda:0`.
    Device(&'a str, Option<i64>),
    /// A layout such as `torch.strided`.
    Layout(&'a str),
}

impl Value<'_> {
    /// What kind of value it is, for messages.
    pub fn kind(&self) -> String {
        match self {
            Value::None => "None".into(),
            Value::Bool(b) => format!("the bool {b}"),
            Value::Int(n) => format!("the integer {n}"),
            Value::Float(x) => format!("the float {x}"),
            Value::Complex(..) => "a complex number".into(),
            Value::Str(s) => format!("a string of {} bytes", s.len()),
            Value::Bytes(b) => format!("{} bytes", b.len()),
            Value::Tuple(items) => format!("a tuple of {}", items.len()),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Dict(items) => format!("a dict of {}", items.len()),
            Value::Global(global) => format!("the name {global}"),
            Value::Storage(_) => "a storage".into(),
            Value::Tensor(_) => "a tensor".into(),
            Value::Subclass(s) => format!("a tensor of class {}", s.class),
            Value::Object(o) => format!("an object of class {}", o.class),
            Value::Device(..) => "a device".into(),
            Value::Layout(_) => "a layout".into(),
        }
    }
}

/// A dotted name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Global<'a> {
    /// `torch._utils`.
    pub module: &'a str,
    /// `_rebuild_tensor_v2`.
    pub name: &'a str,
}

impl std::fmt::Display for Global<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.module, self.name)
    }
}

/// A persistent id: bytes of `data/KEY` beside the pickle.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage<'a> {
    /// Name of the entry under `data/`.
    pub key: &'a str,
    /// The typed storage's dtype; untyped storages have none, their `len` counts bytes.
    pub dtype: Option<DType>,
    /// Elements, or bytes when untyped.
    pub len: i64,
    /// Where it lived.
    pub device: &'a str,
}

/// A tensor: a view of a storage.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor<'a> {
    /// Its storage, absent for tensors of the `meta` device.
    pub storage: Option<Storage<'a>>,
    /// Element type.
    pub dtype: DType,
    /// First element, counted in elements.
    pub offset: i64,
    /// Shape.
    pub sizes: Vec<i64>,
    /// In elements.
    pub strides: Vec<i64>,
}

/// A tensor subclass in pieces.
#[derive(Debug, Clone, PartialEq)]
pub struct Subclass<'a> {
    /// Its class.
    pub class: Global<'a>,
    /// Attribute names and values.
    pub attributes: Vec<(Id, Id)>,
}

/// An object that is described, never built.
#[derive(Debug, Clone, PartialEq)]
pub struct Object<'a> {
    /// Its class.
    pub class: Global<'a>,
    /// A tuple of constructor arguments.
    pub args: Id,
    /// What BUILD would have set.
    pub state: Option<Id>,
}

/// Why a pickle was refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Larger than any pickle of tensors.
    #[error("{len} bytes of pickle; at most {MAX_PICKLE_BYTES} are read")]
    TooLarge {
        /// Its size.
        len: usize,
    },
    /// The pickle stops in the middle.
    #[error("byte {at}: the pickle ends within {what}")]
    Truncated {
        /// Offset of the opcode.
        at: usize,
        /// What was being read.
        what: &'static str,
    },
    /// An opcode that no pickle of tensors has.
    #[error("byte {at}: opcode {code:#04x} is not one that a pickle of tensors needs")]
    Opcode {
        /// Offset of the opcode.
        at: usize,
        /// Its number.
        code: u8,
    },
    /// A global that is not on the list, or is used in a way that is not.
    #[error("byte {at}: {global} would have to be run; a pickle may hold tensors, containers and plain values only")]
    Code {
        /// Offset of the opcode.
        at: usize,
        /// Dotted name.
        global: String,
    },
    /// Well-known opcode, impossible operands.
    #[error("byte {at}: {what}; found {found}")]
    Operand {
        /// Offset of the opcode.
        at: usize,
        /// What would be right.
        what: &'static str,
        /// What is there.
        found: String,
    },
}
