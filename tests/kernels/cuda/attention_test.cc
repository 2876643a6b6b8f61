#include "kernels/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/ops/kv_cache.h"
#include "runtime/device/graph.h"
#include "tests/kernels/attention_batch.h"
#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using runtime::DeviceKind;
using runtime::tensor;

// One group and many, a head per group and several, channels on either side of what a kernel has
// columns for.
std::vector<HeadShape> head_shapes(DType dtype) {
  std::vector<HeadShape> all = {{2, 1, 32}, {6, 2, 16}, {1, 1, 144}};
  if (dtype == DType::kBF16) all = {{6, 2, 16}, {1, 1, 64}, {8, 1, 128}, {2, 1, 144}, {1, 1, 256}};
  if (!emulated()) all.insert(all.end(), {{3, 3, 48}, {32, 1, 16}, {16, 8, 128}, {8, 2, 256}});
  return all;
}

// In bf16 the result is rounded to 8 bits, and so were the weights, or the scores' gradients, that
// it is a sum of. A rounding moves a number by up to 2^-9 of it, as a whole by 1.7e-3 (root mean
// square); those of a sum's terms together move it by about as much where few terms count. Where
// terms cancel a single element may be off by more; the whole is not.
void expect_near(std::span<const float> actual, std::span<const float> expected, DType dtype) {
  if (dtype == DType::kF32) return expect_close(actual, expected, dtype);
  ASSERT_EQ(actual.size(), expected.size());
  double error = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double off = static_cast<double>(actual[i]) - expected[i];
    error += off * off;
    size += static_cast<double>(expected[i]) * expected[i];
  }
  EXPECT_LT(std::sqrt(error / size), 3e-3);
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

// A batch for the shape, rounded: on the emulator, where wide heads take long, few rows for them.
Batch batch_for(const HeadShape& heads, DType dtype, std::uint64_t seed) {
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
      const Batch batch = batch_for(heads, dtype, seed);
      const Expected cpu = forward_on_cpu(batch);
      const Forward forward(gpu(), dtype, batch);
      expect_near(forward.out.values(), cpu.out, dtype);
      expect_close(forward.lse.values(), cpu.lse, DType::kF32);
      if (dtype != DType::kF32) continue;
      // No sequence is longer than a split.
      EXPECT_TRUE(same_bits(forward.out.values(), cpu.out));
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
  expect_near(forward.out.values(), cpu.out, dtype);
  expect_close(forward.lse.values(), cpu.lse, DType::kF32);
}

TEST_P(CudaAttention, NoSequencesAreNoWork) {
  const Operand q(gpu(), GetParam(), {0, 2, 16}, Floats{});
  const Operand k(gpu(), GetParam(), {0, 1, 16}, Floats{});
  attention(gpu(), AttentionPacked{.q = q, .k = k, .v = k, .segments = {}, .scale = 1, .out = q});
  EXPECT_TRUE(q.values().empty());
}

// The pools of make_pages, as the GPU's own operator writes them; slots beyond a sequence hold NaN.
struct PagesOnGpu {
  std::int64_t blocks, pages;
  Operand tables, k, v;

  PagesOnGpu(const Stream& gpu, DType dtype, const Batch& batch)
      : PagesOnGpu(gpu, dtype, batch, make_pages(cpu_backend(), Stream{}, batch)) {}

