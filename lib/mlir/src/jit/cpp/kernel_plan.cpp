// Chooses how a reduction is computed in blocks: which loop becomes the lanes of vectors, and which loops are unrolled so
// that what was loaded is used several times. Costs are in loads and operations of a lane, and only compare choices.

#include "kernel.h"

#include "llvm/TargetParser/Host.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace m2m {

namespace {

// Registers of the host that hold vectors.
struct Machine {
  unsigned bits = 128;
  unsigned registers = 16;
};

const Machine &machine() {
  static const Machine found = [] {
    Machine machine;
    llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
    if (features.lookup("avx512f") && features.lookup("avx512vl"))
      machine = {512, 32};
    else if (features.lookup("avx"))
      machine = {256, 16};
    else if (features.lookup("neon"))
      machine = {128, 32};
    return machine;
  }();
  return found;
}

// Extents that are known only when the program runs count as long.
constexpr int64_t kLong = 256;
constexpr int64_t kMostRows = 8, kMostColumns = 4;
// A vector whose lanes are gathered one by one costs as many loads; two loads and a shuffle make one with stride two.
constexpr double kShuffleCost = 3, kGatherCost = 16, kSumCost = 1.25;
// Above this, plain loops are as good.
constexpr double kMostCost = 16;

int64_t extentOf(int64_t extent) { return ShapedType::isDynamic(extent) ? kLong : extent; }

bool isVectorElement(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() == 8 || integer.getWidth() == 16 || integer.getWidth() == 32 || integer.getWidth() == 64;
  return isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

// Whether every operation of the body does the same to vectors, lane by lane.
bool isLaneWise(linalg::GenericOp op) {
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (!isa_and_nonnull<arith::ArithDialect>(inner.getDialect()) || inner.getNumResults() != 1)
      return false;
    if (!inner.hasTrait<OpTrait::ConstantLike>() && !OpTrait::hasElementwiseMappableTraits(&inner))
      return false;
    Type type = inner.getResult(0).getType();
    if (!type.isInteger(1) && !isVectorElement(type))
      return false;
  }
  return llvm::all_of(op.getBody()->getTerminator()->getOperands(), [](Value value) { return value.getDefiningOp(); });
}

bool isCandidate(linalg::GenericOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumReductionLoops() == 0 || op.getNumDpsInits() != 1 || !isLaneWise(op))
    return false;
  OpOperand *out = op.getDpsInitOperand(0);
  if (!op.getMatchingIndexingMap(out).isProjectedPermutation())
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    Type type = operand.get().getType();
    return isVectorElement(getElementTypeOrSelf(type)) && (isa<MemRefType>(type) || op.isDpsInput(&operand));
  });
}

// Lanes are as wide as the widest type of the body.
unsigned lanesOf(linalg::GenericOp op) {
  unsigned width = 8;
  auto widen = [&](Type type) {
    if (type.isIntOrFloat())
      width = std::max(width, type.getIntOrFloatBitWidth());
  };
  for (BlockArgument argument : op.getBody()->getArguments())
    widen(argument.getType());
  for (Operation &inner : op.getBody()->without_terminator())
    widen(inner.getResult(0).getType());
  return machine().bits / width;
}

bool reads(linalg::GenericOp op, OpOperand *operand, unsigned loop) {
  return op.getMatchingIndexingMap(operand).isFunctionOfDim(loop);
}

// The longest parallel loop, apart from the lanes, that indexes inputs among `with` only; its blocks use the others again.
std::optional<unsigned> longestReuse(linalg::GenericOp op, unsigned vector, llvm::function_ref<bool(OpOperand *)> with) {
  std::optional<unsigned> best;
  int64_t most = 1;
  for (auto [loop, extent] : llvm::enumerate(op.getStaticLoopRanges())) {
    if (loop == vector || op.getIteratorTypesArray()[loop] != utils::IteratorType::parallel || extentOf(extent) <= most)
      continue;
    bool reuses = false, fits = true;
    for (OpOperand *input : op.getDpsInputOperands()) {
      bool indexed = reads(op, input, loop);
      fits &= !indexed || with(input);
      reuses |= !indexed && reads(op, input, vector);
    }
    if (fits && reuses) {
      best = loop;
      most = extentOf(extent);
    }
  }
  return best;
}

Tile tileOf(linalg::GenericOp op, unsigned loop, int64_t most) {
  return {loop, std::min(most, extentOf(op.getStaticLoopRanges()[loop]))};
}

void chooseBlocks(linalg::GenericOp op, KernelPlan &plan) {
  int64_t accumulators = machine().registers / 2;
  if (!plan.sums) {
    // Rows use the vectors again, columns the elements that rows broadcast.
    auto isBroadcast = [&](OpOperand *input) { return !reads(op, input, plan.vector); };
    if (auto rows = longestReuse(op, plan.vector, isBroadcast))
      plan.rows = tileOf(op, *rows, std::min(kMostRows, accumulators / 2));
    int64_t vectors = llvm::divideCeil(extentOf(op.getStaticLoopRanges()[plan.vector]), plan.lanes);
    int64_t most = std::min(kMostColumns, accumulators / (plan.rows ? plan.rows->count : 1));
    plan.columns = Tile{plan.vector, std::max<int64_t>(1, std::min(most, vectors))};
    return;
  }
  // The first input that has lanes is used again by columns, the others by rows.
  OpOperand *first = nullptr;
  for (OpOperand *input : op.getDpsInputOperands())
    if (!first && reads(op, input, plan.vector))
      first = input;
  auto rows = longestReuse(op, plan.vector, [&](OpOperand *input) { return input == first; });
  auto columns = longestReuse(op, plan.vector, [&](OpOperand *input) { return input != first; });
  int64_t half = accumulators >= 16 ? 4 : 2;
  if (rows)
    plan.rows = tileOf(op, *rows, columns ? half : kMostRows);
  if (columns)
    plan.columns = tileOf(op, *columns, rows ? accumulators / std::max(plan.rows->count, half) : kMostRows);
}

