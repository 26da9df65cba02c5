// Writes the loops around kernels, and the kernels: blocks of accumulators that stay in registers while the reduction's
// loops run. What is left over of a loop that blocks do not divide gets kernels of its own, with masks along the lanes.

#include "kernel.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace m2m {

namespace {

class Emitter {
public:
  Emitter(RewriterBase &rewriter, linalg::GenericOp op, const KernelPlan &plan)
      : rewriter(rewriter), op(op), plan(plan), loc(op.getLoc()) {
    for (Range range : cast<linalg::LinalgOp>(op.getOperation()).createLoopRanges(rewriter, loc))
      extents.push_back(range.size);
    at.assign(op.getNumLoops(), rewriter.getIndexAttr(0));
    for (unsigned loop : plan.outer)
      sequence.push_back(loop);
    // Rows come before what only the columns' operands have, so that a row's operand stays in the cache.
    if (plan.rows)
      sequence.insert(sequence.begin() + plan.shared, plan.rows->loop);
    if (plan.columns)
      sequence.push_back(plan.columns->loop);
  }

  void emit() { loops(0); }

private:
  RewriterBase &rewriter;
  linalg::GenericOp op;
  const KernelPlan &plan;
  Location loc;
  SmallVector<OpFoldResult> extents, at;
  SmallVector<unsigned> sequence;
  // The kernel that is being written.
  int64_t rows = 1, columns = 1;
  // Of lanes along a parallel loop: how many are inside from where the kernel begins; nothing if all are.
  OpFoldResult inside;
  Value sumMask;
  llvm::DenseMap<std::tuple<unsigned, int64_t, int64_t>, Value> loaded;

  Value value(OpFoldResult folded) { return getValueOrCreateConstantIndexOp(rewriter, loc, folded); }

  OpFoldResult apply(AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(rewriter, loc, expr, operands);
  }

  AffineExpr dim(unsigned position) { return rewriter.getAffineDimExpr(position); }

  OpFoldResult offset(OpFoldResult base, int64_t by) { return by == 0 ? base : apply(dim(0) + by, {base}); }

  // Writes a loop with what `body` writes inside; a loop that runs at most once for known bounds is left out.
  void loop(OpFoldResult from, OpFoldResult to, int64_t step, llvm::function_ref<void(OpFoldResult)> body) {
    auto first = getConstantIntValue(from), end = getConstantIntValue(to);
    if (first && end && *first >= *end)
      return;
    if (first && end && *first + step >= *end)
      return body(from);
    auto made = scf::ForOp::create(rewriter, loc, value(from), value(to), value(rewriter.getIndexAttr(step)));
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(made.getBody());
    body(made.getInductionVar());
  }

  void loops(unsigned depth) {
    if (depth == sequence.size())
      return kernel();
    unsigned index = sequence[depth];
    auto inner = [&](OpFoldResult where) {
      at[index] = where;
      loops(depth + 1);
    };
    if (plan.rows && plan.rows->loop == index)
      return blocks(index, plan.rows->count, 1, rows, inner);
    if (!plan.columns || plan.columns->loop != index)
      return loop(rewriter.getIndexAttr(0), extents[index], 1, inner);
    blocks(index, plan.columns->count, index == plan.vector ? plan.lanes : 1, columns, inner);
  }

  // A loop in blocks of `count` times `unit` steps, then what is left: one block if its size is known, else units.
  void blocks(unsigned index, int64_t count, int64_t unit, int64_t &size, llvm::function_ref<void(OpFoldResult)> inner) {
    int64_t step = count * unit;
    OpFoldResult whole = apply(dim(0).floorDiv(step) * step, {extents[index]});
    size = count;
    loop(rewriter.getIndexAttr(0), whole, step, inner);
    auto extent = getConstantIntValue(extents[index]), done = getConstantIntValue(whole);
    size = extent ? llvm::divideCeil(*extent - *done, unit) : 1;
    bool hasLanes = index == plan.vector;
    loop(whole, extents[index], extent ? step : unit, [&](OpFoldResult where) {
      if (hasLanes && !(extent && (*extent - *done) % unit == 0))
        inside = apply(dim(0) - dim(1), {extents[index], where});
      inner(where);
      inside = OpFoldResult();
    });
    size = 1;
  }

