#include "kernels/ops/embedding.h"

#include <gtest/gtest.h>

#include "runtime/device/memory.h"
#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

TEST(Embedding, TakesRowsAndAddsGradientsInTheOrderOfTokens) {
  const std::int64_t tokens = 700, vocabulary = 11;
  for (const std::int64_t channels : {1, 20, 64, 130}) {
    Rng rng(1);
    const auto ids = ids_below(rng, tokens, vocabulary);
    std::vector<std::int32_t> drawn;
    const auto named = name_some(ids, drawn);
    const Floats table = normals(rng, vocabulary * channels), dy = normals(rng, tokens * channels);
    const Floats base = normals(rng, vocabulary * channels);
    const Floats both = same_everywhere([&](const Backend& backend, const Stream& stream) {
      Floats y = poison(tokens * channels), dtable = base;
      backend.embedding(stream, {.ids = tensor(named.data(), {tokens}),
                                 .table = tensor(table.data(), {vocabulary, channels}),
                                 .y = tensor(y.data(), {tokens, channels}),
                                 .drawn = tensor(drawn.data(), {std::ssize(drawn)})});
      backend.embedding_backward(stream, {.ids = tensor(ids.data(), {tokens}),
                                          .dy = tensor(dy.data(), {tokens, channels}),
                                          .dtable = tensor(dtable.data(), {vocabulary, channels})});
      return joined({y, dtable});
    });
    Floats expected = base;
    for (std::int64_t i = 0; i < tokens * channels; ++i) {
      const std::int64_t at = ids[i / channels] * channels + i % channels;
      ASSERT_EQ(both[i], table[at]);
      expected[at] += dy[i];
    }
    EXPECT_TRUE(same_bits(std::span(both).last(expected.size()), expected));
  }
}

// The bits are those of the plain table, also of the rows of a last panel that is not full.
TEST(Embedding, TakesRowsOutOfAPackedTable) {
  const std::int64_t tokens = 700;
  for (const DType dtype : {DType::kF32, DType::kBF16})
    for (const auto& [vocabulary, channels] :
         {std::pair<std::int64_t, std::int64_t>(1, 1), {32, 20}, {75, 130}, {33, 21}}) {
      Rng rng(1);
      const auto ids = ids_below(rng, tokens, vocabulary);
      std::vector<std::int32_t> drawn;
      const auto named = name_some(ids, drawn);
      const Floats table = rounded(normals(rng, vocabulary * channels), dtype);
      const std::int64_t V = vocabulary, C = channels;
      const Floats taken = same_everywhere([&](const Backend& backend, const Stream& stream) {
        const auto bytes = static_cast<std::size_t>(packed_elements(dtype, V, C)) * 4;
        const auto memory = device::Buffer::allocate(bytes, "a packed table");
        const PackedWeight packed = packed_weight(memory->data(), dtype, V, C);
        const Stored plain(dtype, {V, C}, table), y = Stored::poisoned(dtype, {tokens, C});
        backend.pack_weight(stream, {.weight = plain, .packed = packed});
        backend.embedding(stream, {.ids = tensor(named.data(), {tokens}),
                                   .table = {},
                                   .y = y,
                                   .drawn = tensor(drawn.data(), {std::ssize(drawn)}),
                                   .packed = packed});
        return y.values();
      });
      for (std::int64_t i = 0; i < tokens * channels; ++i)
        ASSERT_EQ(taken[i], table[ids[i / channels] * channels + i % channels]);
    }
}

TEST(Embedding, APackedTableOfAnotherShapeIsABug) {
  const std::vector<std::int32_t> ids{0};
  const auto memory = device::Buffer::allocate(4096, "a packed table");
  Floats y(20);
  Embedding op{.ids = tensor(ids.data(), {1}),
               .table = {},
               .y = tensor(y.data(), {1, 20}),
               .packed = packed_weight(memory->data(), device::DType::kF32, 32, 20)};
  embedding(Stream{}, op);
  op.packed.k = 19;
  EXPECT_DEATH(embedding(Stream{}, op), "panels");
}

TEST(Embedding, InBf16RowsAreCopiesAndGradientsAreSummedInF32) {
  const std::int64_t tokens = 700, vocabulary = 11, channels = 20;
  Rng rng(2);
  const auto ids = ids_below(rng, tokens, vocabulary);
  const Floats table = rounded(normals(rng, vocabulary * channels), DType::kBF16);
  const Floats dy = rounded(normals(rng, tokens * channels), DType::kBF16);
  expect_rounded_once({DType::kBF16, DType::kF32}, [&](DType dtype, const Backend& backend,
                                                       const Stream& stream) {
    const Stored tables(dtype, {vocabulary, channels}, table), dys(dtype, {tokens, channels}, dy);
    const Stored y = Stored::poisoned(dtype, {tokens, channels});
    const Stored dtable(DType::kF32, {vocabulary, channels}, table);
    const TensorView views = tensor(ids.data(), {tokens});
    backend.embedding(stream, {.ids = views, .table = tables, .y = y});
    backend.embedding_backward(stream, {.ids = views, .dy = dys, .dtable = dtable});
    return std::vector{y.values(), dtable.values()};
  });
}

}  // namespace
}  // namespace tandem::kernels
