//! The schema of the sparse dialect, IR version 2: one table from which parser, verifier, plan, printer and digest come.
//!
//! [`TYPES`] and [`ATTRIBUTES`] are the dialect's own types and attributes, [`OPS`] its operations with what they take,
//! give and must satisfy. [`digest`] is the number by which a graph says which schema it was written against; that it
//! equals the published one is how this table is known to be the right one.

mod describe;
mod digest;
mod keywords;
mod ops;

pub use describe::{describe, describe_all};
pub use digest::{SCHEMA_DIGEST, digest, document, known_version};
pub use keywords::{
    Activation, BinaryOp, Coord, Elementwise, Family, FeatureLayout, GeluApprox, InputRole, Join, OutputRole,
    PackingKind, PointInterpolation, PoolMode, VoxelReduction, WeightLayout,
};
pub use ops::{OPS, Op};

/// The namespace of every type, attribute and operation.
pub const NAMESPACE: &str = "lattice";

/// The version that `lattice.ir_version` must state.
pub const IR_VERSION: i64 = 2;

/// What `lattice.weight_file` must state.
pub const WEIGHT_FILE: &str = "weights.safetensors";

/// The function that a module holds.
pub const ENTRY: &str = "forward";

/// What `accumulation` must be: products and sums in f32, rounded once to the element type of the result.
pub const CANONICAL_F32: &str = "canonical_f32";

/// The attribute that holds a symbol.
pub const SYMBOL: &str = "sym_name";

/// The spatial rank that every sparse value has.
pub const RANK: u32 = 3;

/// The only `mode` of a packing.
pub const AFFINE: &str = "affine";

/// The group sizes that a packed weight may have.
pub const GROUP_SIZES: &[u32] = &[32, 64, 128];

/// A parameter of a type or attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, which the text of `sparse_tensor` and `packing` spells.
    pub name: &'static str,
    /// `unsigned`, `string` or `type`.
    pub kind: &'static str,
}

/// A type of the dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeDef {
    /// Its name.
    pub name: &'static str,
    /// What stands after `!lattice.`.
    pub mnemonic: &'static str,
    /// In the order in which they are written.
    pub parameters: &'static [Parameter],
}

/// An attribute of the dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeDef {
    /// Its name.
    pub name: &'static str,
    /// What stands after `#lattice.`.
    pub mnemonic: &'static str,
    /// In the order in which they are written.
    pub parameters: &'static [Parameter],
    /// The keywords that its first parameter may be.
    pub values: &'static [&'static str],
}

const fn parameter(name: &'static str, kind: &'static str) -> Parameter {
    Parameter { name, kind }
}

const VALUE: &[Parameter] = &[parameter("value", "string")];

const fn keyword(name: &'static str, mnemonic: &'static str, values: &'static [&'static str]) -> AttributeDef {
    AttributeDef { name, mnemonic, parameters: VALUE, values }
}

/// The dialect's types.
pub const TYPES: &[TypeDef] = &[
    TypeDef {
        name: "SparseTensor",
        mnemonic: "sparse_tensor",
        parameters: &[
            parameter("rank", "unsigned"),
            parameter("coord", "string"),
            parameter("feature", "string"),
            parameter("dtype", "type"),
        ],
    },
    TypeDef {
        name: "Weight",
        mnemonic: "weight",
        parameters: &[parameter("family", "string"), parameter("dtype", "type")],
    },
];

/// The dialect's attributes.
pub const ATTRIBUTES: &[AttributeDef] = &[
    keyword("Coord", "coord", Coord::NAMES),
    keyword("FeatureLayout", "feature_layout", FeatureLayout::NAMES),
    keyword("WeightLayout", "weight_layout", WeightLayout::NAMES),
    AttributeDef {
        name: "Packing",
        mnemonic: "packing",
        parameters: &[
            parameter("kind", "string"),
            parameter("group_size", "unsigned"),
            parameter("scale_dtype", "type"),
            parameter("mode", "string"),
        ],
        values: PackingKind::NAMES,
    },
    keyword("Activation", "activation", Activation::NAMES),
    keyword("GeluApprox", "gelu_approx", GeluApprox::NAMES),
    keyword("Join", "join", Join::NAMES),
    keyword("BinaryOp", "binary_op", BinaryOp::NAMES),
    keyword("PoolMode", "pool_mode", PoolMode::NAMES),
    keyword("VoxelReduction", "voxel_reduction", VoxelReduction::NAMES),
    keyword("PointInterpolation", "point_interpolation", PointInterpolation::NAMES),
];

