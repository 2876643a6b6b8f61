// Batches for the tests of attention on a GPU, and its packed form of them.
#pragma once

#include <cstring>

#include "kernels/ops/attention.h"
#include "tests/kernels/attention_batch.h"
#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {

using CudaAttention = CudaDTypeTest;

// One group and many, a head per group and several, channels on either side of what a kernel has
// columns for.
inline std::vector<HeadShape> head_shapes(DType dtype) {
  std::vector<HeadShape> all = {{2, 1, 32}, {6, 2, 16}, {1, 1, 144}};
  if (dtype == DType::kBF16) all = {{6, 2, 16}, {1, 1, 64}, {8, 1, 128}, {2, 1, 144}, {1, 1, 256}};
  if (!emulated()) all.insert(all.end(), {{3, 3, 48}, {32, 1, 16}, {16, 8, 128}, {8, 2, 256}});
  return all;
}

inline Operand segments_of(const Stream& gpu, const Batch& batch) {
  std::vector<std::int32_t> words(batch.segments.size() * sizeof(Segment) / 4);
  std::memcpy(words.data(), batch.segments.data(), words.size() * 4);
  return Operand(gpu, {std::ssize(words)}, words);
}

inline std::span<const Segment> as_segments(const Operand& words, const Batch& batch) {
  return {static_cast<const Segment*>(words.view().data), batch.segments.size()};
}

// A sequence that is longer than a split, and users of it on both sides of the split's end.
inline Batch make_long_batch(const HeadShape& heads) {
  Batch batch{.heads = heads};
  batch.add_family(250, {30, 3});
  batch.add_family(emulated() ? 270 : 520, {1});
  Rng rng(9);
  batch.qkv = normals(rng, batch.rows * batch.width());
  return batch;
}

// A batch for the shape, rounded: on the emulator, where wide heads take long, few rows for them.
inline Batch batch_for(const HeadShape& heads, DType dtype, std::uint64_t seed) {
  Batch batch = make_batch(heads, seed);
  if (emulated() && heads.d > 64) {
    batch = {.heads = heads};
    batch.add_family(6, {5, 1});
    batch.add_family(30, {17});
    Rng rng(seed);
    batch.qkv = normals(rng, batch.rows * batch.width());
  }
  batch.qkv = rounded(batch.qkv, dtype);
  return batch;
}

// Forward of a batch on the GPU.
struct Forward {
  Operand qkv, segments, out, lse;

  Forward(const Stream& gpu, DType dtype, const Batch& batch)
      : qkv(gpu, dtype, {batch.rows, batch.width()}, batch.qkv),
        segments(segments_of(gpu, batch)),
        out(Operand::poisoned(gpu, dtype, {batch.rows, batch.heads.h, batch.heads.d})),
        lse(Operand::poisoned(gpu, DType::kF32, {batch.rows, batch.heads.h})) {
    attention(gpu, AttentionPacked{.q = batch.q(qkv.view()),
                                   .k = batch.k(qkv.view()),
                                   .v = batch.v(qkv.view()),
                                   .segments = as_segments(segments, batch),
                                   .scale = batch.scale(),
                                   .out = out,
                                   .lse = lse});
  }
};

}  // namespace tandem::kernels