  VectorType vectorOf(Type element) { return VectorType::get({plan.lanes}, element); }

  // Lanes below a bound, which may be negative or beyond the lanes.
  Value mask(OpFoldResult bound) {
    return vector::CreateMaskOp::create(rewriter, loc, vectorOf(rewriter.getI1Type()), ArrayRef<OpFoldResult>{bound});
  }

  // The mask of a vector `column` vectors into the block, null if all of its lanes are inside.
  Value columnMask(int64_t column) {
    if (!inside)
      return sumMask;
    auto known = getConstantIntValue(inside);
    if (known && *known >= (column + 1) * plan.lanes)
      return nullptr;
    return mask(offset(inside, -column * plan.lanes));
  }

  SmallVector<OpFoldResult> place(int64_t row, int64_t column) {
    SmallVector<OpFoldResult> place(at);
    if (plan.rows)
      place[plan.rows->loop] = offset(place[plan.rows->loop], row);
    if (plan.columns) {
      unsigned index = plan.columns->loop;
      place[index] = offset(place[index], column * (index == plan.vector ? plan.lanes : 1));
    }
    return place;
  }

  SmallVector<Value> indices(AffineMap map, ArrayRef<OpFoldResult> place) {
    SmallVector<Value> indices;
    for (AffineExpr result : map.getResults())
      indices.push_back(value(apply(result, place)));
    return indices;
  }