  PagesOnGpu(const Stream& gpu, DType dtype, const Batch& batch, const Paged& paged)
      : blocks(paged.blocks),
        pages(paged.pages),
        tables(gpu, {std::ssize(batch.segments), blocks}, paged.tables),
        k(Operand::poisoned(gpu, dtype, {pages, batch.heads.g, kPage, batch.heads.d})),
        v(Operand::poisoned(gpu, dtype, {pages, batch.heads.g, kPage, batch.heads.d})) {
    Floats rows;
    std::vector<std::int32_t> slots;
    std::vector<bool> filled(static_cast<std::size_t>(pages * kPage));
    for (std::size_t s = 0; s < batch.segments.size(); ++s) {
      const Segment& segment = batch.segments[s];
      for (std::int64_t p = 0; p < segment.prefix_len + segment.len; ++p) {
        const auto table =
            static_cast<std::size_t>(static_cast<std::int64_t>(s) * blocks + p / kPage);
        const auto slot = static_cast<std::int32_t>(paged.tables[table] * kPage + p % kPage);
        if (filled[static_cast<std::size_t>(slot)]) continue;  // a shared page
        filled[static_cast<std::size_t>(slot)] = true;
        slots.push_back(slot);
        const auto from = batch.qkv.begin() + row_at(segment, p) * batch.width();
        rows.insert(rows.end(), from, from + batch.width());
      }
    }
    const Operand all(gpu, dtype, {std::ssize(slots), batch.width()}, rows);
    const Operand places(gpu, {std::ssize(slots)}, slots);
    kv_write(gpu, {.k = batch.k(all.view()),
                   .v = batch.v(all.view()),
                   .slots = places,
                   .k_pages = k,
                   .v_pages = v});
    runtime::synchronize(gpu);
  }
};

// Own queries of each segment, as far as it has them.
struct Queries {
  std::int32_t from = 0, to = 0;
};
Queries last(const Segment& segment, std::int32_t count) {
  return {.from = std::max(0, segment.len - count), .to = segment.len};
}

// What `all`, `stride` floats to a row, has from the beginning of the rows of the queries.
template <class Pick>
Floats picked(const Batch& batch, const Pick& pick, const Floats& all, std::int64_t stride) {
  const std::int64_t width = batch.heads.h * batch.heads.d;
  Floats some;
  for (const Segment& segment : batch.segments) {
    const Queries own = pick(segment);
    for (std::int32_t i = own.from; i < own.to; ++i) {
      const auto from = all.begin() + (segment.begin + i) * stride;
      some.insert(some.end(), from, from + width);
    }
  }
  return some;
}

// Queries of each of the batch's segments, over the pages that hold everything.
struct PagedQueries {
  const Stream& gpu;
  const Batch& batch;
  const PagesOnGpu& pages;
  std::int64_t rows;
  Operand q, begin, first, out;

  template <class Pick>
  PagedQueries(const Stream& stream, DType dtype, const Batch& of, const PagesOnGpu& on,
               const Pick& pick)
      : PagedQueries(stream, dtype, of, on, picked(of, pick, of.qkv, of.width()), begins(of, pick),
                     firsts(of, pick)) {}

  PagedQueries(const Stream& stream, DType dtype, const Batch& of, const PagesOnGpu& on,
               const Floats& queries, const std::vector<std::int32_t>& begins,
               const std::vector<std::int32_t>& firsts)
      : gpu(stream),
        batch(of),
        pages(on),
        rows(std::ssize(queries) / (of.heads.h * of.heads.d)),
        q(stream, dtype, {rows, of.heads.h, of.heads.d}, queries),
        begin(stream, {std::ssize(begins)}, begins),
        first(stream, {std::ssize(firsts)}, firsts),
        out(Operand::poisoned(stream, dtype, {rows, of.heads.h, of.heads.d})) {}

  template <class Pick>
  static std::vector<std::int32_t> begins(const Batch& batch, const Pick& pick) {
    std::vector<std::int32_t> begins = {0};
    for (const Segment& segment : batch.segments) {
      const Queries own = pick(segment);
      begins.push_back(begins.back() + own.to - own.from);
    }
    return begins;
  }
  template <class Pick>
  static std::vector<std::int32_t> firsts(const Batch& batch, const Pick& pick) {
    std::vector<std::int32_t> firsts;
    for (const Segment& segment : batch.segments)
      firsts.push_back(segment.prefix_len + pick(segment).from);
    return firsts;
  }

