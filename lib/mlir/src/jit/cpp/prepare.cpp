// Rewrites a linalg-on-tensors module so that the stock pipeline compiles it correctly and to decent loops:
// arguments become read-only, scalar results 0-d tensors, 8-bit float conversions and expm1 calls, and the loops of
// reductions are ordered so that the innermost one walks memory in unit steps.

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

// Declares a private external function once and calls it.
static Value callExternal(RewriterBase &rewriter, ModuleOp module, Location loc, StringRef name, Value argument,
                          Type result) {
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(module.getBody());
    auto type = rewriter.getFunctionType({argument.getType()}, {result});
    func::FuncOp::create(rewriter, module.getLoc(), name, type).setPrivate();
  }
  return func::CallOp::create(rewriter, loc, name, TypeRange{result}, ValueRange{argument}).getResult(0);
}

static bool isByteFloat(Type type) {
  auto floating = dyn_cast<FloatType>(type);
  return floating && floating.getWidth() == 8;
}

static std::string typeName(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

// Exact conversion between float types of 16 bits and more, in whichever direction.
static Value convertFloat(RewriterBase &rewriter, Location loc, Value value, Type to) {
  unsigned have = value.getType().getIntOrFloatBitWidth(), want = to.getIntOrFloatBitWidth();
  if (value.getType() == to)
    return value;
  if (have < want)
    return arith::ExtFOp::create(rewriter, loc, to, value);
  return arith::TruncFOp::create(rewriter, loc, to, value);
}

static void replaceByteFloats(RewriterBase &rewriter, ModuleOp module) {
  SmallVector<arith::ExtFOp> extensions;
  SmallVector<arith::TruncFOp> truncations;
  module.walk([&](Operation *op) {
    if (auto ext = dyn_cast<arith::ExtFOp>(op); ext && isByteFloat(ext.getIn().getType()))
      extensions.push_back(ext);
    if (auto trunc = dyn_cast<arith::TruncFOp>(op); trunc && isByteFloat(trunc.getOut().getType()))
      truncations.push_back(trunc);
  });
  Type byte = rewriter.getI8Type();
  for (arith::ExtFOp ext : extensions) {
    Location loc = ext.getLoc();
    rewriter.setInsertionPoint(ext);
    Value bits = arith::BitcastOp::create(rewriter, loc, byte, ext.getIn());
    std::string name = "m2m_extend_" + typeName(ext.getIn().getType());
    Value wide = callExternal(rewriter, module, loc, name, bits, rewriter.getF32Type());
    rewriter.replaceOp(ext, convertFloat(rewriter, loc, wide, ext.getOut().getType()));
  }
  for (arith::TruncFOp trunc : truncations) {
    Location loc = trunc.getLoc();
    rewriter.setInsertionPoint(trunc);
    Value wide = convertFloat(rewriter, loc, trunc.getIn(), rewriter.getF64Type());
    std::string name = "m2m_truncate_" + typeName(trunc.getOut().getType());
    Value bits = callExternal(rewriter, module, loc, name, wide, byte);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(trunc, trunc.getOut().getType(), bits);
  }
}

// The conversion to LLVM makes exp(x) - 1 of it, which loses every digit near zero.
static void replaceExpm1(RewriterBase &rewriter, ModuleOp module) {
  SmallVector<math::ExpM1Op> ops;
  module.walk([&](math::ExpM1Op op) { ops.push_back(op); });
  for (math::ExpM1Op op : ops) {
    Type type = op.getType();
    if (!type.isF32() && !type.isF64())
      continue;
    rewriter.setInsertionPoint(op);
    StringRef name = type.isF32() ? "expm1f" : "expm1";
    rewriter.replaceOp(op, callExternal(rewriter, module, op.getLoc(), name, op.getOperand(), type));
  }
}

// What one step of loop `dim` does to an operand's address: nothing or one element costs nothing, anything else one.
static double stepCost(AffineMap map, unsigned dim) {
  double cost = 0;
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    if (!expr.isFunctionOfDim(dim))
      continue;
    bool last = axis + 1 == map.getNumResults();
    auto zero = simplifyAffineExpr(expr - getAffineDimExpr(dim, map.getContext()), map.getNumDims(), 0);
    if (!last || zero.isFunctionOfDim(dim))
      cost += 1;
  }
  return cost;
}