  Value zero(Type type) { return arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type)); }

  Value loadLanes(Value memref, ValueRange indices, Value mask) {
    VectorType type = vectorOf(cast<MemRefType>(memref.getType()).getElementType());
    if (!mask)
      return vector::LoadOp::create(rewriter, loc, type, memref, indices);
    return vector::MaskedLoadOp::create(rewriter, loc, type, memref, indices, mask, zero(type));
  }

  // Two vectors that hold the lanes and what is between them. The last lane has nothing behind it that must exist.
  Value loadEveryOther(Value memref, ValueRange indices, int64_t column) {
    int64_t lanes = plan.lanes;
    OpFoldResult covered = rewriter.getIndexAttr(2 * lanes - 1);
    Value lowMask;
    if (columnMask(column)) {
      covered = apply(dim(0) * 2 - (2 * column * lanes + 1), {inside});
      lowMask = mask(covered);
    }
    SmallVector<Value> further(indices);
    further.back() = value(offset(further.back(), lanes));
    Value low = loadLanes(memref, indices, lowMask), high = loadLanes(memref, further, mask(offset(covered, -lanes)));
    SmallVector<int64_t> even;
    for (int64_t lane = 0; lane < lanes; ++lane)
      even.push_back(2 * lane);
    return vector::ShuffleOp::create(rewriter, loc, low, high, even);
  }

  Value gatherLanes(Value memref, ValueRange indices, int64_t stride, Value mask) {
    VectorType type = vectorOf(cast<MemRefType>(memref.getType()).getElementType());
    SmallVector<int32_t> steps;
    for (unsigned lane = 0; lane < plan.lanes; ++lane)
      steps.push_back(static_cast<int32_t>(lane * stride));
    auto attribute = DenseElementsAttr::get(vectorOf(rewriter.getI32Type()), ArrayRef<int32_t>(steps));
    Value offsets = arith::ConstantOp::create(rewriter, loc, attribute);
    if (!mask)
      mask = arith::ConstantOp::create(rewriter, loc, DenseElementsAttr::get(vectorOf(rewriter.getI1Type()), true));
    return vector::GatherOp::create(rewriter, loc, type, memref, indices, offsets, mask, zero(type));
  }

  Value broadcast(Value scalar) {
    return vector::BroadcastOp::create(rewriter, loc, vectorOf(scalar.getType()), scalar);
  }

  bool depends(AffineMap map, const std::optional<Tile> &block) {
    return block && map.isFunctionOfDim(block->loop);
  }

  // An input as lanes, loaded once for all of the block that it serves.
  Value load(OpOperand *input, int64_t row, int64_t column) {
    AffineMap map = op.getMatchingIndexingMap(input);
    row = depends(map, plan.rows) ? row : 0;
    column = depends(map, plan.columns) ? column : 0;
    Value &known = loaded[{input->getOperandNumber(), row, column}];
    if (!known)
      known = loadOnce(input, map, row, column);
    return known;
  }

  Value loadOnce(OpOperand *input, AffineMap map, int64_t row, int64_t column) {
    Value memref = input->get();
    if (!isa<MemRefType>(memref.getType()))
      return broadcast(memref);
    SmallVector<Value> where = indices(map, place(row, column));
    switch (accessOf(op, input, plan.vector)) {
    case Access::Contiguous:
      return loadLanes(memref, where, columnMask(column));
    case Access::Strided:
      if (int64_t stride = strideOf(map, plan.vector); stride != 2)
        return gatherLanes(memref, where, stride, columnMask(column));
      return loadEveryOther(memref, where, column);
    default:
      return broadcast(memref::LoadOp::create(rewriter, loc, memref, where));
    }
  }

  // The body on lanes: what becomes of an accumulator.
  Value compute(int64_t row, int64_t column, Value accumulator) {
    IRMapping mapping;
    for (OpOperand *input : op.getDpsInputOperands()) {
      BlockArgument argument = op.getMatchingBlockArgument(input);
      if (!argument.use_empty())
        mapping.map(argument, load(input, row, column));
    }
    mapping.map(op.getRegionOutputArgs()[0], accumulator);
    Block *body = op.getBody();
    for (Operation &inner : body->without_terminator()) {
      for (Value operand : inner.getOperands())
        if (!mapping.contains(operand))
          mapping.map(operand, broadcast(operand));
      Operation *made = rewriter.clone(inner, mapping);
      Value result = made->getResult(0);
      if (made->hasTrait<OpTrait::ConstantLike>()) {
        mapping.map(inner.getResult(0), broadcast(result));
        continue;
      }
      result.setType(vectorOf(result.getType()));
      // A product and the sum that it goes into may be rounded once.
      if (auto fast = dyn_cast<arith::ArithFastMathInterface>(made); fast && isa<arith::MulFOp, arith::AddFOp>(made))
        made->setAttr(fast.getFastMathAttrName(),
                      arith::FastMathFlagsAttr::get(rewriter.getContext(), fast.getFastMathFlagsAttr().getValue() |
                                                                               arith::FastMathFlags::contract));
    }
    Value yielded = body->getTerminator()->getOperand(0);
    return mapping.contains(yielded) ? mapping.lookup(yielded) : broadcast(yielded);
  }

  SmallVector<Value> step(ValueRange accumulators) {
    SmallVector<Value> next;
    loaded.clear();
    for (auto [index, accumulator] : llvm::enumerate(accumulators)) {
      Value computed = compute(index / columns, index % columns, accumulator);
      // Lanes past the end must not count, whatever the body makes of zeros.
      next.push_back(sumMask ? arith::SelectOp::create(rewriter, loc, sumMask, computed, accumulator) : computed);
    }
    return next;
  }

  // A loop that carries the accumulators.
  SmallVector<Value> carry(OpFoldResult from, OpFoldResult to, int64_t step, ValueRange accumulators,
                           llvm::function_ref<SmallVector<Value>(OpFoldResult, ValueRange)> body) {
    auto first = getConstantIntValue(from), end = getConstantIntValue(to);
    if (first && end && *first >= *end)
      return accumulators;
    if (first && end && *first + step >= *end)
      return body(from, accumulators);
    auto made =
        scf::ForOp::create(rewriter, loc, value(from), value(to), value(rewriter.getIndexAttr(step)), accumulators);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(made.getBody());
    scf::YieldOp::create(rewriter, loc, body(made.getInductionVar(), made.getRegionIterArgs()));
    return made.getResults();
  }

  SmallVector<Value> reduce(unsigned depth, ValueRange accumulators) {
    if (depth < plan.reductions.size()) {
      unsigned index = plan.reductions[depth];
      return carry(rewriter.getIndexAttr(0), extents[index], 1, accumulators, [&](OpFoldResult where, ValueRange inner) {
        at[index] = where;
        return reduce(depth + 1, inner);
      });
    }
    if (!plan.sums)
      return step(accumulators);
    int64_t lanes = plan.lanes;
    OpFoldResult extent = extents[plan.vector], whole = apply(dim(0).floorDiv(lanes) * lanes, {extent});
    auto body = [&](OpFoldResult where, ValueRange inner) {
      at[plan.vector] = where;
      return step(inner);
    };
    SmallVector<Value> sums = carry(rewriter.getIndexAttr(0), whole, lanes, accumulators, body);
    return carry(whole, extent, lanes, sums, [&](OpFoldResult where, ValueRange inner) {
      sumMask = mask(apply(dim(0) - dim(1), {extent, where}));
      SmallVector<Value> next = body(where, inner);
      sumMask = nullptr;
      return next;
    });
  }

  void kernel() {
    OpOperand *out = op.getDpsInitOperand(0);
    Value memref = out->get();
    Type element = cast<MemRefType>(memref.getType()).getElementType();
    AffineMap map = op.getMatchingIndexingMap(out);
    SmallVector<Value> accumulators;
    SmallVector<SmallVector<Value>> places;
    SmallVector<Value> masks;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        places.push_back(indices(map, place(row, column)));
        masks.push_back(plan.sums ? nullptr : columnMask(column));
        accumulators.push_back(plan.sums ? neutral(element) : loadLanes(memref, places.back(), masks.back()));
      }
    accumulators = reduce(0, accumulators);
    for (auto [accumulator, where, mask] : llvm::zip_equal(accumulators, places, masks)) {
      if (plan.sums)
        memref::StoreOp::create(rewriter, loc, total(accumulator, memref::LoadOp::create(rewriter, loc, memref, where)),
                                memref, where);
      else if (mask)
        vector::MaskedStoreOp::create(rewriter, loc, memref, where, mask, accumulator);
      else
        vector::StoreOp::create(rewriter, loc, accumulator, memref, where);
    }
  }

  // What adding changes nothing: negative zero among floats.
  Value neutral(Type element) {
    TypedAttr scalar = rewriter.getZeroAttr(element);
    if (auto floating = dyn_cast<FloatType>(element))
      scalar = FloatAttr::get(floating, APFloat::getZero(floating.getFloatSemantics(), true));
    return arith::ConstantOp::create(rewriter, loc, DenseElementsAttr::get(vectorOf(element), scalar));
  }

  Value total(Value lanes, Value before) {
    arith::FastMathFlags flags = isa<FloatType>(before.getType()) ? arith::FastMathFlags::reassoc : arith::FastMathFlags::none;
    return vector::ReductionOp::create(rewriter, loc, vector::CombiningKind::ADD, lanes, before, flags);
  }
};

} // namespace

void emitKernel(RewriterBase &rewriter, linalg::GenericOp op, const KernelPlan &plan) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Emitter(rewriter, op, plan).emit();
}

} // namespace m2m

// On linalg over buffers: reductions that profit become loops around kernels.
extern "C" void m2m_jit_emit_kernels(MlirModule raw) {
  ModuleOp module = unwrap(raw);
  SmallVector<linalg::GenericOp> ops;
  module.walk([&](linalg::GenericOp op) { ops.push_back(op); });
  IRRewriter rewriter(module.getContext());
  for (linalg::GenericOp op : ops)
    if (std::optional<m2m::KernelPlan> plan = m2m::planKernel(op)) {
      m2m::emitKernel(rewriter, op, *plan);
      rewriter.eraseOp(op);
    }
}
