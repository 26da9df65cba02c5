// A kernel computes a block of a reduction's output in vector registers: some iterations of one parallel loop (rows) times
// some vectors along another loop (columns), through all of the reduction, with one load and one store of the block.

#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace m2m {

// How an input is read when the vector loop takes one vector of steps.
enum class Access {
  Same,       // the loop does not index it: one element for all lanes
  Contiguous, // neighbouring elements
  Strided,    // elements of one row, evenly apart
  Scattered,  // anything else
};

// A loop of which a kernel computes several iterations at once.
struct Tile {
  unsigned loop;
  int64_t count;
};

struct KernelPlan {
  unsigned vector;       // the loop whose iterations are lanes
  bool sums;             // whether that is a reduction, whose lanes are added up in the end
  unsigned lanes;        // lanes of a vector
  std::optional<Tile> rows;
  std::optional<Tile> columns; // counts vectors if its loop is the vector loop
  llvm::SmallVector<unsigned> outer;      // the other parallel loops, outermost first; the first `shared` index every input
  unsigned shared;
  llvm::SmallVector<unsigned> reductions; // the reduction loops that are not lanes, outermost first
};

// How the vector loop reads an input whose elements a map names.
Access accessOf(mlir::linalg::GenericOp op, mlir::OpOperand *operand, unsigned loop);

// The distance between lanes of a strided input.
int64_t strideOf(mlir::AffineMap map, unsigned loop);

// The operation that adds to the accumulator, if that is all the body does with it; floats must allow reassociation.
mlir::Operation *sumOf(mlir::linalg::GenericOp op);

// A plan for a reduction on buffers; none where plain loops serve as well.
std::optional<KernelPlan> planKernel(mlir::linalg::GenericOp op);

// Writes the loops and kernels of a plan before the operation, which is to be erased.
void emitKernel(mlir::RewriterBase &rewriter, mlir::linalg::GenericOp op, const KernelPlan &plan);

} // namespace m2m
