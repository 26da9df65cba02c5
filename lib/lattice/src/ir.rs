//! A graph as it was read, from text or bytecode: operations, types and attributes, before any rule is applied.
//!
//! Only what the dialect needs has a form of its own; whatever else MLIR allows is kept as its text.

use crate::finding::Offset;
use crate::schema;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

/// A type, by its place in [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(u32);

/// A value, by its place in [`Graph::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A type that could not be read; whatever holds it has been reported.
    Unknown,
    /// `i32`, `f16`, `index`, `none`, … by name.
    Scalar(Box<str>),
    /// `tensor<…>`; without a shape it is unranked.
    Tensor {
        /// Sizes; `None` within is dynamic.
        shape: Option<Box<[Option<u64>]>>,
        /// Element.
        element: TypeId,
        /// The text of its encoding.
        encoding: Option<Box<str>>,
    },
    /// `!lattice.sparse_tensor<…>`.
    Sparse {
        /// Spatial rank.
        rank: u64,
        /// Coordinate order.
        coord: Box<str>,
        /// Feature order.
        feature: Box<str>,
        /// Element of the features.
        dtype: TypeId,
    },
    /// `!lattice.weight<…>`.
    Weight {
        /// Family.
        family: Box<str>,
        /// Element.
        dtype: TypeId,
    },
    /// `(types) -> types`.
    Function {
        /// What it takes.
        arguments: Box<[TypeId]>,
        /// What it gives.
        results: Box<[TypeId]>,
    },
    /// Any other, by its text.
    Other(Box<str>),
}

/// Longest text of the parts of a type that is spelled out.
const MAX_TYPE_TEXT: usize = 1 << 12;

/// All types of a graph, each once.
#[derive(Clone, Debug)]
pub struct Types {
    list: Vec<Type>,
    texts: Vec<Box<str>>,
    places: HashMap<Type, TypeId>,
}

impl Default for Types {
    fn default() -> Self {
        let mut types = Types { list: Vec::new(), texts: Vec::new(), places: HashMap::new() };
        types.intern(Type::Unknown);
        types
    }
}

impl Types {
    /// The type that could not be read.
    pub const UNKNOWN: TypeId = TypeId(0);

    /// The place of a type.
    pub fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(id) = self.places.get(&ty) {
            return *id;
        }
        let id = TypeId(self.list.len() as u32);
        let parts = match &ty {
            Type::Function { arguments, results } => arguments.iter().chain(results).copied().collect(),
            Type::Tensor { element, .. } => vec![*element],
            Type::Sparse { dtype, .. } | Type::Weight { dtype, .. } => vec![*dtype],
            _ => Vec::new(),
        };
        let length = parts.iter().map(|part| self.text(*part).len()).fold(0, usize::saturating_add);
        // Types that name others twice double at each step; no type of a graph is nearly as long.
        let text = if length > MAX_TYPE_TEXT { "<<very long type>>".to_owned() } else { self.print(&ty) };
        self.texts.push(text.into());
        self.list.push(ty.clone());
        self.places.insert(ty, id);
        id
    }

    /// A scalar by name.
    pub fn scalar(&mut self, name: &str) -> TypeId {
        self.intern(Type::Scalar(name.into()))
    }

    /// The type.
    pub fn get(&self, id: TypeId) -> &Type {
        self.list.get(id.0 as usize).unwrap_or(&Type::Unknown)
    }

    /// Its canonical text.
    pub fn text(&self, id: TypeId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    fn print(&self, ty: &Type) -> String {
        match ty {
            Type::Unknown => "<<unreadable type>>".to_owned(),
            Type::Scalar(name) | Type::Other(name) => name.to_string(),
            Type::Tensor { shape, element, encoding } => {
                let mut out = String::from("tensor<");
                match shape {
                    None => out.push_str("*x"),
                    Some(shape) => shape.iter().for_each(|size| {
                        let _ = match size {
                            Some(size) => write!(out, "{size}x"),
                            None => write!(out, "?x"),
                        };
                    }),
                }
                out.push_str(self.text(*element));
                if let Some(encoding) = encoding {
                    let _ = write!(out, ", {encoding}");
                }
                out.push('>');
                out
            }
            Type::Sparse { rank, coord, feature, dtype } => format!(
                "!lattice.sparse_tensor<rank = {rank}, coord = {}, feature = {}, dtype = {}>",
                keyword_text(coord),
                keyword_text(feature),
                self.text(*dtype)
            ),
            Type::Function { arguments, results } => {
                let list = |types: &[TypeId]| types.iter().map(|ty| self.text(*ty)).collect::<Vec<_>>().join(", ");
                match results.as_ref() {
                    [one] if !matches!(self.get(*one), Type::Function { .. }) => {
                        format!("({}) -> {}", list(arguments), self.text(*one))
                    }
                    results => format!("({}) -> ({})", list(arguments), list(results)),
                }
            }
            Type::Weight { family, dtype } => {
                format!("!lattice.weight<{}, {}>", keyword_text(family), self.text(*dtype))
            }
        }
    }
}

/// A keyword as MLIR prints it: quoted where it is no bare identifier.
pub fn keyword_text(text: &str) -> Cow<'_, str> {
    let mut bytes = text.bytes();
    let is_bare = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.'));
    if is_bare { text.into() } else { quoted(text).into() }
}