/// What kind of value an operand or result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// No value: the symbol of `weight`, written `@name` and kept as the attribute `sym_name`.
    Symbol,
    /// `!lattice.sparse_tensor`.
    Sparse,
    /// `!lattice.weight`.
    Weight,
    /// A ranked tensor.
    Tensor,
    /// A ranked tensor of signless 32-bit integers.
    Indices,
}

impl Class {
    /// Its name in the schema document.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Symbol => "symbol",
            Class::Sparse => "sparse_tensor",
            Class::Weight => "weight",
            Class::Tensor | Class::Indices => "tensor",
        }
    }
}

/// An operand or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub class: Class,
    /// Whether it may be left out; only the last operand is ever optional.
    pub is_optional: bool,
}

/// What kind of attribute an operation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `array<i64: a, b, c>`.
    I64Triple,
    /// `array<f64: a, b, c>`.
    F64Triple,
    /// `0.5 : f32`.
    F32,
    /// `2 : i64`.
    I64,
    /// `"text"`.
    Str,
    /// One of the dialect's attributes, by mnemonic.
    Own(&'static str),
}

impl Kind {
    /// Its name in the schema document.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::I64Triple => "i64_triple",
            Kind::F64Triple => "f64_triple",
            Kind::F32 => "f32",
            Kind::I64 => "i64",
            Kind::Str => "str",
            Kind::Own(mnemonic) => mnemonic,
        }
    }
}

/// An attribute that an operation must have; there are no defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// How an operation is written when it is not in the generic form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assembly {
    /// `lattice.weight @symbol {…} : type`.
    Weight,
    /// `lattice.sparse.decompose %x {…} : type -> (types)`.
    Decompose,
    /// `lattice.OP %a, %b {…} : (types) -> type`.
    Functional,
}

impl Assembly {
    /// Its name in the schema document.
    pub const fn name(self) -> &'static str {
        match self {
            Assembly::Weight => "weight",
            Assembly::Decompose => "decompose",
            Assembly::Functional => "functional",
        }
    }
}

