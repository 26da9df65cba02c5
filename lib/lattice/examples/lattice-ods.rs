//! Prints the dialect as MLIR's own table generator wants it, from the schema table: syntax only, no rules.
//!
//!     cargo run -p m2m-lattice --example lattice-ods > dialect.td

use m2m_lattice::schema::{ATTRIBUTES, Assembly, Class, Kind, OPS, OpDef, Parameter, TYPES, Value};
use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(
        b"include \"mlir/IR/OpBase.td\"\ninclude \"mlir/IR/AttrTypeBase.td\"\ninclude \"mlir/IR/SymbolInterfaces.td\"\n\
        def Lattice : Dialect { let name = \"lattice\"; let cppNamespace = \"::lattice\"; let useDefaultTypePrinterParser = 1; \
        let useDefaultAttributePrinterParser = 1; }\n\
        def Keyword : StringRefParameter<\"\"> { let parser = [{ ::parseKeyword($_parser) }]; let printer = [{ \
        $_printer.printKeywordOrString($_self) }]; }\n",
    )?;
    for ty in TYPES {
        // A weight's type names its fields by position, the other's by name.
        let is_named = ty.mnemonic != "weight";
        let format = format(ty.parameters, is_named);
        let (name, mnemonic, parameters) = (ty.name, ty.mnemonic, parameters(ty.parameters));
        writeln!(
            out,
            "def Type_{mnemonic} : TypeDef<Lattice, \"{name}\"> {{ let mnemonic = \"{mnemonic}\"; let parameters = (ins {parameters}); \
             let assemblyFormat = \"{format}\"; }}"
        )?;
    }
    for attribute in ATTRIBUTES {
        let (name, mnemonic) = (attribute.name, attribute.mnemonic);
        // What a packing holds depends on its kind, which the generator cannot say.
        let format = match mnemonic {
            "packing" => "let hasCustomAssemblyFormat = 1;".to_owned(),
            _ => format!("let assemblyFormat = \"{}\";", format(attribute.parameters, false)),
        };
        let parameters = parameters(attribute.parameters);
        writeln!(
            out,
            "def Attr_{mnemonic} : AttrDef<Lattice, \"{name}Value\"> {{ let mnemonic = \"{mnemonic}\"; let parameters = (ins \
             {parameters}); {format} }}"
        )?;
    }
    OPS.iter().try_for_each(|def| writeln!(out, "{}", operation(def)))
}

fn parameters(parameters: &[Parameter]) -> String {
    let each = parameters.iter().map(|parameter| match parameter.kind {
        "unsigned" => format!("\"unsigned\":${}", parameter.name),
        "string" => format!("Keyword:${}", parameter.name),
        _ => format!("\"::mlir::Type\":${}", parameter.name),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn format(parameters: &[Parameter], is_named: bool) -> String {
    let each = parameters.iter().map(|parameter| match is_named {
        true => format!("`{0}` `=` ${0}", parameter.name),
        false => format!("${}", parameter.name),
    });
    format!("`<` {} `>`", each.collect::<Vec<_>>().join(" `,` "))
}

fn value(value: &Value) -> String {
    let class = match value.class {
        Class::Symbol => return format!("SymbolNameAttr:${}", value.name),
        Class::Sparse => "Type_sparse_tensor",
        Class::Weight => "Type_weight",
        Class::Tensor => "AnyRankedTensor",
        Class::Indices => "RankedTensorOf<[I32]>",
    };
    match value.is_optional {
        true => format!("Optional<{class}>:${}", value.name),
        false => format!("{class}:${}", value.name),
    }
}

fn operation(def: &OpDef) -> String {
    let attributes = def.attributes.iter().map(|field| {
        let kind = match field.kind {
            Kind::I64Triple => "DenseI64ArrayAttr".to_owned(),
            Kind::F64Triple => "DenseF64ArrayAttr".to_owned(),
            Kind::F32 => "F32Attr".to_owned(),
            Kind::I64 => "I64Attr".to_owned(),
            Kind::Str => "StrAttr".to_owned(),
            Kind::Own(mnemonic) => format!("Attr_{mnemonic}"),
        };
        format!("{kind}:${}", field.name)
    });
    let arguments: Vec<String> = def.operands.iter().map(value).chain(attributes).collect();
    let results: Vec<String> = def.results.iter().map(value).collect();
    let format = match def.assembly {
        Assembly::Weight => "$sym_name attr-dict `:` type($result)",
        Assembly::Decompose => {
            "$input attr-dict `:` type($input) `->` `(` type($coords) `,` type($features) `,` type($active) `)`"
        }
        Assembly::Functional => "operands attr-dict `:` functional-type(operands, results)",
    };
    let (name, arguments, results) = (def.name, arguments.join(", "), results.join(", "));
    format!(
        "def Op_{0:?} : Op<Lattice, \"{name}\"> {{ let arguments = (ins {arguments}); let results = (outs {results}); let assemblyFormat = \
         \"{format}\"; }}",
        def.op
    )
}
