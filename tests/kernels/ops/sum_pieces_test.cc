#include "kernels/ops/sum_pieces.h"

#include <gtest/gtest.h>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

std::vector<Floats> some_pieces(std::int64_t count, std::int64_t n) {
  Rng rng(static_cast<std::uint64_t>(count * 100000 + n));
  std::vector<Floats> pieces;
  for (std::int64_t i = 0; i < count; ++i) pieces.push_back(normals(rng, n));
  return pieces;
}

Floats summed_in_order(const std::vector<Floats>& pieces) {
  Floats sum = pieces.front();
  for (std::size_t p = 1; p < pieces.size(); ++p)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + pieces[p][i];
  return sum;
}

// The sum goes into a block of its own and into each end of the list.
TEST(SumPieces, AddsInTheOrderOfTheList) {
  for (const std::int64_t count : {1, 2, 3, 8, kSumPiecesMax}) {
    for (const std::int64_t n : {0, 1, 16, 17, 40000}) {
      for (const std::int64_t into : {std::int64_t{-1}, std::int64_t{0}, count - 1}) {
        SCOPED_TRACE(testing::Message() << count << " of " << n << " into " << into);
        const std::vector<Floats> pieces = some_pieces(count, n);
        const Floats sum = same_everywhere([&](const Backend& backend, const Stream& stream) {
          std::vector<Floats> given = pieces;
          Floats apart = poison(n);
          Floats& out = into < 0 ? apart : given[static_cast<std::size_t>(into)];
          std::vector<TensorView> views;
          for (const Floats& piece : given) views.push_back(tensor(piece.data(), {n}));
          backend.sum_pieces(stream, {.pieces = views, .out = tensor(out.data(), {n})});
          return out;
        });
        EXPECT_TRUE(same_bits(sum, summed_in_order(pieces)));
      }
    }
  }
}

// If another order had the same bits, the test above could not tell.
TEST(SumPieces, AnotherOrderHasOtherBits) {
  std::vector<Floats> pieces = some_pieces(3, 1000);
  const Floats sum = summed_in_order(pieces);
  std::swap(pieces[0], pieces[2]);
  EXPECT_FALSE(same_bits(sum, summed_in_order(pieces)));
}

TEST(SumPieces, RefusesNoPiecesTooManyAndOtherShapes) {
  const Floats values(4);
  const TensorView out = tensor(values.data(), {4});
  const std::vector<TensorView> many(kSumPiecesMax + 1, out), shorter{tensor(values.data(), {3})};
  EXPECT_DEATH(sum_pieces(Stream{}, {.pieces = {}, .out = out}), "pieces");
  EXPECT_DEATH(sum_pieces(Stream{}, {.pieces = many, .out = out}), "pieces");
  EXPECT_DEATH(sum_pieces(Stream{}, {.pieces = shorter, .out = out}), "is_f32");
}

}  // namespace
}  // namespace tandem::kernels