/// A condition on an operation, by the names of its values and attributes; `result` is its result.
///
/// That operands and attributes are there and of their class or kind, and that a keyword is one of its set, holds for every
/// operation and needs no rule. A tensor's element type and a sparse value's `dtype` are both called its element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// A sparse value has rank 3, coordinates `batch_x_y_z` and features `row_channel`.
    Convention(&'static str),
    /// Two sparse values agree in rank, coordinates and features.
    SameConvention(&'static str, &'static str),
    /// A weight operand, if it is there, is of a family.
    Family(&'static str, Family),
    /// A tensor has this many axes.
    Rank(&'static str, usize),
    /// An axis of a tensor has a static size.
    Size(&'static str, usize, u64),
    /// Two tensors have as many rows, where both sizes are static.
    SameRows(&'static str, &'static str),
    /// Two values have the same element.
    SameElement(&'static str, &'static str),
    /// A tensor's element is this one.
    Element(&'static str, m2m_record::DType),
    /// Every number of an attribute is above zero and finite.
    Positive(&'static str),
    /// Every number of an attribute is zero or more, and finite.
    NonNegative(&'static str),
    /// Every number of an attribute is finite.
    Finite(&'static str),
    /// Every number of a triple is odd.
    Odd(&'static str),
    /// An integer attribute is at least this.
    AtLeast(&'static str, i64),
    /// An integer attribute is one of these.
    OneOf(&'static str, &'static [i64]),
    /// A string attribute is one of these.
    Words(&'static str, &'static [&'static str]),
    /// A string attribute is not empty.
    NonEmpty(&'static str),
    /// An attribute of this name must not be there.
    Absent(&'static str),
    /// The coordinate order is that of the result's type.
    CoordOrder,
    /// A weight's family, layout and packing go together.
    Storage,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub struct OpDef {
    /// Which one.
    pub op: Op,
    /// What stands after `lattice.`.
    pub name: &'static str,
    /// In order; the optional one is last.
    pub operands: &'static [Value],
    /// In order.
    pub results: &'static [Value],
    /// In the order of the schema, in which they are printed.
    pub attributes: &'static [Field],
    /// Its pretty form.
    pub assembly: Assembly,
    /// What must hold, in the order in which it is checked.
    pub rules: &'static [Rule],
}

impl OpDef {
    /// The operands that are values, in order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &'static Value> + Clone + use<> {
        self.operands.iter().filter(|each| each.class != Class::Symbol)
    }

    /// The least and the greatest number of operands.
    pub fn arity(&self) -> (usize, usize) {
        let all = self.values().count();
        (all - self.values().filter(|each| each.is_optional).count(), all)
    }

    /// The attribute of a key.
    pub fn attribute(&self, name: &str) -> Option<&'static Field> {
        self.attributes.iter().find(|each| each.name == name)
    }

    /// Its name with the namespace.
    pub fn full_name(&self) -> String {
        format!("{NAMESPACE}.{}", self.name)
    }

    /// Its name in Python, with `_` for `.`.
    pub fn python_name(&self) -> String {
        self.name.replace('.', "_")
    }

    /// The family that a weight operand must be of.
    pub fn family(&self, operand: &str) -> Option<Family> {
        self.rules.iter().find_map(|rule| match rule {
            Rule::Family(name, family) if *name == operand => Some(*family),
            _ => None,
        })
    }

    /// What an attribute can only be, where that is one thing.
    pub fn only_choice(&self, field: &Field) -> Option<&'static str> {
        let words = match field.kind {
            Kind::Own(mnemonic) => ATTRIBUTES.iter().find(|each| each.mnemonic == mnemonic)?.values,
            _ => self.rules.iter().find_map(|rule| match rule {
                Rule::Words(name, words) if *name == field.name => Some(*words),
                _ => None,
            })?,
        };
        match words {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether it has a convolution's `accumulation`.
    pub fn is_convolution(&self) -> bool {
        self.attribute("accumulation").is_some()
    }
}

impl Op {
    /// Its row of the table.
    pub fn def(self) -> &'static OpDef {
        &OPS[self as usize]
    }

    /// The operation of a name without the namespace.
    pub fn parse(name: &str) -> Option<Op> {
        OPS.iter().find(|each| each.name == name).map(|each| each.op)
    }

    /// The operation of a name in Python.
    pub fn parse_python(name: &str) -> Option<Op> {
        OPS.iter().find(|each| each.python_name() == name).map(|each| each.op)
    }

    /// The operation of a name with the namespace.
    pub fn parse_full(name: &str) -> Option<Op> {
        Op::parse(name.strip_prefix(NAMESPACE)?.strip_prefix('.')?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_where_their_operation_looks() {
        for (at, row) in OPS.iter().enumerate() {
            assert_eq!(row.op as usize, at, "{}", row.name);
            assert_eq!(Op::parse_full(&row.full_name()), Some(row.op));
            assert_eq!(Op::parse_python(&row.python_name()), Some(row.op));
        }
        assert_eq!(OPS.len(), 31);
    }

    #[test]
    fn what_can_only_be_one_thing_is_known() {
        let choice = |op: Op, name: &str| op.def().only_choice(op.def().attribute(name).expect("of the operation"));
        assert_eq!(choice(Op::SparseMake, "coord_order"), Some("batch_x_y_z"));
        assert_eq!(choice(Op::Conv3d, "accumulation"), Some(CANONICAL_F32));
        assert_eq!(choice(Op::Elementwise, "kind"), None);
        assert_eq!(choice(Op::Pool3d, "mode"), None);
        assert_eq!(choice(Op::Conv3d, "stride"), None);
        assert_eq!(Op::BatchNorm.def().family("var"), Some(Family::Channel));
        assert_eq!(Op::BatchNorm.def().family("input"), None);
    }

    #[test]
    fn only_the_last_operand_is_optional() {
        for row in OPS {
            let optional = row.values().rev().skip(1).filter(|each| each.is_optional).count();
            assert_eq!(optional, 0, "{}", row.name);
        }
    }

    #[test]
    fn rules_name_what_their_operation_has() {
        for row in OPS {
            let is_value = |name: &str| row.values().chain(row.results).any(|each| each.name == name);
            let is_attribute = |name: &str| row.attribute(name).is_some();
            for rule in row.rules {
                let known = match *rule {
                    Rule::Convention(a) | Rule::Family(a, _) | Rule::Rank(a, _) | Rule::Size(a, ..) => is_value(a),
                    Rule::SameConvention(a, b) | Rule::SameRows(a, b) | Rule::SameElement(a, b) => {
                        is_value(a) && is_value(b)
                    }
                    Rule::Element(a, _) => is_value(a),
                    Rule::Positive(a) | Rule::NonNegative(a) | Rule::Finite(a) | Rule::Odd(a) => is_attribute(a),
                    Rule::AtLeast(a, _) | Rule::OneOf(a, _) | Rule::Words(a, _) | Rule::NonEmpty(a) => is_attribute(a),
                    Rule::Absent(a) => !is_attribute(a),
                    Rule::CoordOrder => is_attribute("coord_order"),
                    Rule::Storage => is_attribute("packing"),
                };
                assert!(known, "{}: {rule:?}", row.name);
            }
        }
    }
}