// Whether a loop can become lanes at all.
bool canBeLanes(linalg::GenericOp op, unsigned loop, bool sums, unsigned native) {
  int64_t extent = extentOf(op.getStaticLoopRanges()[loop]);
  if (extent < 2 || (sums && (!sumOf(op) || extent < native)))
    return false;
  if (!sums && accessOf(op, op.getDpsInitOperand(0), loop) != Access::Contiguous)
    return false;
  bool isRead = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    Access access = accessOf(op, input, loop);
    isRead |= access != Access::Same;
    if (access == Access::Scattered || (sums && access == Access::Strided))
      return false;
  }
  return isRead;
}

// What an element of the reduction costs, a full vector of the host being one.
double costOf(linalg::GenericOp op, const KernelPlan &plan, unsigned native) {
  int64_t extent = extentOf(op.getStaticLoopRanges()[plan.vector]);
  double loads = 0;
  for (OpOperand *input : op.getDpsInputOperands())
    if (accessOf(op, input, plan.vector) == Access::Strided)
      loads += strideOf(op.getMatchingIndexingMap(input), plan.vector) == 2 ? kShuffleCost : kGatherCost;
  double operations = (1 + loads / (plan.rows ? plan.rows->count : 1)) * (plan.sums ? kSumCost : 1);
  return operations * native * llvm::divideCeil(extent, plan.lanes) / extent;
}

void orderLoops(linalg::GenericOp op, KernelPlan &plan) {
  auto isBlocked = [&](unsigned loop) {
    return (plan.rows && plan.rows->loop == loop) || (plan.columns && plan.columns->loop == loop);
  };
  SmallVector<unsigned> others;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (kind == utils::IteratorType::reduction) {
      if (loop != plan.vector)
        plan.reductions.push_back(loop);
    } else if (!isBlocked(loop)) {
      bool shared = llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *input) { return reads(op, input, loop); });
      (shared ? plan.outer : others).push_back(loop);
    }
  }
  plan.shared = plan.outer.size();
  plan.outer.append(others);
}

} // namespace

int64_t strideOf(AffineMap map, unsigned loop) {
  MLIRContext *context = map.getContext();
  AffineExpr last = map.getResult(map.getNumResults() - 1), dim = getAffineDimExpr(loop, context);
  // What a step of the loop adds, if that is the same everywhere.
  AffineExpr step = simplifyAffineExpr(last.replace(dim, dim + 1) - last, map.getNumDims(), map.getNumSymbols());
  auto constant = dyn_cast<AffineConstantExpr>(step);
  return constant ? constant.getValue() : 0;
}

Access accessOf(linalg::GenericOp op, OpOperand *operand, unsigned loop) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  if (!map.isFunctionOfDim(loop))
    return Access::Same;
  auto type = dyn_cast<MemRefType>(operand->get().getType());
  for (AffineExpr result : map.getResults().drop_back())
    if (result.isFunctionOfDim(loop))
      return Access::Scattered;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!type || failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return Access::Scattered;
  int64_t stride = strideOf(map, loop);
  if (stride < 1)
    return Access::Scattered;
  return stride == 1 ? Access::Contiguous : Access::Strided;
}

Operation *sumOf(linalg::GenericOp op) {
  Block *body = op.getBody();
  Value accumulator = body->getArgument(op.getNumDpsInputs());
  Operation *sum = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!sum || sum->getBlock() != body || !accumulator.hasOneUse() || *accumulator.user_begin() != sum)
    return nullptr;
  if (auto add = dyn_cast<arith::AddFOp>(sum))
    return bitEnumContainsAll(add.getFastmath(), arith::FastMathFlags::reassoc) ? sum : nullptr;
  return isa<arith::AddIOp>(sum) ? sum : nullptr;
}

std::optional<KernelPlan> planKernel(linalg::GenericOp op) {
  if (!isCandidate(op))
    return std::nullopt;
  unsigned native = lanesOf(op);
  std::optional<KernelPlan> best;
  double least = kMostCost;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    bool sums = kind == utils::IteratorType::reduction;
    if (!canBeLanes(op, loop, sums, native))
      continue;
    unsigned lanes = std::min<uint64_t>(native, llvm::PowerOf2Ceil(extentOf(op.getStaticLoopRanges()[loop])));
    KernelPlan plan{static_cast<unsigned>(loop), sums, lanes, std::nullopt, std::nullopt, {}, 0, {}};
    chooseBlocks(op, plan);
    double cost = costOf(op, plan, native);
    if (cost >= least)
      continue;
    least = cost;
    best = plan;
  }
  if (best)
    orderLoops(op, *best);
  return best;
}

} // namespace m2m
