#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/ops/sum_pieces.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kSumThreads = 256;

// Passed to the kernel by value: the caller's list may be gone when the kernel runs.
struct PieceList {
  const float* at[kSumPiecesMax];
  int count;
};

template <bool kVector>
__global__ void sum_pieces_kernel(PieceList pieces, float* out, std::int64_t count) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * kSumThreads + threadIdx.x) * kPack<float>;
  if (at >= count) return;
  // All pieces are read before `out`, which may be one of them, is written.
  Pack<float> sum = load_pack<kVector>(pieces.at[0] + at, count - at);
  for (int p = 1; p < pieces.count; ++p) {
    const Pack<float> more = load_pack<kVector>(pieces.at[p] + at, count - at);
    for (int i = 0; i < kPack<float>; ++i) sum.at[i] += more.at[i];
  }
  store_pack<kVector>(out + at, sum, count - at);
}

}  // namespace

void sum_pieces(const Stream& stream, const SumPieces& op) {
  const std::int64_t count = op.out.dim(0);
  PieceList pieces{};
  bool aligned = packs_align({op.out});
  for (const TensorView& piece : op.pieces) {
    pieces.at[pieces.count++] = data<float>(piece);
    aligned = aligned && packs_align({piece});
  }
  const Launch shape{.grid = blocks_for(count, kSumThreads * kPack<float>), .block = kSumThreads};
  with_flag(aligned, [&](auto vector) {
    launch(stream, shape, sum_pieces_kernel<vector>, pieces, data<float>(op.out), count);
  });
}

}  // namespace tandem::kernels::cuda
