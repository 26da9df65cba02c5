//! Names, roles and types of arguments and results.

use super::Abi;
use crate::finding::{Code, Findings, Offset};
use crate::ir::{Attribute, Block, Entry, Function, Graph, Name, Operation, Type, TypeId, Types, Value};
use crate::plan::element;
use crate::schema::{InputRole, Op, OutputRole};
use std::collections::{BTreeSet, HashMap, HashSet};

type Inputs = Vec<Abi<InputRole>>;
type Outputs = Vec<Abi<OutputRole>>;

/// Checks the ABI; the lists are as long as the function's only where all of it could be read.
pub(super) fn check(
    graph: &Graph<'_>,
    module: &Operation<'_>,
    function: &Function,
    block: &Block<'_>,
    findings: &mut Findings,
) -> (Inputs, Outputs) {
    let mut abi = Checker { graph, module, findings };
    let (arguments, results) = match function.is_broken {
        true => (None, None),
        false => (Some(function.arguments.as_slice()), Some(function.results.as_slice())),
    };
    let inputs = abi.read("input", arguments.map(<[_]>::len), InputRole::parse, InputRole::NAMES);
    let outputs = abi.read("output", results.map(<[_]>::len), OutputRole::parse, OutputRole::NAMES);
    if let (Some(arguments), Some(results)) = (arguments, results) {
        abi.inputs(&inputs, arguments, block);
        abi.outputs(&outputs, results);
        abi.returned(results, block);
    }
    (inputs, outputs)
}

struct Checker<'c, 'a> {
    graph: &'c Graph<'a>,
    module: &'c Operation<'a>,
    findings: &'c mut Findings,
}

impl Checker<'_, '_> {
    /// The strings of a module attribute.
    fn strings(&mut self, key: &str, code: Code) -> Option<(Vec<String>, Option<Offset>)> {
        let expected = "expected an array of strings";
        let (value, at) = match self.module.attribute(key) {
            Some(Entry { value, at, .. }) => (value, *at),
            None => {
                if !self.module.is_broken {
                    let message = format!("module attribute {key} is missing; {expected}");
                    self.findings.push(code, self.module.at, message);
                }
                return None;
            }
        };
        let items = match value {
            Attribute::Array(items) => items.iter().map(|item| match item {
                Attribute::Str(text) => Some(text.to_string()),
                _ => None,
            }),
            Attribute::Unknown => return None,
            _ => {
                self.findings.push(code, at, format!("{key} is something else; {expected}"));
                return None;
            }
        };
        match items.collect::<Option<Vec<String>>>() {
            Some(items) => Some((items, at)),
            None => {
                self.findings.push(code, at, format!("{key} holds something else; {expected}"));
                None
            }
        }
    }

    /// Names and roles of one side.
    fn read<R: Copy>(
        &mut self,
        side: &str,
        count: Option<usize>,
        parse: fn(&str) -> Option<R>,
        known: &[&str],
    ) -> Vec<Abi<R>> {
        let what = if side == "input" { "arguments" } else { "results" };
        let names_key = format!("lattice.{side}_names");
        let roles_key = format!("lattice.{side}_roles");
        let names = self.strings(&names_key, Code::AbiNames);
        let roles = self.strings(&roles_key, Code::AbiRoles);
        for (list, key, code) in [(&names, &names_key, Code::AbiNames), (&roles, &roles_key, Code::AbiRoles)] {
            if let (Some((items, at)), Some(count)) = (list, count)
                && items.len() != count
            {
                let message = format!("{key} has {} entries; the function has {count} {what}", items.len());
                self.findings.push(code, *at, message);
            }
        }
        if let Some((names, at)) = &names {
            let mut seen = HashSet::new();
            for name in names {
                if name.is_empty() {
                    self.findings.push(Code::AbiNames, *at, format!("{names_key} has an empty name"));
                } else if !seen.insert(name) {
                    self.findings.push(Code::AbiNames, *at, format!("{names_key} has {name:?} twice"));
                }
            }
        }
        let mut parsed = Vec::new();
        if let Some((roles, at)) = &roles {
            for role in roles {
                match parse(role) {
                    Some(role) => parsed.push(role),
                    None => {
                        let message = format!("{roles_key} has {role:?}; expected {}", known.join(", "));
                        self.findings.push(Code::AbiRoles, *at, message);
                    }
                }
            }
        }
        let names = names.map(|(names, _)| names).unwrap_or_default();
        names.into_iter().zip(parsed).map(|(name, role)| Abi { name, role }).collect()
    }

    fn shape(&self, ty: TypeId) -> Option<(&[Option<u64>], &str)> {
        match self.graph.types.get(ty) {
            Type::Tensor { shape: Some(shape), element, .. } => Some((shape, self.graph.types.text(*element))),
            _ => None,
        }
    }

    fn at(&self, key: &str) -> Option<Offset> {
        self.module.attribute(key).and_then(|entry| entry.at).or(self.module.at)
    }

