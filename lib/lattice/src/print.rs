//! Prints a model as MLIR text: one operation a line in its pretty form, attributes in the order of the schema.
//!
//! What is printed reads back as the same model: names of values are the labels of the plan, types are canonical, and a float
//! has as many digits as it takes to come back exactly.

use crate::ir::{Attribute, Operation, Value, keyword_text, quoted};
use crate::schema::{Assembly, ENTRY, IR_VERSION, SCHEMA_DIGEST, SYMBOL, WEIGHT_FILE};
use crate::verify::Model;
use std::fmt::Write as _;

/// The text of a model.
pub fn print(model: &Model<'_, '_>) -> String {
    let mut out = String::from("module attributes {\n");
    let strings = |items: Vec<&str>| items.into_iter().map(quoted).collect::<Vec<_>>().join(", ");
    let input_names = strings(model.inputs.iter().map(|abi| abi.name.as_str()).collect());
    let input_roles = strings(model.inputs.iter().map(|abi| abi.role.name()).collect());
    let output_names = strings(model.outputs.iter().map(|abi| abi.name.as_str()).collect());
    let output_roles = strings(model.outputs.iter().map(|abi| abi.role.name()).collect());
    let _ = writeln!(out, "  lattice.ir_version = {IR_VERSION},");
    let _ = writeln!(out, "  lattice.schema_digest = \"{SCHEMA_DIGEST}\",");
    let _ = writeln!(out, "  lattice.input_names = [{input_names}],");
    let _ = writeln!(out, "  lattice.input_roles = [{input_roles}],");
    let _ = writeln!(out, "  lattice.output_names = [{output_names}],");
    let _ = writeln!(out, "  lattice.output_roles = [{output_roles}],");
    let _ = writeln!(out, "  lattice.weight_file = \"{WEIGHT_FILE}\"\n}} {{");
    let printer = Printer::new(model);
    printer.function(&mut out);
    out.push_str("}\n");
    out
}

struct Printer<'m, 'g, 'a> {
    model: &'m Model<'g, 'a>,
    names: Vec<u32>,
}

impl<'m, 'g, 'a> Printer<'m, 'g, 'a> {
    fn new(model: &'m Model<'g, 'a>) -> Self {
        let mut names = vec![0; model.graph.values.len()];
        let arguments = model.block.arguments.iter().copied();
        let values = arguments.chain(model.ops().flat_map(|(_, op, _)| op.result_values()));
        for (number, value) in values.enumerate() {
            if let Some(slot) = names.get_mut(value.0 as usize) {
                *slot = number as u32;
            }
        }
        Printer { model, names }
    }

    fn name(&self, value: Value) -> String {
        let number = self.names.get(value.0 as usize).copied().unwrap_or_default();
        let prefix = if (number as usize) < self.model.block.arguments.len() { "%arg" } else { "%v" };
        format!("{prefix}{number}")
    }

    fn ty(&self, value: Value) -> &str {
        self.model.graph.types.text(self.model.graph.type_of(value))
    }

    fn types(&self, values: impl Iterator<Item = Value>) -> String {
        values.map(|value| self.ty(value)).collect::<Vec<_>>().join(", ")
    }

    fn names(&self, values: impl Iterator<Item = Value>) -> String {
        values.map(|value| self.name(value)).collect::<Vec<_>>().join(", ")
    }

    fn function(&self, out: &mut String) {
        let arguments = self.model.block.arguments.iter();
        let arguments: Vec<String> = arguments.map(|v| format!("{}: {}", self.name(*v), self.ty(*v))).collect();
        let types = &self.model.graph.types;
        let results: Vec<&str> = self.model.function.results.iter().map(|ty| types.text(*ty)).collect();
        let _ = writeln!(out, "  func.func @{ENTRY}({}) -> ({}) {{", arguments.join(", "), results.join(", "));
        for (_, op, own) in self.model.ops() {
            self.op(out, op, own.def().assembly, own.def().name);
        }
        if let Some(op) = self.model.returned() {
            let values = || op.operands.iter().map(|operand| operand.value);
            let _ = writeln!(out, "    return {} : {}", self.names(values()), self.types(values()));
        }
        out.push_str("  }\n");
    }

