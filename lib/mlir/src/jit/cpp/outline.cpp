// Moves every loop nest that only computes into a function of its own, because LLVM's loop passes take time that grows
// with the square of the loops in a function. Equal nests of a model's layers then become one function.
//
// What MLIR knows about aliasing would be lost at the call, so a buffer that a nest writes is marked noalias when it is
// an allocation that no other argument can point into.

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

// Positions, among the arguments after conversion, of pointers that nothing else in the nest points into.
static constexpr StringLiteral kNoAlias = "m2m.noalias";

static bool onlyComputes(Operation *op) {
  if (isa<scf::ForOp, scf::IfOp, scf::YieldOp, memref::LoadOp, memref::StoreOp, affine::AffineApplyOp,
          affine::AffineMinOp, affine::AffineMaxOp, cf::AssertOp>(op))
    return true;
  if (isa<func::CallOp>(op))
    return llvm::none_of(op->getOperandTypes(), [](Type type) { return isa<BaseMemRefType>(type); });
  Dialect *dialect = op->getDialect();
  return isa_and_nonnull<arith::ArithDialect, math::MathDialect, complex::ComplexDialect, vector::VectorDialect>(dialect);
}

static bool isOutlinable(scf::ForOp loop) {
  if (llvm::any_of(loop.getResultTypes(), [](Type type) { return isa<BaseMemRefType>(type); }))
    return false;
  return !loop->walk([](Operation *op) { return onlyComputes(op) ? WalkResult::advance() : WalkResult::interrupt(); })
              .wasInterrupted();
}

