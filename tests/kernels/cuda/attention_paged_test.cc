// AT-1 on a GPU: each way in which paged attention may divide its work (chunks, splits, shared
// prefixes, recorded steps) gives the bits of packed attention.
//
// Tests kernels/ops/attention.h.
#include <algorithm>

#include "kernels/ops/attention.h"
#include "kernels/ops/kv_cache.h"
#include "runtime/device/graph.h"
#include "tests/kernels/cuda/attention_forward.h"

namespace tandem::kernels {
namespace {

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
    device::synchronize(gpu);
  }
};

// Own queries of each segment, as far as it has them.
struct Queries {
  std::int32_t from = 0, to = 0;
};
Queries last(const Segment& segment, std::int32_t count) {
  return {.from = std::max(0, segment.len - count), .to = segment.len};
}

// The rows of the queries in `all`, whose rows are `stride` floats long.
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

// More splits than a decode step, in bf16, takes side by side. The next two splits cancel the sums
// of the first two: the result is the roundings, so none can differ.
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

// The splits after the prefix, of sequences that share one.
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

// Decoding beside prompts: sequences of one query have a kernel of their own, which spreads them;
// the others' rows are not its. One has no query at all.
TEST_P(CudaAttention, At1MixedStepsLeaveTheBits) {
  Batch batch{.heads = {3, 1, 16}};
  batch.add_family(544, {500, 1, 737, 70, 3});
  Rng rng(16);
  batch.qkv = rounded(normals(rng, batch.rows * batch.width()), GetParam());
  const Floats packed = Forward(gpu(), GetParam(), batch).out.values();
  const SharedPages shared(batch);
  const PagesOnGpu pages(gpu(), GetParam(), batch, shared.paged);
  const OnGpu<SharedPrefix> prefixes(gpu(), shared.prefixes);
  const auto mixed = [](const Segment& segment) {
    return last(segment, segment.len == 70 ? 60 : segment.len == 3 ? 0 : 1);
  };
  const std::int64_t row = attention_paged_workspace(1, 3, 16, 1), sequences = 6;
  for (const std::int64_t room : {0, 2, 8}) {
    SCOPED_TRACE(room);
    const Operand space = Operand::poisoned(gpu(), DType::kF32, {room * row * sequences});
    expect_paged(gpu(), GetParam(), batch, pages, mixed, packed, prefixes.span(), space);
    // The sequences of 1044 and of 1281 positions; the splits of the others are done side by side.
    const std::int64_t spread = std::min<std::int64_t>(room, 5) + std::min<std::int64_t>(room, 6);
    EXPECT_EQ(numbers_in(space), GetParam() == DType::kBF16 ? spread * row : 0);
  }
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
    device::copy(gpu(), to.view().data, values.data(), values.size() * sizeof(std::int32_t));
    device::synchronize(gpu());
  };
  write(spread.first, {7, 250, 3});
  const auto step = [&] { spread.attend({}, space); };
  step();
  const auto graph = device::Graph::capture(gpu(), step);
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

INSTANTIATE_TEST_SUITE_P(Types, CudaAttention, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