  void attend(std::span<const SharedPrefix> prefixes = {}, const TensorView& workspace = {}) const {
    attention(gpu, AttentionPaged{.q = q,
                                  .k_pages = pages.k,
                                  .v_pages = pages.v,
                                  .block_tables = pages.tables,
                                  .query_begin = begin,
                                  .first_position = first,
                                  .scale = batch.scale(),
                                  .out = out,
                                  .shared_prefixes = prefixes,
                                  .workspace = workspace});
  }
  Floats attended(std::span<const SharedPrefix> prefixes = {},
                  const TensorView& workspace = {}) const {
    attend(prefixes, workspace);
    return out.values();
  }
};

// The packed form's bits.
template <class Pick>
void expect_paged(const Stream& gpu, DType dtype, const Batch& batch, const PagesOnGpu& pages,
                  const Pick& pick, const Floats& packed,
                  std::span<const SharedPrefix> prefixes = {}, const TensorView& workspace = {}) {
  const PagedQueries queries(gpu, dtype, batch, pages, pick);
  const Floats expected = picked(batch, pick, packed, batch.heads.h * batch.heads.d);
  EXPECT_TRUE(same_bits(queries.attended(prefixes, workspace), expected));
}

Queries last_one(const Segment& segment) { return last(segment, 1); }

TEST_P(CudaAttention, At1PagedHasTheBitsOfPacked) {
  const DType dtype = GetParam();
  const auto expect_last = [&](const Batch& batch, std::initializer_list<std::int32_t> counts) {
    const Floats packed = Forward(gpu(), dtype, batch).out.values();
    const PagesOnGpu pages(gpu(), dtype, batch);
    for (const std::int32_t count : counts) {
      SCOPED_TRACE(count);
      const auto pick = [&](const Segment& segment) { return last(segment, count); };
      expect_paged(gpu(), dtype, batch, pages, pick, packed);
    }
  };
  for (const HeadShape& heads : head_shapes(dtype)) {
    SCOPED_TRACE(testing::Message() << heads.h << "/" << heads.g << " x " << heads.d);
    const Batch batch = batch_for(heads, dtype, 3);
    expect_last(batch, {1, 7, 100});  // decode, a mixture, whole prefill
  }
  Batch batch = make_long_batch({2, 1, 16});
  batch.qkv = rounded(batch.qkv, dtype);
  expect_last(batch, {1, emulated() ? 40 : 600});
}

// A prefill may be cut anywhere: within a chunk, at its end, across splits.
TEST_P(CudaAttention, At1ChunkedPrefillHasTheBitsOfPacked) {
  const DType dtype = GetParam();
  Batch batch{.heads = {2, 1, 16}};
  batch.add_family(290, {20});
  Rng rng(11);
  batch.qkv = rounded(normals(rng, batch.rows * batch.width()), dtype);
  const Floats packed = Forward(gpu(), dtype, batch).out.values();
  const PagesOnGpu pages(gpu(), dtype, batch);
  const std::int32_t cuts[] = {0, 3, 64, 65, 200, 256, 289, 290};
  for (std::size_t i = 1; i < std::size(cuts); ++i) {
    SCOPED_TRACE(cuts[i]);
    const auto pick = [&](const Segment& segment) {
      return Queries{.from = std::min(cuts[i - 1], segment.len),
                     .to = std::min(cuts[i], segment.len)};
    };
    expect_paged(gpu(), dtype, batch, pages, pick, packed);
  }
}

// More splits than a decode step, in bf16, takes side by side. What the first two splits sum up,
// the next two take away again: the result is the roundings, so none can differ.
TEST_F(CudaTest, At1DecodeOfManySplitsHasTheBitsOfPacked) {
  constexpr DType dtype = DType::kBF16;
  constexpr std::int64_t kHalf = 2 * kSplitPositions, kPeriods = 3;
  Batch batch{.heads = {1, 1, 16}};
  batch.add_family(kPeriods * kHalf - kSplitPositions, {});
  Rng rng(12);
  batch.qkv = rounded(normals(rng, batch.rows * batch.width()), dtype);
  for (std::int64_t row = kHalf; row < batch.rows; ++row) {
    for (std::int64_t i = 16; i < 48; ++i) {
      const float before = batch.qkv[(row - kHalf) * 48 + i];
      batch.qkv[row * 48 + i] = i < 32 ? before : -before;
    }
  }
  for (std::int64_t row = 2 * kHalf; row < batch.rows; ++row) {
    std::fill_n(batch.qkv.begin() + row * 48 + 32, 16, 0.0f);
  }
  const Floats packed = Forward(gpu(), dtype, batch).out.values();
  const PagesOnGpu pages(gpu(), dtype, batch);
  expect_paged(gpu(), dtype, batch, pages, last_one, packed);
}