    fn inputs(&mut self, inputs: &Inputs, arguments: &[TypeId], block: &Block<'_>) {
        let entry_at = block.ops.first().and_then(|op| op.at);
        for (place, ty) in arguments.iter().enumerate().filter(|(_, ty)| **ty != Types::UNKNOWN) {
            let text = self.graph.types.text(*ty).to_owned();
            let is_plain = match self.graph.types.get(*ty) {
                Type::Tensor { shape: Some(_), element: of, encoding: None } => {
                    element(self.graph.types.text(*of)).is_some()
                }
                _ => false,
            };
            if !is_plain {
                let message =
                    format!("argument {place} is {text}; expected a ranked tensor of numbers, which a caller can bind");
                self.findings.push(Code::ArgumentType, self.at("lattice.input_names").or(entry_at), message);
                continue;
            }
            let Some((shape, element)) = self.shape(*ty) else { continue };
            let fits = match inputs.get(place).map(|abi| abi.role) {
                None | Some(InputRole::Tensor) => true,
                Some(InputRole::SparseCoords) => shape.len() == 2 && shape.get(1) == Some(&Some(4)) && element == "i32",
                Some(InputRole::SparseFeatures) => shape.len() == 2,
                Some(InputRole::SparseActive) => shape == [Some(1)] && element == "i32",
            };
            if !fits {
                let role = inputs.get(place).map_or("", |abi| abi.role.name());
                let message = format!("argument {place} is {text} with role {role}, which it cannot have");
                self.findings.push(Code::RoleType, self.at("lattice.input_roles"), message);
            }
        }
        self.loose_inputs(inputs, block);
    }

    /// Arguments that make a sparse value and do not say so, or say so where no caller can bind them together.
    fn loose_inputs(&mut self, inputs: &Inputs, block: &Block<'_>) {
        let parts = [InputRole::SparseCoords, InputRole::SparseFeatures, InputRole::SparseActive];
        let places: HashMap<Value, usize> = block.arguments.iter().copied().zip(0..).collect();
        let mut loose = BTreeSet::new();
        for op in block.ops.iter().filter(|op| op.name == Name::Own(Op::SparseMake)) {
            for (operand, role) in op.operands.iter().zip(parts) {
                let place = places.get(&operand.value).copied();
                if let Some((place, abi)) = place.and_then(|place| Some((place, inputs.get(place)?)))
                    && abi.role != role
                {
                    loose.insert((place, abi.name.as_str()));
                }
            }
        }
        if !loose.is_empty() {
            let message = format!(
                "{} make a sparse value and have other roles than sparse_coords, sparse_features, sparse_active; a caller binds \
                 them one by one",
                loose.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
            );
            self.findings.push(Code::LooseRole, self.at("lattice.input_roles"), message);
        }
        let mut place = 0;
        while let Some(abi) = inputs.get(place) {
            let group: Vec<&Abi<InputRole>> = inputs.iter().skip(place).take(3).collect();
            let roles: Vec<InputRole> = group.iter().map(|each| each.role).collect();
            if abi.role == InputRole::Tensor {
                place += 1;
            } else if roles == parts && same_prefix(&group) {
                place += 3;
            } else {
                let message = format!(
                    "{:?} has role {}; expected three arguments in a row, P_coords, P_features, P_active, to be bound together",
                    abi.name, abi.role
                );
                self.findings.push(Code::LooseRole, self.at("lattice.input_roles"), message);
                place += 1;
            }
        }
    }

    fn outputs(&mut self, outputs: &Outputs, results: &[TypeId]) {
        for (abi, ty) in outputs.iter().zip(results).filter(|(_, ty)| **ty != Types::UNKNOWN) {
            let is_sparse = matches!(self.graph.types.get(*ty), Type::Sparse { .. });
            let text = self.graph.types.text(*ty).to_owned();
            let at = self.at("lattice.output_roles");
            match (abi.role, is_sparse) {
                (OutputRole::SparseTensor, false) => {
                    let message =
                        format!("result {:?} is {text} with role sparse_tensor, which it cannot have", abi.name);
                    self.findings.push(Code::RoleType, at, message);
                }
                (OutputRole::Tensor, true) => {
                    let message = format!("result {:?} is sparse with role tensor; expected sparse_tensor", abi.name);
                    self.findings.push(Code::LooseRole, at, message);
                }
                _ => {}
            }
        }
        for ty in results
            .iter()
            .filter(|ty| matches!(self.graph.types.get(**ty), Type::Weight { .. } | Type::Other(_) | Type::Scalar(_)))
        {
            let message =
                format!("the function returns {}; expected a tensor or a sparse value", self.graph.types.text(*ty));
            self.findings.push(Code::ArgumentType, self.at("lattice.output_names"), message);
        }
    }

    /// What the block returns against what the function declares.
    fn returned(&mut self, results: &[TypeId], block: &Block<'_>) {
        let Some(op) = block.ops.last().filter(|op| op.name == Name::Return && !op.is_broken) else { return };
        if op.operands.len() != results.len() {
            let message = format!("return of {} values; the function returns {}", op.operands.len(), results.len());
            return self.findings.push(Code::ReturnTypes, op.at, message);
        }
        for (operand, ty) in op.operands.iter().zip(results) {
            let found = self.graph.type_of(operand.value);
            if found != *ty && found != Types::UNKNOWN && *ty != Types::UNKNOWN {
                let (found, wanted) = (self.graph.types.text(found), self.graph.types.text(*ty));
                let message = format!("return of {found}; the function returns {wanted}");
                self.findings.push(Code::ReturnTypes, operand.at.or(op.at), message);
            }
        }
    }
}

/// Whether three names are `coords`, `features`, `active` behind one prefix.
fn same_prefix(group: &[&Abi<InputRole>]) -> bool {
    let suffixes = ["coords", "features", "active"];
    let mut prefixes = group.iter().zip(suffixes).map(|(abi, suffix)| abi.name.strip_suffix(suffix));
    let Some(Some(first)) = prefixes.next() else { return false };
    let is_word = first.is_empty() || first.len() > 1 && first.ends_with('_');
    is_word && prefixes.all(|prefix| prefix == Some(first))
}
