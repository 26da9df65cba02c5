// The sparse dialect for MLIR's own tools, as a plugin: the syntax that the schema table gives, without rules. The tests hold
// our reader of text and bytecode against it; no program of ours links it. Built by scripts/lattice-mlir.

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

// A bare word or a string.
static FailureOr<std::string> parseKeyword(AsmParser &parser) {
  std::string text;
  if (parser.parseKeywordOrString(&text))
    return failure();
  return text;
}

#include "Dialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "Types.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Attrs.h.inc"
#define GET_OP_CLASSES
#include "Ops.h.inc"

#include "Dialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "Types.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Attrs.cpp.inc"
#define GET_OP_CLASSES
#include "Ops.cpp.inc"

void lattice::Lattice::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "Types.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Attrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Ops.cpp.inc"
      >();
}

// A dense packing is its kind alone; any other has all four fields.
Attribute lattice::PackingValueAttr::parse(AsmParser &parser, Type) {
  std::string kind, mode;
  int64_t groupSize = 0;
  Type scale;
  if (parser.parseLess() || parser.parseKeywordOrString(&kind))
    return {};
  if (kind != "dense" &&
      (parser.parseComma() || parser.parseKeyword("group_size") || parser.parseEqual() || parser.parseInteger(groupSize) ||
       parser.parseComma() || parser.parseKeyword("scale_dtype") || parser.parseEqual() || parser.parseType(scale) ||
       parser.parseComma() || parser.parseKeyword("mode") || parser.parseEqual() || parser.parseKeywordOrString(&mode)))
    return {};
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), kind, groupSize, scale, mode);
}

void lattice::PackingValueAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printKeywordOrString(getKind());
  if (getKind() != "dense") {
    printer << ", group_size = " << getGroupSize() << ", scale_dtype = " << getScaleDtype() << ", mode = ";
    printer.printKeywordOrString(getMode());
  }
  printer << ">";
}

extern "C" DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Lattice", "0",
          [](DialectRegistry *registry) { registry->insert<lattice::Lattice>(); }};
}