// Pages of a batch's first family, whose prefix all but its first sequence share.
struct SharedPages {
  Paged paged;
  std::vector<SharedPrefix> prefixes = {{.leader = 0, .positions = 0}};

  explicit SharedPages(const Batch& batch) : paged(make_pages(cpu_backend(), Stream{}, batch)) {
    const std::int32_t shared = batch.segments.front().len;
    CHECK(shared % kPage == 0);
    for (std::size_t s = 1; s < batch.segments.size(); ++s) {
      prefixes.push_back({.leader = 1, .positions = shared});
      std::copy_n(paged.tables.begin() + paged.blocks, shared / kPage,
                  paged.tables.begin() + static_cast<std::int64_t>(s) * paged.blocks);
    }
  }
};

std::int64_t numbers_in(const Operand& space) {
  const Floats all = space.values();
  return std::count_if(all.begin(), all.end(), [](float x) { return x == x; });
}

// Nine sequences share a prefix of two splits and a part, and one before them shares with none; the
// workspace holds so many splits of them.
void expect_shared(const Stream& gpu, DType dtype, std::int64_t channels, std::int64_t splits) {
  constexpr std::int32_t kShared = 544;
  static_assert(kShared > 2 * kSplitPositions);
  Batch batch{.heads = {2, 1, channels}};
  batch.add_family(kShared, {1, 30, 2, 1, 7, 1, 1, 1, 5});
  Rng rng(14);
  batch.qkv = rounded(normals(rng, batch.rows * batch.width()), dtype);
  const Floats packed = Forward(gpu, dtype, batch).out.values();
  const SharedPages shared(batch);
  const PagesOnGpu pages(gpu, dtype, batch, shared.paged);
  const OnGpu<SharedPrefix> on_gpu(gpu, shared.prefixes);
  const std::int64_t sequences = std::ssize(shared.prefixes);
  const std::int64_t one = attention_paged_workspace(sequences, 2, channels, 1);
  const Operand space = Operand::poisoned(gpu, DType::kF32, {splits * one});
  expect_paged(gpu, dtype, batch, pages, last_one, packed, on_gpu.span(), space);
  if (channels > 128) return;  // three splits are more than a block takes at once: may be spread
  // The two splits of the nine alone.
  const std::int64_t expected = dtype == DType::kBF16 ? std::min<std::int64_t>(splits, 2) : 0;
  EXPECT_EQ(numbers_in(space), expected * one / sequences * 9);
}

// Room for one split, or for more than they have; a head in one block, and in two.
TEST_P(CudaAttention, At1SharedPrefixesLeaveTheBits) {
  expect_shared(gpu(), GetParam(), 16, 1);
  if (GetParam() == DType::kF32) return;  // is not told of them
  expect_shared(gpu(), DType::kBF16, 16, 3);
  expect_shared(gpu(), DType::kBF16, 128, 3);
  expect_shared(gpu(), DType::kBF16, 144, 3);
}

// Splits that a block of bf16 takes side by side.
std::int64_t side_by_side(std::int64_t channels) { return channels <= 128 ? 4 : 2; }

std::int64_t splits_of(std::int64_t positions) {
  return (positions + kSplitPositions - 1) / kSplitPositions;
}