// Loops shorter than this are not worth vectorizing.
static constexpr int64_t kShortLoop = 8;

// The loop to put innermost: the one whose steps touch neighbouring elements, parallel rather than reduction, not short.
static unsigned chooseInnermost(linalg::GenericOp op) {
  auto iterators = op.getIteratorTypesArray();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  unsigned lastReduction = 0;
  for (auto [dim, kind] : llvm::enumerate(iterators))
    if (kind == utils::IteratorType::reduction)
      lastReduction = dim;
  unsigned best = iterators.size() - 1;
  double bestCost = -1;
  for (unsigned dim = 0; dim < iterators.size(); ++dim) {
    bool reduction = iterators[dim] == utils::IteratorType::reduction;
    // Reductions keep their order among themselves, so that bodies which depend on it stay right.
    if (reduction && dim != lastReduction)
      continue;
    double cost = reduction ? 0.25 : 0;
    for (AffineMap map : op.getIndexingMapsArray())
      cost += stepCost(map, dim);
    if (!ShapedType::isDynamic(extents[dim]) && extents[dim] < kShortLoop)
      cost += 1.5;
    if (bestCost < 0 || cost <= bestCost) {
      best = dim;
      bestCost = cost;
    }
  }
  return best;
}

// A sum may be taken in any order, which lets the innermost loop of a dot product use vectors.
static void allowReassociation(linalg::GenericOp op) {
  Block *body = op.getBody();
  for (OpOperand &yielded : body->getTerminator()->getOpOperands()) {
    auto add = yielded.get().getDefiningOp<arith::AddFOp>();
    Value accumulator = body->getArgument(op.getNumDpsInputs() + yielded.getOperandNumber());
    if (!add || !accumulator.hasOneUse() || (add.getLhs() != accumulator && add.getRhs() != accumulator))
      continue;
    add.setFastmath(add.getFastmath() | arith::FastMathFlags::reassoc);
  }
}

static void orderLoops(RewriterBase &rewriter, ModuleOp module) {
  SmallVector<linalg::LinalgOp> ops;
  module.walk([&](linalg::LinalgOp op) {
    if (op.getNumReductionLoops() > 0 && op.hasPureTensorSemantics())
      ops.push_back(op);
  });
  for (linalg::LinalgOp op : ops) {
    auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
    rewriter.setInsertionPoint(op);
    if (!generic) {
      FailureOr<linalg::GenericOp> made = linalg::generalizeNamedOp(rewriter, op);
      if (failed(made))
        continue;
      generic = *made;
    }
    allowReassociation(generic);
    unsigned innermost = chooseInnermost(generic), loops = generic.getNumLoops();
    if (innermost + 1 == loops)
      continue;
    SmallVector<unsigned> order;
    for (unsigned dim = 0; dim < loops; ++dim)
      if (dim != innermost)
        order.push_back(dim);
    order.push_back(innermost);
    rewriter.setInsertionPoint(generic);
    (void)linalg::interchangeGenericOp(rewriter, generic, order);
  }
}

// Gives every user an undefined or filled tensor of its own. A shared one must be copied before each write, and the time
// to find that out grows with the square of its users.
template <class Op>
static void unshare(RewriterBase &rewriter, ModuleOp module) {
  SmallVector<Op> ops;
  module.walk([&](Op op) {
    if (op->getNumResults() == 1 && !op->getResult(0).use_empty() && !op->getResult(0).hasOneUse())
      ops.push_back(op);
  });
  for (Op op : ops)
    for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(op->getResult(0).getUses()))) {
      if (isa<tensor::DimOp>(use.getOwner()))
        continue;
      rewriter.setInsertionPoint(use.getOwner());
      Operation *own = rewriter.clone(*op);
      rewriter.modifyOpInPlace(use.getOwner(), [&] { use.set(own->getResult(0)); });
    }
}