    fn op(&self, out: &mut String, op: &Operation<'_>, assembly: Assembly, name: &str) {
        let results = || op.result_values();
        let operands = || op.operands.iter().map(|operand| operand.value);
        let _ = write!(out, "    {} = lattice.{name} ", self.names(results()));
        match assembly {
            Assembly::Weight => {
                let symbol = match op.attribute(SYMBOL).map(|entry| &entry.value) {
                    Some(Attribute::Str(symbol)) => symbol_text(symbol),
                    _ => "@\"\"".to_owned(),
                };
                let _ = write!(out, "{symbol}{} : {}", self.dictionary(op), self.types(results()));
            }
            Assembly::Decompose => {
                let (given, taken) = (self.names(operands()), self.types(operands()));
                let _ = write!(out, "{given}{} : {taken} -> ({})", self.dictionary(op), self.types(results()));
            }
            Assembly::Functional => {
                let (given, taken) = (self.names(operands()), self.types(operands()));
                let _ = write!(out, "{given}{} : ({taken}) -> {}", self.dictionary(op), self.types(results()));
            }
        }
        out.push('\n');
    }

    /// The attributes, in the order of the schema, with a space before them.
    fn dictionary(&self, op: &Operation<'_>) -> String {
        let crate::ir::Name::Own(own) = op.name else { return String::new() };
        let entries = own.def().attributes.iter().filter_map(|field| {
            let entry = op.attribute(field.name)?;
            Some(format!("{} = {}", field.name, self.attribute(&entry.value)))
        });
        let entries: Vec<String> = entries.collect();
        if entries.is_empty() { String::new() } else { format!(" {{{}}}", entries.join(", ")) }
    }

    fn attribute(&self, value: &Attribute<'_>) -> String {
        let types = &self.model.graph.types;
        match value {
            Attribute::Str(text) => quoted(text),
            Attribute::Keyword { def, keyword } => format!("#lattice.{}<{}>", def.mnemonic, keyword_text(keyword)),
            Attribute::Int { value, ty } => format!("{value} : {}", types.text(*ty)),
            Attribute::Float { value, ty } => format!("{} : {}", float_text(*value, types.text(*ty)), types.text(*ty)),
            Attribute::I64s(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                format!("array<i64: {}>", items.join(", "))
            }
            Attribute::F64s(items) => {
                let items: Vec<String> = items.iter().map(|x| float_text(*x, "f64")).collect();
                format!("array<f64: {}>", items.join(", "))
            }
            Attribute::Packing(packing) => match packing.scale_dtype {
                None => format!("#lattice.packing<{}>", keyword_text(&packing.kind)),
                Some(ty) => format!(
                    "#lattice.packing<{}, group_size = {}, scale_dtype = {}, mode = {}>",
                    keyword_text(&packing.kind),
                    packing.group_size,
                    types.text(ty),
                    keyword_text(&packing.mode)
                ),
            },
            // A model without errors has no other attributes.
            _ => "unit".to_owned(),
        }
    }
}

/// `@name`, quoted where it is no identifier.
fn symbol_text(name: &str) -> String {
    let mut bytes = name.bytes();
    let is_bare = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.'));
    if is_bare { format!("@{name}") } else { format!("@{}", quoted(name)) }
}

/// A float literal that MLIR reads as this value: digits with a point, the fewest that come back.
fn float_text(value: f64, ty: &str) -> String {
    let narrow = value as f32;
    let mut text = match ty {
        "f32" if f64::from(narrow) == value => format!("{narrow:?}"),
        _ => format!("{value:?}"),
    };
    // The literal is read as a double first, so the short form of a float must survive that.
    if ty == "f32" && text.parse::<f64>().is_ok_and(|x| x as f32 != narrow) {
        text = format!("{value:?}");
    }
    if !text.contains('.') {
        let at = text.find('e').unwrap_or(text.len());
        text.insert_str(at, ".0");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_literals_of_mlir() {
        assert_eq!(float_text(f64::from(0.01f32), "f32"), "0.01");
        assert_eq!(float_text(f64::from(1e-13f32), "f32"), "1.0e-13");
        assert_eq!(float_text(1e-5, "f64"), "1.0e-5");
        assert_eq!(float_text(1e300, "f64"), "1.0e300");
        assert_eq!(float_text(-2.0, "f64"), "-2.0");
    }

    #[test]
    fn symbols_are_quoted_where_they_must_be() {
        assert_eq!(symbol_text("a.b$1"), "@a.b$1");
        assert_eq!(symbol_text("a b"), "@\"a b\"");
        assert_eq!(symbol_text("1"), "@\"1\"");
    }
}