// Sequences of so many positions, with room for so many splits. A few are spread over a GPU where a
// block does not take their splits at once, and hundreds are not.
void expect_spread(const Stream& gpu, const HeadShape& heads,
                   const std::vector<std::int32_t>& positions, std::int64_t room) {
  SCOPED_TRACE(testing::Message() << heads.h << "/" << heads.g << " x " << heads.d << ", room for "
                                  << room);
  Batch batch{.heads = heads};
  std::int64_t spread = 0;
  for (const std::int32_t count : positions) {
    batch.add_family(count, {});
    const std::int64_t all = splits_of(count);
    if (positions.size() < 300 && all > side_by_side(heads.d)) spread += std::min(all, room);
  }
  Rng rng(static_cast<std::uint64_t>(20 + room));
  batch.qkv = rounded(normals(rng, batch.rows * batch.width()), DType::kBF16);
  const PagesOnGpu pages(gpu, DType::kBF16, batch);
  const PagedQueries queries(gpu, DType::kBF16, batch, pages, last_one);
  const std::int64_t one = attention_paged_workspace(queries.rows, heads.h, heads.d, 1);
  const Operand space = Operand::poisoned(gpu, DType::kF32, {room * one});
  const Floats walked = queries.attended();
  EXPECT_TRUE(same_bits(PagedQueries(gpu, DType::kBF16, batch, pages, last_one).attended({}, space),
                        walked));
  EXPECT_EQ(numbers_in(space), spread * one / queries.rows);
}

// One sequence and several, at the ends of splits and around them; room for all, and for less than
// there is to sum up.
TEST_F(CudaTest, At1SpreadSplitsLeaveTheBits) {
  expect_spread(gpu(), {8, 1, 16}, {1281}, 7);
  expect_spread(gpu(), {5, 1, 48}, {1279, 1, 1024, 1025}, 5);
  expect_spread(gpu(), {4, 2, 16}, {1280, 300}, 3);
  expect_spread(gpu(), {1, 1, 144}, {511, 513}, 3);
  std::vector<std::int32_t> many(300, 1);
  many.back() = 1100;
  expect_spread(gpu(), {1, 1, 16}, many, 5);
}

// Of sequences that share a prefix, the splits after it.
TEST_F(CudaTest, At1SpreadAndSharedSplitsLeaveTheBits) {
  Batch batch{.heads = {3, 1, 16}};
  batch.add_family(544, {500, 1, 737});
  Rng rng(15);
  batch.qkv = rounded(normals(rng, batch.rows * batch.width()), DType::kBF16);
  const SharedPages shared(batch);
  const PagesOnGpu pages(gpu(), DType::kBF16, batch, shared.paged);
  const OnGpu<SharedPrefix> prefixes(gpu(), shared.prefixes);
  const std::int64_t one = attention_paged_workspace(4, 3, 16, 1);
  const Operand space = Operand::poisoned(gpu(), DType::kF32, {8 * one});
  const PagedQueries walk(gpu(), DType::kBF16, batch, pages, last_one);
  const PagedQueries spread(gpu(), DType::kBF16, batch, pages, last_one);
  EXPECT_TRUE(same_bits(spread.attended(prefixes.span(), space), walk.attended()));
  EXPECT_EQ(numbers_in(space), (5 + 2 + 6) * one / 4);
}