// Results that are scalars become 0-d tensors, so that every result comes back as a memref.
static void wrapScalarResults(RewriterBase &rewriter, func::FuncOp entry) {
  SmallVector<Type> results;
  for (Type type : entry.getResultTypes())
    results.push_back(isa<RankedTensorType>(type) ? type : RankedTensorType::get({}, type));
  entry.walk([&](func::ReturnOp op) {
    rewriter.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands())
      if (!isa<RankedTensorType>(operand.get().getType())) {
        auto type = cast<RankedTensorType>(results[operand.getOperandNumber()]);
        operand.set(tensor::FromElementsOp::create(rewriter, op.getLoc(), type, ValueRange{operand.get()}));
      }
  });
  entry.setType(FunctionType::get(entry.getContext(), entry.getArgumentTypes(), results));
}

// Makes results of operations results of the entry too: of each range of ordinals the ranked tensors that operations at the
// top of the entry give and that something outside of the range uses; says how many those are. Ordinals count operations as
// the generic form prints them, the module being 0. Before anything is rewritten.
extern "C" void m2m_jit_expose(MlirModule raw, MlirStringRef name, const size_t *firsts, const size_t *lasts, size_t count,
                               size_t *exposed) {
  ModuleOp module = unwrap(raw);
  auto entry = module.lookupSymbol<func::FuncOp>(StringRef(name.data, name.length));
  if (!entry || entry.isExternal() || !entry.getBody().hasOneBlock())
    return;
  Block *block = &entry.getBody().front();
  SmallVector<Operation *> ops;
  DenseMap<Operation *, size_t> ordinals;
  module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    ordinals[op] = ops.size();
    ops.push_back(op);
  });
  SmallVector<Value> results(block->getTerminator()->getOperands());
  for (size_t index = 0; index < count; ++index) {
    auto isOutside = [&](Operation *user) {
      size_t at = ordinals.lookup(block->findAncestorOpInBlock(*user));
      return at < firsts[index] || at > lasts[index];
    };
    for (size_t at = firsts[index]; at <= lasts[index] && at < ops.size(); ++at) {
      if (ops[at]->getBlock() != block)
        continue;
      for (Value result : ops[at]->getResults())
        if (isa<RankedTensorType>(result.getType()) && llvm::any_of(result.getUsers(), isOutside)) {
          results.push_back(result);
          ++exposed[index];
        }
    }
  }
  block->getTerminator()->setOperands(results);
  entry.setType(FunctionType::get(entry.getContext(), entry.getArgumentTypes(), ValueRange(results).getTypes()));
}

// Step one, before the passes that look at tensors: the calling convention of the entry. False when there is no entry.
extern "C" bool m2m_jit_prepare_entry(MlirModule raw, MlirStringRef name) {
  ModuleOp module = unwrap(raw);
  auto entry = module.lookupSymbol<func::FuncOp>(StringRef(name.data, name.length));
  if (!entry || entry.isExternal())
    return false;
  IRRewriter rewriter(module.getContext());
  wrapScalarResults(rewriter, entry);
  entry.setPublic();
  entry->setAttr("llvm.emit_c_interface", rewriter.getUnitAttr());
  for (unsigned index = 0; index < entry.getNumArguments(); ++index)
    if (isa<RankedTensorType>(entry.getArgument(index).getType()))
      entry.setArgAttr(index, "bufferization.writable", rewriter.getBoolAttr(false));
  return true;
}

// Step two, on scalar bodies: what the stock conversions cannot do, do wrong or do slowly.
extern "C" void m2m_jit_prepare_bodies(MlirModule raw) {
  ModuleOp module = unwrap(raw);
  IRRewriter rewriter(module.getContext());
  replaceByteFloats(rewriter, module);
  replaceExpm1(rewriter, module);
  orderLoops(rewriter, module);
  unshare<linalg::FillOp>(rewriter, module);
  unshare<tensor::EmptyOp>(rewriter, module);
}
