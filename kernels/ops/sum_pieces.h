// The sum of pieces that several ranks computed, such as their gradients of one shard. Pieces are
// added in the order in which they are given, so the sum has the same bits on every device.
#pragma once

#include <span>

#include "kernels/operand.h"

namespace tandem::kernels {

inline constexpr int kSumPiecesMax = 64;  // a GPU's kernel takes the list as one parameter

// out[i] = ((p0[i] + p1[i]) + p2[i]) + …, each a single f32 addition.
struct SumPieces {
  std::span<const TensorView> pieces;  // 1 … kSumPiecesMax, each [n] f32; read before the call ends
  TensorView out;                      // [n] f32, written; may be one of the pieces
};

void sum_pieces(const Stream& stream, const SumPieces& op);

}  // namespace tandem::kernels