/// A string literal as MLIR prints it.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' if byte != b'"' => out.push(byte.into()),
            _ => {
                let _ = write!(out, "\\{byte:02X}");
            }
        }
    }
    out.push('"');
    out
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute<'a> {
    /// One that could not be read; that has been reported.
    Unknown,
    /// A key without a value.
    Unit,
    /// An integer as it was written, before it is wrapped to its type.
    Int {
        /// Its value.
        value: i128,
        /// Its type: an integer or `index`. `true` and `false` are of type `i1`.
        ty: TypeId,
    },
    /// A float, rounded to its type and widened.
    Float {
        /// Its value.
        value: f64,
        /// Its type.
        ty: TypeId,
    },
    /// A string.
    Str(Cow<'a, str>),
    /// `[…]`.
    Array(Vec<Attribute<'a>>),
    /// `array<i64: …>`.
    I64s(Vec<i64>),
    /// `array<f64: …>`.
    F64s(Vec<f64>),
    /// `@a`, the leaf of `@a::@b`.
    Symbol(Cow<'a, str>),
    /// A type.
    Type(TypeId),
    /// `#lattice.NAME<keyword>`.
    Keyword {
        /// The row of the attribute table.
        def: &'static schema::AttributeDef,
        /// The keyword.
        keyword: Cow<'a, str>,
    },
    /// `#lattice.packing<…>`.
    Packing(Box<Packing<'a>>),
    /// Any other, by its text.
    Other(Cow<'a, str>),
}

impl Attribute<'_> {
    /// How many attributes and numbers it is made of, itself included.
    pub(crate) fn nodes(&self) -> usize {
        match self {
            Attribute::Array(items) => items.iter().map(Attribute::nodes).fold(1, usize::saturating_add),
            Attribute::I64s(items) => 1 + items.len(),
            Attribute::F64s(items) => 1 + items.len(),
            _ => 1,
        }
    }
}

/// `#lattice.packing<…>`; a dense one has only its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Packing<'a> {
    /// `dense`, `int4`, `int8`, or what stands there.
    pub kind: Cow<'a, str>,
    /// As written.
    pub group_size: i128,
    /// The type of scales and biases.
    pub scale_dtype: Option<TypeId>,
    /// `affine`, or what stands there.
    pub mode: Cow<'a, str>,
}

/// A key and its attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// The key.
    pub key: Cow<'a, str>,
    /// Where the key stands.
    pub at: Option<Offset>,
    /// The value.
    pub value: Attribute<'a>,
}

/// Which operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// `builtin.module`.
    Module,
    /// `func.func`.
    Function,
    /// `func.return`.
    Return,
    /// One of the dialect.
    Own(schema::Op),
    /// Any other; it has been reported.
    Foreign(Cow<'a, str>),
}

impl Name<'_> {
    /// The name with its namespace.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Name::Module => "builtin.module".into(),
            Name::Function => "func.func".into(),
            Name::Return => "func.return".into(),
            Name::Own(op) => op.def().full_name().into(),
            Name::Foreign(name) => name.as_ref().into(),
        }
    }
}

/// A use of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The value.
    pub value: Value,
    /// Where it is used.
    pub at: Option<Offset>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation<'a> {
    /// Which one.
    pub name: Name<'a>,
    /// Where its name stands.
    pub at: Option<Offset>,
    /// What it takes.
    pub operands: Vec<Use>,
    /// The first of its results; the others follow.
    pub first_result: Value,
    /// How many results it has.
    pub results: u32,
    /// Its attributes in the order of the text.
    pub attributes: Vec<Entry<'a>>,
    /// Its regions.
    pub regions: Vec<Region<'a>>,
    /// Of a function.
    pub function: Option<Box<Function>>,
    /// Whether its text could not be read to the end, which has been reported: only what stands here was read.
    pub is_broken: bool,
}

impl<'a> Operation<'a> {
    /// One of this name with nothing in it yet, not of any text.
    pub fn named(name: Name<'a>) -> Self {
        Operation {
            name,
            at: None,
            operands: Vec::new(),
            first_result: Value(0),
            results: 0,
            attributes: Vec::new(),
            regions: Vec::new(),
            function: None,
            is_broken: false,
        }
    }

    /// The attribute of a key.
    pub fn attribute(&self, key: &str) -> Option<&Entry<'a>> {
        self.attributes.iter().find(|each| each.key == key)
    }

    /// Its results.
    pub fn result_values(&self) -> impl Iterator<Item = Value> + use<> {
        (self.first_result.0..self.first_result.0.saturating_add(self.results)).map(Value)
    }
}

/// The signature of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name, without `@`.
    pub name: String,
    /// Types of the arguments.
    pub arguments: Vec<TypeId>,
    /// Types of the results.
    pub results: Vec<TypeId>,
    /// Whether the signature could not be read, which has been reported.
    pub is_broken: bool,
}

/// A region.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region<'a> {
    /// Its blocks.
    pub blocks: Vec<Block<'a>>,
}

/// A block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block<'a> {
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// Its operations.
    pub ops: Vec<Operation<'a>>,
}

/// A whole file.
#[derive(Clone, Debug, Default)]
pub struct Graph<'a> {
    /// The types.
    pub types: Types,
    /// The type of each value.
    pub values: Vec<TypeId>,
    /// The operations at the top of the file, among them the module.
    pub ops: Vec<Operation<'a>>,
}

impl Graph<'_> {
    /// The type of a value.
    pub fn type_of(&self, value: Value) -> TypeId {
        self.values.get(value.0 as usize).copied().unwrap_or(Types::UNKNOWN)
    }
}
