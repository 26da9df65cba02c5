//! The rules of one operation: what every operation must have, and those of its row in the table.

use crate::finding::{Code, Findings, Offset};
use crate::ir::{Attribute, Entry, Graph, Operation, Type, TypeId, Types};
use crate::plan::{element, element_name};
use crate::schema::{
    AFFINE, ATTRIBUTES, Class, Coord, Family, FeatureLayout, Field, GROUP_SIZES, Kind, OpDef, PackingKind, RANK, Rule,
    SYMBOL, Value, WeightLayout,
};
use m2m_record::DType;

/// Greatest size, stride, padding and dilation: coordinates are 32-bit integers.
pub(super) const MAX_COORDINATE: i64 = i32::MAX as i64;

/// One operation of the dialect with its row.
pub(super) struct View<'v, 'a> {
    pub graph: &'v Graph<'a>,
    pub op: &'v Operation<'a>,
    pub def: &'static OpDef,
}

/// A value of an operation by name: its type, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub ty: TypeId,
    pub at: Option<Offset>,
}

impl<'v, 'a> View<'v, 'a> {
    /// The operand or result of a name; `None` where it is left out.
    pub fn value(&self, name: &str) -> Option<Seen> {
        if let Some(at) = self.def.values().position(|each| each.name == name) {
            let operand = self.op.operands.get(at)?;
            return Some(Seen { ty: self.graph.type_of(operand.value), at: operand.at });
        }
        let at = self.def.results.iter().position(|each| each.name == name)?;
        let value = self.op.result_values().nth(at)?;
        Some(Seen { ty: self.graph.type_of(value), at: self.op.at })
    }

    pub fn text(&self, ty: TypeId) -> &'v str {
        self.graph.types.text(ty)
    }

    pub fn get(&self, ty: TypeId) -> &'v Type {
        self.graph.types.get(ty)
    }

    /// Sizes of a ranked tensor.
    pub fn shape(&self, ty: TypeId) -> Option<&'v [Option<u64>]> {
        match self.get(ty) {
            Type::Tensor { shape: Some(shape), .. } => Some(shape),
            _ => None,
        }
    }

    /// The element of a tensor, a sparse value or a weight.
    pub fn element(&self, ty: TypeId) -> Option<TypeId> {
        match self.get(ty) {
            Type::Tensor { element, .. } => Some(*element),
            Type::Sparse { dtype, .. } | Type::Weight { dtype, .. } => Some(*dtype),
            _ => None,
        }
    }

    fn entry(&self, name: &str) -> Option<&'v Entry<'a>> {
        self.op.attribute(name)
    }

    pub fn triple(&self, name: &str) -> Option<[i64; 3]> {
        match &self.entry(name)?.value {
            Attribute::I64s(items) => items.as_slice().try_into().ok(),
            _ => None,
        }
    }
}

/// Checks one operation.
pub(super) fn check(view: &View<'_, '_>, findings: &mut Findings) {
    let mut rules = Rules { view, findings };
    if view.op.is_broken {
        return;
    }
    rules.shape();
    for field in view.def.attributes {
        rules.field(field);
    }
    rules.other_attributes();
    for rule in view.def.rules {
        rules.rule(rule);
    }
    rules.coordinates();
}

struct Rules<'r, 'v, 'a> {
    view: &'r View<'v, 'a>,
    findings: &'r mut Findings,
}

