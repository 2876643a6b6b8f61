#include "kernels/ops/sum_pieces.h"

#include "kernels/backend.h"

namespace tandem::kernels {

void sum_pieces(const Stream& stream, const SumPieces& op) {
  const std::int64_t elements = op.out.dim(0);
  CHECK(!op.pieces.empty() && op.pieces.size() <= kSumPiecesMax);
  CHECK(is_f32(op.out, {elements}));
  // `out` may be one of the pieces: an element is written after all pieces' elements were read.
  for (const TensorView& piece : op.pieces) CHECK(is_f32(piece, {elements}));
  backend(stream.device).sum_pieces(stream, op);
}

}  // namespace tandem::kernels