// The allocation or argument that a buffer is a view of.
static Value rootOf(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

static bool isEntryArgument(Value root) {
  auto argument = dyn_cast<BlockArgument>(root);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

// Something other than a written allocation that is known not to be it.
static bool isElsewhere(Value root) { return root.getDefiningOp<memref::AllocOp>() || isEntryArgument(root); }

static bool isOwnBuffer(Value buffer, ArrayRef<Value> parameters) {
  Value root = rootOf(buffer);
  if (!root.getDefiningOp<memref::AllocOp>())
    return false;
  return llvm::all_of(parameters, [&](Value other) {
    if (other == buffer || !isa<BaseMemRefType>(other.getType()))
      return true;
    Value otherRoot = rootOf(other);
    return otherRoot != root && isElsewhere(otherRoot);
  });
}

static int64_t convertedArguments(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref ? 3 + 2 * memref.getRank() : 1;
}

// Positions of the aligned pointers of written buffers that are nobody else's.
static SmallVector<int64_t> noAliasPositions(scf::ForOp loop, ArrayRef<Value> parameters) {
  DenseSet<Value> written;
  loop.walk([&](Operation *op) {
    if (auto store = dyn_cast<memref::StoreOp>(op))
      written.insert(store.getMemref());
    else if (auto store = dyn_cast<vector::StoreOp>(op))
      written.insert(store.getBase());
    else if (auto store = dyn_cast<vector::MaskedStoreOp>(op))
      written.insert(store.getBase());
  });
  SmallVector<int64_t> positions;
  int64_t position = 0;
  for (Value parameter : parameters) {
    if (written.contains(parameter) && isOwnBuffer(parameter, parameters))
      positions.push_back(position + 1);
    position += convertedArguments(parameter.getType());
  }
  return positions;
}

static bool isCheapToRepeat(Operation *op) {
  return op && (op->hasTrait<OpTrait::ConstantLike>() || isa<memref::GetGlobalOp>(op));
}

// Nests by a hash of what they do, to find equal ones. (The stock pass would also unite external functions of one type.)
using Known = llvm::DenseMap<llvm::hash_code, SmallVector<func::FuncOp>>;

static llvm::hash_code hashOf(func::FuncOp function) {
  llvm::hash_code hash = hash_value(function.getFunctionType());
  function.getBody().walk([&](Operation *op) {
    hash = llvm::hash_combine(hash, OperationEquivalence::computeHash(op, OperationEquivalence::ignoreHashValue,
                                                                      OperationEquivalence::ignoreHashValue,
                                                                      OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

static bool isEqual(func::FuncOp lhs, func::FuncOp rhs) {
  return lhs.getFunctionType() == rhs.getFunctionType() && lhs->getAttr(kNoAlias) == rhs->getAttr(kNoAlias) &&
         OperationEquivalence::isRegionEquivalentTo(&lhs.getBody(), &rhs.getBody(), OperationEquivalence::IgnoreLocations);
}

// An earlier function that does the same, or this one.
static func::FuncOp unite(RewriterBase &rewriter, func::FuncOp function, Known &known) {
  SmallVector<func::FuncOp> &candidates = known[hashOf(function)];
  for (func::FuncOp earlier : candidates)
    if (isEqual(earlier, function)) {
      rewriter.eraseOp(function);
      return earlier;
    }
  candidates.push_back(function);
  return function;
}

static void outline(RewriterBase &rewriter, ModuleOp module, scf::ForOp loop, unsigned number, Known &known) {
  SetVector<Value> captured(loop->operand_begin(), loop->operand_end());
  getUsedValuesDefinedAbove(loop->getRegions(), captured);
  SmallVector<Value> parameters;
  SmallVector<Operation *> repeated;
  for (Value value : captured) {
    if (isCheapToRepeat(value.getDefiningOp()))
      repeated.push_back(value.getDefiningOp());
    else
      parameters.push_back(value);
  }
  Location loc = loop.getLoc();
  rewriter.setInsertionPointToEnd(module.getBody());
  auto type = rewriter.getFunctionType(ValueRange(parameters).getTypes(), loop.getResultTypes());
  auto function = func::FuncOp::create(rewriter, loc, "m2m_nest_" + std::to_string(number), type);
  function.setPrivate();
  function->setAttr(kNoAlias, rewriter.getDenseI64ArrayAttr(noAliasPositions(loop, parameters)));
  Block *body = function.addEntryBlock();
  rewriter.setInsertionPointToStart(body);
  IRMapping mapping;
  mapping.map(parameters, body->getArguments());
  for (Operation *op : repeated)
    rewriter.clone(*op, mapping);
  Operation *moved = rewriter.clone(*loop, mapping);
  func::ReturnOp::create(rewriter, loc, moved->getResults());
  function = unite(rewriter, function, known);
  rewriter.setInsertionPoint(loop);
  auto call = func::CallOp::create(rewriter, loc, function, parameters);
  rewriter.replaceOp(loop, call.getResults());
}

// Outermost loop nests that can go.
static void collect(Operation *under, SmallVectorImpl<scf::ForOp> &loops) {
  under->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
    if (!isOutlinable(loop))
      return WalkResult::advance();
    loops.push_back(loop);
    return WalkResult::skip();
  });
}

// On loops over memrefs, before structured control flow goes.
extern "C" void m2m_jit_outline(MlirModule raw) {
  ModuleOp module = unwrap(raw);
  SmallVector<scf::ForOp> loops;
  collect(module, loops);
  IRRewriter rewriter(module.getContext());
  Known known;
  for (auto [number, loop] : llvm::enumerate(loops))
    outline(rewriter, module, loop, number, known);
}

// On the LLVM dialect: keeps the nests apart and tells what their arguments do not alias.
extern "C" void m2m_jit_mark_nests(MlirModule raw) {
  ModuleOp module = unwrap(raw);
  Builder builder(module.getContext());
  module.walk([&](LLVM::LLVMFuncOp function) {
    auto positions = function->getAttrOfType<DenseI64ArrayAttr>(kNoAlias);
    if (!positions)
      return;
    function->removeAttr(kNoAlias);
    function.setNoInline(true);
    for (int64_t position : positions.asArrayRef())
      function.setArgAttr(position, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
  });
}