// A step that was recorded for sequences that have hardly begun runs for long ones, and for fewer:
// the last has no query.
TEST_F(CudaTest, At1RecordedStepsSpreadWhatTheyMeet) {
  Batch batch{.heads = {2, 1, 16}};
  for (const std::int32_t positions : {1290, 1100, 20}) batch.add_family(positions, {});
  Rng rng(16);
  batch.qkv = rounded(normals(rng, batch.rows * batch.width()), DType::kBF16);
  const PagesOnGpu pages(gpu(), DType::kBF16, batch);
  const PagedQueries walk(gpu(), DType::kBF16, batch, pages, last_one);
  const PagedQueries spread(gpu(), DType::kBF16, batch, pages, last_one);
  const std::int64_t one = attention_paged_workspace(3, 2, 16, 1);
  const Operand space = Operand::poisoned(gpu(), DType::kF32, {6 * one});
  const auto write = [&](const Operand& to, const std::vector<std::int32_t>& values) {
    runtime::copy(gpu(), to.view().data, values.data(), values.size() * sizeof(std::int32_t));
    runtime::synchronize(gpu());
  };
  write(spread.first, {7, 250, 3});
  const auto step = [&] { spread.attend({}, space); };
  step();
  const auto graph = runtime::Graph::capture(gpu(), step);
  EXPECT_EQ(numbers_in(space), 0);
  for (const std::vector<std::int32_t>& first :
       {std::vector{1289, 1099, 19}, {1024, 1023, 0}, {300, 1030, 19}}) {
    SCOPED_TRACE(first[0]);
    for (const PagedQueries* queries : {&walk, &spread}) {
      write(queries->first, first);
      write(queries->begin, {0, 1, 2, first[2] == 0 ? 2 : 3});
    }
    graph.launch(gpu());
    EXPECT_TRUE(same_bits(spread.out.values(), walk.attended()));
  }
  EXPECT_EQ(numbers_in(space), (6 + 5) * one / 3);
}

// What follows a row, and what shares its batch, does not touch it.
TEST_P(CudaAttention, At1ARowDependsOnItsPositionsAlone) {
  const DType dtype = GetParam();
  constexpr std::int32_t kKept = 70, kAll = 100;
  Batch batch{.heads = {2, 1, 16}};
  batch.add_family(kAll, {});
  Rng rng(13);
  batch.qkv = rounded(normals(rng, batch.rows * batch.width()), dtype);
  const Forward whole(gpu(), dtype, batch);
  Batch other{.heads = batch.heads};
  other.add_family(9, {40});
  other.add_family(kAll, {});
  other.qkv = rounded(normals(rng, other.rows * other.width(), 30.0f), dtype);
  const std::int64_t begin = other.segments.back().begin;
  std::copy_n(batch.qkv.begin(), kKept * batch.width(), other.qkv.begin() + begin * other.width());
  const Forward within(gpu(), dtype, other);
  const auto part = [](const Floats& all, std::int64_t from, std::int64_t width) {
    return Floats(all.begin() + from * width, all.begin() + (from + kKept) * width);
  };
  EXPECT_TRUE(same_bits(part(whole.out.values(), 0, 32), part(within.out.values(), begin, 32)));
  EXPECT_TRUE(same_bits(part(whole.lse.values(), 0, 2), part(within.lse.values(), begin, 2)));
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
  // Parts of their own, whose sizes differ.
  for (const auto& [begin, count] : {std::pair{std::int64_t{0}, h}, {h, g}, {h + g, g}}) {
    const auto part = [&](const Floats& all) {
      Floats some;
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto from = all.begin() + row * batch.width() + begin * d;
        some.insert(some.end(), from, from + count * d);
      }
      return some;
    };
    expect_near(part(gradient), part(cpu), dtype);
  }
  attention(gpu, op);
  EXPECT_TRUE(same_bits(to.values(), gradient)) << "a second run";
}

TEST_P(CudaAttention, At2BackwardMatchesTheCpu) {
  const DType dtype = GetParam();
  for (const HeadShape& heads : head_shapes(dtype)) {
    // On the emulator the slowest of all; 16 is padded as 64 is, and 144 as 256.
    if (emulated() && dtype == DType::kBF16 && (heads.d == 64 || heads.d == 144)) continue;
    SCOPED_TRACE(testing::Message() << heads.h << "/" << heads.g << " x " << heads.d);
    const Batch batch = batch_for(heads, dtype, 4);
    expect_backward(gpu(), dtype, batch);
  }
  Batch batch = make_long_batch({2, 1, 16});
  batch.qkv = rounded(batch.qkv, dtype);
  expect_backward(gpu(), dtype, batch);
}

INSTANTIATE_TEST_SUITE_P(Types, CudaAttention, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
