#include "kernels/ops/attention.h"

#include <cstring>

#include "tests/kernels/attention_batch.h"
#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using runtime::DeviceKind;
using runtime::tensor;

// One group and many, a head per group and several, channels on either side of a warp's columns.
std::vector<HeadShape> head_shapes(DType dtype) {
  if (emulated() && dtype == DType::kBF16) return {{6, 2, 16}};
  std::vector<HeadShape> all = {{2, 1, 32}, {6, 2, 16}, {1, 1, 144}};
  if (!emulated()) all.insert(all.end(), {{3, 3, 48}, {32, 1, 16}, {16, 8, 128}, {8, 2, 256}});
  return all;
}

Operand segments_of(const Stream& gpu, const Batch& batch) {
  std::vector<std::int32_t> words(batch.segments.size() * sizeof(Segment) / 4);
  std::memcpy(words.data(), batch.segments.data(), words.size() * 4);
  return Operand(gpu, {std::ssize(words)}, words);
}

std::span<const Segment> as_segments(const Operand& words, const Batch& batch) {
  return {static_cast<const Segment*>(words.view().data), batch.segments.size()};
}

// A sequence that is longer than a split, and users of it on both sides of the split's end.
Batch make_long_batch(const HeadShape& heads) {
  Batch batch{.heads = heads};
  batch.add_family(250, {30, 3});
  batch.add_family(emulated() ? 270 : 520, {1});
  Rng rng(9);
  batch.qkv = normals(rng, batch.rows * batch.width());
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

struct Expected {
  Floats out, lse;
};

Expected forward_on_cpu(const Batch& batch) {
  const auto [h, g, d] = batch.heads;
  Expected cpu{poison(batch.rows * h * d), poison(batch.rows * h)};
  attention(Stream{}, AttentionPacked{.q = batch.q(batch.qkv),
                                      .k = batch.k(batch.qkv),
                                      .v = batch.v(batch.qkv),
                                      .segments = batch.segments,
                                      .scale = batch.scale(),
                                      .out = tensor(cpu.out.data(), {batch.rows, h, d}),
                                      .lse = tensor(cpu.lse.data(), {batch.rows, h})});
  return cpu;
}

using CudaAttention = CudaDTypeTest;

TEST_P(CudaAttention, PackedMatchesTheCpu) {
  const DType dtype = GetParam();
  for (const HeadShape& heads : head_shapes(dtype)) {
    for (const std::uint64_t seed : emulated() ? std::vector{1ul} : std::vector{1ul, 2ul}) {
      SCOPED_TRACE(testing::Message() << heads.h << "/" << heads.g << " x " << heads.d);
      Batch batch = make_batch(heads, seed);
      batch.qkv = rounded(batch.qkv, dtype);
      const Expected cpu = forward_on_cpu(batch);
      const Forward forward(gpu(), dtype, batch);
      expect_close(forward.out.values(), cpu.out, dtype);
      expect_close(forward.lse.values(), cpu.lse, DType::kF32);
      // No sequence is longer than a split.
      EXPECT_TRUE(same_bits(forward.out.values(), rounded(cpu.out, dtype)));
      EXPECT_TRUE(same_bits(forward.lse.values(), cpu.lse));
    }
  }
}

TEST_P(CudaAttention, SplitsJoinToTheCpusResult) {
  const DType dtype = GetParam();
  Batch batch = make_long_batch({2, 1, 16});
  batch.qkv = rounded(batch.qkv, dtype);
  const Expected cpu = forward_on_cpu(batch);
  const Forward forward(gpu(), dtype, batch);
  expect_close(forward.out.values(), cpu.out, dtype);
  expect_close(forward.lse.values(), cpu.lse, DType::kF32);
}

TEST_P(CudaAttention, NoSequencesAreNoWork) {
  const Operand q(gpu(), GetParam(), {0, 2, 16}, Floats{});
  const Operand k(gpu(), GetParam(), {0, 1, 16}, Floats{});
  attention(gpu(), AttentionPacked{.q = q, .k = k, .v = k, .segments = {}, .scale = 1, .out = q});
  EXPECT_TRUE(q.values().empty());
}

// Runs the queries [from, from + count) of the batch's segments, cut by `most`, through the pages
// that hold everything, and expects the packed form's bits.
void expect_paged(const Stream& gpu, DType dtype, const Batch& batch, std::int32_t from_end,
                  const Floats& packed) {
  const auto [h, g, d] = batch.heads;
  const Paged paged = make_pages(cpu_backend(), Stream{}, batch);
  std::vector<std::int32_t> begin = {0}, first;
  Floats q, expected;
  for (const Segment& segment : batch.segments) {
    // The last `from_end` own queries, or all.
    const std::int32_t from = from_end < segment.len ? segment.len - from_end : 0;
    for (std::int32_t i = from; i < segment.len; ++i) {
      const std::int64_t row = segment.begin + i;
      const auto own = batch.qkv.begin() + row * batch.width();
      q.insert(q.end(), own, own + h * d);
      const auto out = packed.begin() + row * h * d;
      expected.insert(expected.end(), out, out + h * d);
    }
    begin.push_back(begin.back() + segment.len - from);
    first.push_back(segment.prefix_len + from);
  }
  const std::int64_t tokens = begin.back(), sequences = std::ssize(first);
  const std::initializer_list<std::int64_t> pool = {paged.pages, g, kPage, d};
  const Operand qs(gpu, dtype, {tokens, h, d}, q);
  const Operand k(gpu, dtype, pool, paged.k), v(gpu, dtype, pool, paged.v);
  const Operand tables(gpu, {sequences, paged.blocks}, paged.tables);
  const Operand begins(gpu, {sequences + 1}, begin), firsts(gpu, {sequences}, first);
  const Operand out = Operand::poisoned(gpu, dtype, {tokens, h, d});
  attention(gpu, AttentionPaged{.q = qs,
                                .k_pages = k,
                                .v_pages = v,
                                .block_tables = tables,
                                .query_begin = begins,
                                .first_position = firsts,
                                .scale = batch.scale(),
                                .out = out});
  EXPECT_TRUE(same_bits(out.values(), expected));
}

TEST_P(CudaAttention, At1PagedHasTheBitsOfPacked) {
  const DType dtype = GetParam();
  for (const HeadShape& heads : head_shapes(dtype)) {
    SCOPED_TRACE(testing::Message() << heads.h << "/" << heads.g << " x " << heads.d);
    Batch batch = make_batch(heads, 3);
    batch.qkv = rounded(batch.qkv, dtype);
    const Floats packed = Forward(gpu(), dtype, batch).out.values();
    for (const std::int32_t queries : {1, 7, 100}) {  // decode, a mixture, whole prefill
      if (emulated() && queries == 100 && heads.d > 32) continue;
      SCOPED_TRACE(queries);
      expect_paged(gpu(), dtype, batch, queries, packed);
    }
  }
  Batch batch = make_long_batch({2, 1, 16});
  batch.qkv = rounded(batch.qkv, dtype);
  const Floats packed = Forward(gpu(), dtype, batch).out.values();
  for (const std::int32_t queries : {1, emulated() ? 40 : 600})
    expect_paged(gpu(), dtype, batch, queries, packed);
}

void expect_backward(const Stream& gpu, DType dtype, const Batch& batch) {
  const auto [h, g, d] = batch.heads;
  const std::int64_t rows = batch.rows;
  Rng rng(5);
  const Floats dout = rounded(normals(rng, rows * h * d), dtype);
  const Forward forward(gpu, dtype, batch);
  const Operand douts(gpu, dtype, {rows, h, d}, dout);
  const Operand to = Operand::poisoned(gpu, dtype, {rows, batch.width()});
  const Operand space = Operand::poisoned(
      gpu, DType::kF32, {attention_backward_workspace(DeviceKind::kCuda, rows, h)});
  AttentionBackward op{.dout = douts,
                       .q = batch.q(forward.qkv.view()),
                       .k = batch.k(forward.qkv.view()),
                       .v = batch.v(forward.qkv.view()),
                       .out = forward.out,
                       .lse = forward.lse,
                       .segments = as_segments(forward.segments, batch),
                       .scale = batch.scale(),
                       .dq = batch.q(to.view()),
                       .dk = batch.k(to.view()),
                       .dv = batch.v(to.view()),
                       .workspace = space};
  attention(gpu, op);
  const Floats gradient = to.values();

  // The CPU's, from the GPU's own forward.
  const Floats out = forward.out.values(), lse = forward.lse.values();
  Floats cpu = poison(rows * batch.width());
  attention(Stream{}, AttentionBackward{.dout = tensor(dout.data(), {rows, h, d}),
                                        .q = batch.q(batch.qkv),
                                        .k = batch.k(batch.qkv),
                                        .v = batch.v(batch.qkv),
                                        .out = tensor(out.data(), {rows, h, d}),
                                        .lse = tensor(lse.data(), {rows, h}),
                                        .segments = batch.segments,
                                        .scale = batch.scale(),
                                        .dq = batch.q(cpu),
                                        .dk = batch.k(cpu),
                                        .dv = batch.v(cpu)});
  expect_close(gradient, cpu, dtype);
  attention(gpu, op);
  EXPECT_TRUE(same_bits(to.values(), gradient)) << "a second run";
}

TEST_P(CudaAttention, At2BackwardMatchesTheCpu) {
  const DType dtype = GetParam();
  for (const HeadShape& heads : head_shapes(dtype)) {
    SCOPED_TRACE(testing::Message() << heads.h << "/" << heads.g << " x " << heads.d);
    Batch batch = make_batch(heads, 4);
    batch.qkv = rounded(batch.qkv, dtype);
    expect_backward(gpu(), dtype, batch);
  }
  Batch batch = make_long_batch({2, 1, 16});
  batch.qkv = rounded(batch.qkv, dtype);
  expect_backward(gpu(), dtype, batch);
}

INSTANTIATE_TEST_SUITE_P(Types, CudaAttention, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
