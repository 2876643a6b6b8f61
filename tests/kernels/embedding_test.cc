#include "kernels/ops/embedding.h"

#include <gtest/gtest.h>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using runtime::tensor;

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