impl<'v, 'a> Rules<'_, 'v, 'a> {
    fn say(&mut self, code: Code, at: Option<Offset>, message: &str) {
        let message = format!("lattice.{}: {message}", self.view.def.name);
        self.findings.push(code, at.or(self.view.op.at), message);
    }

    /// Numbers and classes of operands and results.
    fn shape(&mut self) {
        let (op, def) = (self.view.op, self.view.def);
        if !op.regions.is_empty() {
            self.say(Code::Regions, op.at, &format!("{} regions; expected none", op.regions.len()));
        }
        let (least, most) = def.arity();
        let count = op.operands.len();
        if !(least..=most).contains(&count) {
            let names: Vec<&str> = def.values().map(|each| each.name).collect();
            let range = if least == most { least.to_string() } else { format!("{least} or {most}") };
            let message = format!("{count} operands; expected {range}: {}", names.join(", "));
            self.say(Code::OperandCount, op.at, &message);
        }
        if op.results as usize != def.results.len() {
            let message = format!("{} results; expected {}", op.results, def.results.len());
            self.say(Code::ResultCount, op.at, &message);
        }
        for (value, code) in
            def.values().map(|v| (v, Code::OperandClass)).chain(def.results.iter().map(|v| (v, Code::ResultClass)))
        {
            self.class(value, code);
        }
    }

    fn class(&mut self, value: &Value, code: Code) {
        let Some(seen) = self.view.value(value.name) else { return };
        if seen.ty == Types::UNKNOWN {
            return;
        }
        let (fits, what) = match (value.class, self.view.get(seen.ty)) {
            (Class::Sparse, Type::Sparse { .. }) | (Class::Weight, Type::Weight { .. }) => (true, ""),
            (Class::Tensor, Type::Tensor { shape: Some(_), element: of, encoding: None }) => {
                (*of == Types::UNKNOWN || element(self.view.text(*of)).is_some(), "a ranked tensor of numbers")
            }
            (Class::Indices, Type::Tensor { shape: Some(_), element, encoding: None }) => {
                (self.view.text(*element) == "i32", "a ranked tensor of i32")
            }
            (Class::Sparse, _) => (false, "a !lattice.sparse_tensor"),
            (Class::Weight, _) => (false, "a !lattice.weight"),
            (Class::Tensor, _) => (false, "a ranked tensor of numbers, without an encoding"),
            _ => (false, "a ranked tensor of i32, without an encoding"),
        };
        if !fits {
            let message = format!("{} is {}; expected {what}", value.name, self.view.text(seen.ty));
            self.say(code, seen.at, &message);
        }
    }

    /// One attribute: that it is there and holds what it should.
    fn field(&mut self, field: &Field) {
        let Some(entry) = self.view.entry(field.name) else {
            let message = format!("attribute {} is missing; there are no defaults", field.name);
            return self.say(Code::MissingAttribute, self.view.op.at, &message);
        };
        if entry.value == Attribute::Unknown {
            return;
        }
        let types = &self.view.graph.types;
        let expected = match (field.kind, &entry.value) {
            (Kind::I64Triple, Attribute::I64s(items)) if items.len() == 3 => return,
            (Kind::F64Triple, Attribute::F64s(items)) if items.len() == 3 => return,
            (Kind::F32, Attribute::Float { ty, .. }) if types.text(*ty) == "f32" => return,
            (Kind::I64, Attribute::Int { value, ty }) if types.text(*ty) == "i64" => {
                if i64::try_from(*value).is_err() {
                    let message = format!("{} is {value}, beyond a signed 64-bit integer", field.name);
                    self.say(Code::NumberRange, entry.at, &message);
                }
                return;
            }
            (Kind::Str, Attribute::Str(_)) => return,
            (Kind::Own("packing"), Attribute::Packing(_)) => return,
            (Kind::Own(mnemonic), Attribute::Keyword { def, keyword }) if def.mnemonic == mnemonic => {
                if !def.values.contains(&keyword.as_ref()) {
                    let message = format!("{} is {keyword}; expected {}", field.name, def.values.join(", "));
                    self.say(Code::Keyword, entry.at, &message);
                }
                return;
            }
            (Kind::I64Triple, _) => "array<i64: a, b, c>".to_owned(),
            (Kind::F64Triple, _) => "array<f64: a, b, c>".to_owned(),
            (Kind::F32, _) => "a number of type f32".to_owned(),
            (Kind::I64, _) => "an integer of type i64".to_owned(),
            (Kind::Str, _) => "a string".to_owned(),
            (Kind::Own(mnemonic), _) => {
                let values =
                    ATTRIBUTES.iter().find(|each| each.mnemonic == mnemonic).map_or(&[][..], |each| each.values);
                format!("#lattice.{mnemonic}<{}>", values.join("|"))
            }
        };
        self.say(Code::AttributeKind, entry.at, &format!("{} holds something else; expected {expected}", field.name));
    }

    fn other_attributes(&mut self) {
        let def = self.view.def;
        let takes_symbol = def.operands.iter().any(|each| each.class == Class::Symbol);
        match self.view.entry(SYMBOL).map(|entry| &entry.value) {
            None if takes_symbol => self.say(Code::MissingAttribute, self.view.op.at, "the symbol, @name, is missing"),
            Some(Attribute::Str(_) | Attribute::Unknown) | None => {}
            Some(_) => {
                self.say(Code::AttributeKind, self.view.op.at, "sym_name holds something else; expected a string")
            }
        }
        for entry in &self.view.op.attributes {
            let key = entry.key.as_ref();
            let is_forbidden = def.rules.iter().any(|rule| *rule == Rule::Absent(name_of(key)));
            if def.attribute(key).is_none() && key != SYMBOL && !is_forbidden {
                let known: Vec<&str> = def.attributes.iter().map(|each| each.name).collect();
                let hint =
                    if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
                self.say(Code::UnknownAttribute, entry.at, &format!("unknown attribute {key:?}; {hint}"));
            }
        }
    }

    fn rule(&mut self, rule: &Rule) {
        match *rule {
            Rule::Convention(name) => self.convention(name),
            Rule::SameConvention(a, b) => self.same_convention(a, b),
            Rule::Family(name, family) => self.family(name, family),
            Rule::Rank(name, rank) => self.rank(name, rank),
            Rule::Size(name, axis, size) => self.size(name, axis, size),
            Rule::SameRows(a, b) => self.same_rows(a, b),
            Rule::SameElement(a, b) => self.same_element(a, b),
            Rule::Element(name, dtype) => self.element(name, dtype),
            Rule::Positive(name) => self.numbers(name, Code::Positive, "more than 0", |x| x > 0.0),
            Rule::NonNegative(name) => self.numbers(name, Code::NonNegative, "0 or more", |x| x >= 0.0),
            Rule::Finite(name) => self.numbers(name, Code::Finite, "a finite number", |_| true),
            Rule::Odd(name) => {
                if let Some(triple) = self.view.triple(name).filter(|t| t.iter().any(|n| n % 2 == 0)) {
                    let message = format!("{name} is {triple:?}; expected an odd number along every axis");
                    self.say(Code::Odd, self.at(name), &message);
                }
            }
            Rule::AtLeast(name, least) => {
                if let Some(value) = self.int(name).filter(|value| *value < i128::from(least)) {
                    let message = format!("{name} is {value}; expected {least} or more");
                    self.say(Code::Value, self.at(name), &message);
                }
            }
            Rule::OneOf(name, values) => {
                if let Some(value) = self.int(name).filter(|n| !values.iter().any(|v| i128::from(*v) == *n)) {
                    let message = format!("{name} is {value}; expected {}", join(values));
                    self.say(Code::Value, self.at(name), &message);
                }
            }
            Rule::Words(name, words) => {
                if let Some(text) = self.str(name).filter(|text| !words.contains(text)) {
                    let message = format!("{name} is {text:?}; expected {}", words.join(" or "));
                    self.say(Code::Value, self.at(name), &message);
                }
            }
            Rule::NonEmpty(name) => {
                if self.str(name) == Some("") {
                    self.say(Code::EmptyString, self.at(name), &format!("{name} is empty"));
                }
            }
            Rule::Absent(name) => {
                if self.view.entry(name).is_some() {
                    let message = format!("{name} is given; this operation fixes it");
                    self.say(Code::ForbiddenAttribute, self.at(name), &message);
                }
            }
            Rule::CoordOrder => self.coord_order(),
            Rule::Storage => self.storage(),
        }
    }

    fn at(&self, name: &str) -> Option<Offset> {
        self.view.entry(name).and_then(|entry| entry.at)
    }

    fn int(&self, name: &str) -> Option<i128> {
        match self.view.entry(name)?.value {
            Attribute::Int { value, .. } => Some(value),
            _ => None,
        }
    }

    fn str(&self, name: &str) -> Option<&'v str> {
        match &self.view.entry(name)?.value {
            Attribute::Str(text) => Some(text),
            _ => None,
        }
    }

    fn convention(&mut self, name: &str) {
        let Some(seen) = self.view.value(name) else { return };
        let Type::Sparse { rank, coord, feature, dtype } = self.view.get(seen.ty) else { return };
        let mut wrong = Vec::new();
        if *rank != u64::from(RANK) {
            wrong.push(format!("rank {rank}, expected {RANK}"));
        }
        if coord.as_ref() != Coord::BatchXyz.name() {
            wrong.push(format!("coord {coord}, expected {}", Coord::BatchXyz));
        }
        if feature.as_ref() != FeatureLayout::RowChannel.name() {
            wrong.push(format!("feature {feature}, expected {}", FeatureLayout::RowChannel));
        }
        if *dtype != Types::UNKNOWN && element(self.view.text(*dtype)).is_none() {
            wrong.push(format!("dtype {}, expected a number", self.view.text(*dtype)));
        }
        if !wrong.is_empty() {
            self.say(Code::Convention, seen.at, &format!("{name} has {}", wrong.join("; ")));
        }
    }

    fn same_convention(&mut self, a: &str, b: &str) {
        let (Some(left), Some(right)) = (self.view.value(a), self.view.value(b)) else { return };
        let (Type::Sparse { rank, coord, feature, .. }, Type::Sparse { rank: r, coord: c, feature: f, .. }) =
            (self.view.get(left.ty), self.view.get(right.ty))
        else {
            return;
        };
        if (rank, coord, feature) != (r, c, f) {
            let message = format!("{a} is {} and {b} {}", self.view.text(left.ty), self.view.text(right.ty));
            self.say(Code::SameConvention, right.at, &message);
        }
    }

    fn family(&mut self, name: &str, family: Family) {
        let Some(seen) = self.view.value(name) else { return };
        let Type::Weight { family: found, .. } = self.view.get(seen.ty) else { return };
        if found.as_ref() != family.name() {
            self.say(Code::WeightFamily, seen.at, &format!("{name} is of family {found}; expected {family}"));
        }
    }

    fn rank(&mut self, name: &str, rank: usize) {
        let Some(seen) = self.view.value(name) else { return };
        let Some(shape) = self.view.shape(seen.ty) else { return };
        if shape.len() != rank {
            let message = format!("{name} is {}; expected rank {rank}", self.view.text(seen.ty));
            self.say(Code::Rank, seen.at, &message);
        }
    }

    fn size(&mut self, name: &str, axis: usize, size: u64) {
        let Some(seen) = self.view.value(name) else { return };
        let Some(found) = self.view.shape(seen.ty).and_then(|shape| shape.get(axis)) else { return };
        if *found != Some(size) {
            let message = format!("{name} is {}; expected {size} along axis {axis}", self.view.text(seen.ty));
            self.say(Code::AxisSize, seen.at, &message);
        }
    }

    fn same_rows(&mut self, a: &str, b: &str) {
        let (Some(left), Some(right)) = (self.view.value(a), self.view.value(b)) else { return };
        let rows = |ty| self.view.shape(ty).and_then(|shape| shape.first().copied().flatten());
        if let (Some(x), Some(y)) = (rows(left.ty), rows(right.ty))
            && x != y
        {
            self.say(Code::SameRows, right.at, &format!("{a} has {x} rows and {b} {y}"));
        }
    }

    fn same_element(&mut self, a: &str, b: &str) {
        let (Some(left), Some(right)) = (self.view.value(a), self.view.value(b)) else { return };
        let (Some(x), Some(y)) = (self.view.element(left.ty), self.view.element(right.ty)) else { return };
        if x != y && x != Types::UNKNOWN && y != Types::UNKNOWN {
            let message = format!("{a} holds {} and {b} {}", self.view.text(x), self.view.text(y));
            self.say(Code::SameElement, right.at, &message);
        }
    }

    fn element(&mut self, name: &str, dtype: DType) {
        let Some(seen) = self.view.value(name) else { return };
        let Some(found) = self.view.element(seen.ty).filter(|ty| *ty != Types::UNKNOWN) else { return };
        let (found, wanted) = (self.view.text(found), element_name(dtype));
        if found != wanted {
            self.say(Code::Element, seen.at, &format!("{name} holds {found}; expected {wanted}"));
        }
    }

    /// Numbers of an attribute. Those of 64-bit triples are narrowed to f32 when they are used, and so here.
    fn numbers(&mut self, name: &str, code: Code, wanted: &str, holds: fn(f64) -> bool) {
        let Some(entry) = self.view.entry(name) else { return };
        let (all, shown) = match &entry.value {
            Attribute::I64s(items) => (items.iter().all(|n| holds(*n as f64)), format!("{items:?}")),
            Attribute::F64s(items) => {
                let narrow = |x: &f64| f64::from(*x as f32);
                (items.iter().map(narrow).all(|x| x.is_finite() && holds(x)), format!("{items:?}"))
            }
            Attribute::Float { value, .. } => (value.is_finite() && holds(*value), format!("{:?}", *value as f32)),
            _ => return,
        };
        if !all {
            self.say(code, entry.at, &format!("{name} is {shown}; expected {wanted} as f32"));
        }
    }

    fn coord_order(&mut self) {
        let (Some(entry), Some(seen)) = (self.view.entry("coord_order"), self.view.value("result")) else { return };
        let (Attribute::Keyword { keyword, .. }, Type::Sparse { coord, .. }) = (&entry.value, self.view.get(seen.ty))
        else {
            return;
        };
        if keyword.as_ref() != coord.as_ref() {
            let message = format!("coord_order is {keyword} and the result's coord {coord}; expected the same");
            self.say(Code::CoordOrder, entry.at, &message);
        }
    }

    /// Family, layout and packing of `weight`.
    fn storage(&mut self) {
        let Some(seen) = self.view.value("result") else { return };
        let Type::Weight { family: found, dtype } = self.view.get(seen.ty) else { return };
        let family = Family::parse(found);
        if family.is_none() {
            let message = format!("family {found}; expected {}", Family::NAMES.join(", "));
            self.say(Code::WeightFamily, seen.at, &message);
        }
        if *dtype != Types::UNKNOWN && element(self.view.text(*dtype)).is_none() {
            let message = format!("element {}; expected a number", self.view.text(*dtype));
            self.say(Code::Element, seen.at, &message);
        }
        if let (Some(family), Some(entry)) = (family, self.view.entry("layout"))
            && let Attribute::Keyword { keyword, .. } = &entry.value
            && WeightLayout::parse(keyword).is_some_and(|layout| layout != family.layout())
        {
            let message = format!("layout {keyword} with family {family}; expected {}", family.layout());
            self.say(Code::WeightLayout, entry.at, &message);
        }
        self.packing(family);
    }

    fn packing(&mut self, family: Option<Family>) {
        let Some(entry) = self.view.entry("packing") else { return };
        let Attribute::Packing(packing) = &entry.value else { return };
        if packing.kind == PackingKind::Dense.name() {
            return;
        }
        let mut wrong = Vec::new();
        if !matches!(PackingKind::parse(&packing.kind), Some(PackingKind::Int4 | PackingKind::Int8)) {
            wrong.push(format!("kind {}, expected dense, int4 or int8", packing.kind));
        }
        if family.is_some_and(|family| !matches!(family, Family::Conv3d | Family::Linear)) {
            wrong.push("a family that is never packed, expected conv3d or linear".to_owned());
        }
        if !GROUP_SIZES.iter().any(|size| i128::from(*size) == packing.group_size) {
            wrong.push(format!("group_size {}, expected {}", packing.group_size, join(GROUP_SIZES)));
        }
        let scale = packing.scale_dtype.map_or("", |ty| self.view.text(ty));
        if !matches!(scale, "f16" | "f32") {
            wrong.push(format!("scale_dtype {scale}, expected f16 or f32"));
        }
        if packing.mode != AFFINE {
            wrong.push(format!("mode {}, expected {AFFINE}", packing.mode));
        }
        if !wrong.is_empty() {
            self.say(Code::Packing, entry.at, &format!("packing has {}", wrong.join("; ")));
        }
    }

    /// Triples of integers move and scale 32-bit coordinates, and kernels have a number for each position.
    fn coordinates(&mut self) {
        for field in self.view.def.attributes.iter().filter(|field| field.kind == Kind::I64Triple) {
            let Some(triple) = self.view.triple(field.name) else { continue };
            let product = triple.iter().try_fold(1i64, |n, each| n.checked_mul(*each));
            let is_kernel = field.name == "kernel_size";
            let is_large = triple.iter().any(|n| *n > MAX_COORDINATE);
            if is_large || is_kernel && product.is_none_or(|n| n > MAX_COORDINATE) {
                let what = if is_kernel { " positions in all" } else { " along an axis" };
                let message = format!("{} is {triple:?}; expected at most {MAX_COORDINATE}{what}", field.name);
                self.say(Code::KernelVolume, self.at(field.name), &message);
            }
        }
    }
}

/// The name of a rule's attribute that equals a key.
fn name_of(key: &str) -> &'static str {
    ["stride", "padding", "dilation"].into_iter().find(|name| *name == key).unwrap_or("")
}

fn join<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
