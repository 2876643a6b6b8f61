#include "kernels/ops/embedding.h"

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::columns;
using device::tensor;

using CudaEmbedding = CudaDTypeTest;

struct Shape {
  std::int64_t t, v, c;
};

// Tokens that repeat within a warp, across warps and across blocks of tokens; and all the same.
std::vector<Shape> shapes() {
  std::vector<Shape> all = {{0, 4, 8},    {1, 3, 5},     {40, 7, 16}, {130, 9, 33},
                            {300, 1, 20}, {257, 500, 8}, {5, 9, 1040}};
  if (!emulated()) all.push_back({16384, 30000, 1024});
  return all;
}

TEST_P(CudaEmbedding, ForwardCopiesRows) {
  const DType dtype = GetParam();
  for (const auto [t, v, c] : shapes()) {
    Rng rng(static_cast<std::uint64_t>(t + v));
    const Floats table = rounded(normals(rng, v * c), dtype);
    const std::vector<std::int32_t> ids = ids_below(rng, t, v);
    std::vector<std::int32_t> drawn;
    const std::vector<std::int32_t> named = name_some(ids, drawn);
    const Operand tables(gpu(), dtype, {v, c}, table), places(gpu(), {t}, ids);
    const Operand names(gpu(), {t}, named), drawing(gpu(), {std::ssize(drawn)}, drawn);
    const Operand wide = Operand::poisoned(gpu(), dtype, {t, c + 1});
    const Operand y = Operand::poisoned(gpu(), dtype, {t, c});
    embedding(gpu(), Embedding{.ids = places, .table = tables, .y = y});
    embedding(gpu(),
              Embedding{.ids = names, .table = tables, .y = columns(wide, 1, c), .drawn = drawing});
    Floats expected = poison(t * c);
    embedding(Stream{}, Embedding{.ids = tensor(ids.data(), {t}),
                                  .table = tensor(table.data(), {v, c}),
                                  .y = tensor(expected.data(), {t, c})});
    EXPECT_TRUE(same_bits(y.values(), expected)) << t << " of " << v << " x " << c;
    const Floats apart = wide.values();
    for (std::int64_t r = 0; r < t; ++r) {
      EXPECT_TRUE(same_bits(std::span(apart).subspan(r * (c + 1) + 1, c),
                            std::span(expected).subspan(r * c, c)));
    }
  }
}

// The tokens are added in ascending order on every device: the results are equal, not only close.
TEST_P(CudaEmbedding, BackwardGivesTheCpusBits) {
  const DType dtype = GetParam();
  for (const auto [t, v, c] : shapes()) {
    Rng rng(static_cast<std::uint64_t>(t * v));
    const Floats dy = rounded(normals(rng, t * c), dtype), before = normals(rng, v * c);
    const std::vector<std::int32_t> ids = ids_below(rng, t, v);
    const Operand dys(gpu(), dtype, {t, c}, dy), places(gpu(), {t}, ids);
    const Operand dtable(gpu(), DType::kF32, {v, c}, before);
    embedding(gpu(), EmbeddingBackward{.ids = places, .dy = dys, .dtable = dtable});
    Floats expected = before;
    embedding(Stream{}, EmbeddingBackward{.ids = tensor(ids.data(), {t}),
                                          .dy = tensor(dy.data(), {t, c}),
                                          .dtable = tensor(expected.data(), {v, c})});
    EXPECT_TRUE(same_bits(dtable.values(), expected)) << t << " of " << v << " x " << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaEmbedding, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
