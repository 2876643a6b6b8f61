#include "kernels/ops/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/device/memory.h"
#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using runtime::rows;
using runtime::tensor;

struct Shape {
  std::int64_t m, k, n;
};

// Ragged in every direction: below, at and above tiles, panels, step blocks and parts; rows 4 KiB
// apart (copied) and not; operands read in place and packed.
std::vector<Shape> shapes(std::uint64_t seed) {
  std::vector<Shape> all = {{1, 1, 1},     {1, 64, 32},    {12, 64, 128}, {13, 65, 33},
                            {2, 600, 50},  {25, 300, 7},   {64, 64, 384}, {100, 520, 40},
                            {9, 1024, 40}, {200, 1024, 6}, {30, 40, 600}, {700, 30, 40},
                            {300, 5, 1024}};
  Rng rng(seed);
  for (int i = 0; i < 12; ++i) {
    all.push_back({static_cast<std::int64_t>(rng.below(40)) + 1,
                   static_cast<std::int64_t>(rng.below(150)) + 1,
                   static_cast<std::int64_t>(rng.below(150)) + 1});
  }
  return all;
}

class Packed {
 public:
  Packed(const Backend& backend, const TensorView& weight)
      : memory_(*runtime::Buffer::allocate(
            static_cast<std::size_t>(packed_elements(weight.dim(0), weight.dim(1))) * 4,
            "a test")) {
    const std::span<float> panels = memory_.as<float>();
    std::fill(panels.begin(), panels.end(), NAN);
    weight_ = packed_weight(panels.data(), weight.dim(0), weight.dim(1));
    backend.pack_weight(Stream{}, {.weight = weight, .packed = weight_});
  }
  const PackedWeight& weight() const { return weight_; }

 private:
  runtime::Buffer memory_;
  PackedWeight weight_;
};

TEST(Matmul, ForwardIsTheProductWhateverElseIsComputed) {  // MM-1
  for (const Shape& s : shapes(1)) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.k << " x " << s.n);
    Rng rng(2);
    const Floats x = normals(rng, s.m * s.k), w = normals(rng, s.n * s.k);
    const TensorView xs = tensor(x.data(), {s.m, s.k}), ws = tensor(w.data(), {s.n, s.k});
    const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
      const Packed packed(backend, ws);
      Floats all = poison(s.m * s.n), plain = all, alone = all;
      backend.matmul(stream,
                     {.x = xs, .weight = packed.weight(), .y = tensor(all.data(), {s.m, s.n})});
      backend.matmul_plain(stream, {.x = xs, .weight = ws, .y = tensor(plain.data(), {s.m, s.n})});
      for (std::int64_t r = 0; r < s.m; ++r) {
        backend.matmul(stream, {.x = rows(xs, r, 1),
                                .weight = packed.weight(),
                                .y = rows(tensor(alone.data(), {s.m, s.n}), r, 1)});
      }
      EXPECT_TRUE(same_bits(all, plain)) << "packed or not";
      EXPECT_TRUE(same_bits(all, alone)) << "a row alone";
      return all;
    });
    for (std::int64_t i = 0; i < s.m * s.n; ++i) {
      double expected = 0, size = 1;
      for (std::int64_t k = 0; k < s.k; ++k) {
        const double term = static_cast<double>(x[i / s.n * s.k + k]) * w[i % s.n * s.k + k];
        expected += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(y[i], expected, 1e-6 * size);
    }
  }
}

// An output as MM-1 states it. `a` and `b` read the factors of term t.
template <class A, class B>
float sum_of_chains(std::int64_t terms, Output output, float before, const A& a, const B& b) {
  float sum = before;
  for (std::int64_t first = 0; first < terms; first += kChainSteps) {
    float chain = 0;
    for (std::int64_t t = first; t < std::min(first + kChainSteps, terms); ++t) {
      chain = std::fma(a(t), b(t), chain);
    }
    sum = first == 0 && output == Output::kWrite ? chain : sum + chain;
  }
  return sum;
}

// m rows by `columns` outputs of so many terms, every way that there is to compute them.
void expect_sums_of_chains(std::int64_t terms, std::int64_t columns, Output output) {
  const std::int64_t m = 13;
  Rng rng(static_cast<std::uint64_t>(terms));
  const Floats a = normals(rng, m * terms), base = normals(rng, m * columns);
  // The same numbers as the weight [N, K] of forward and, transposed, of backward-input.
  const Floats w = normals(rng, columns * terms);
  Floats turned(w.size());
  for (std::int64_t i = 0; i < columns * terms; ++i) turned[i % terms * columns + i / terms] = w[i];
  const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
    const TensorView as = tensor(a.data(), {m, terms}), ws = tensor(w.data(), {columns, terms});
    const TensorView back_ws = tensor(turned.data(), {terms, columns});
    const Packed packed(backend, ws);
    Floats by_packed = base, by_plain = base, back = base, alone = base;
    const auto view = [&](Floats& of) { return tensor(of.data(), {m, columns}); };
    backend.matmul(stream,
                   {.x = as, .weight = packed.weight(), .y = view(by_packed), .output = output});
    backend.matmul_plain(stream, {.x = as, .weight = ws, .y = view(by_plain), .output = output});
    backend.matmul_backward_input(
        stream, {.dy = as, .weight = back_ws, .dx = view(back), .output = output});
    for (std::int64_t r = 0; r < m; ++r)
      backend.matmul(stream, {.x = rows(as, r, 1),
                              .weight = packed.weight(),
                              .y = rows(view(alone), r, 1),
                              .output = output});
    EXPECT_TRUE(same_bits(by_packed, by_plain)) << "packed or not";
    EXPECT_TRUE(same_bits(by_packed, back)) << "backward of the input";
    EXPECT_TRUE(same_bits(by_packed, alone)) << "a row alone";
    return by_packed;
  });
  for (std::int64_t i = 0; i < m * columns; ++i) {
    const float* factors = a.data() + i / columns * terms;
    const float* weights = w.data() + i % columns * terms;
    ASSERT_EQ(y[i], sum_of_chains(
                        terms, output, base[i], [&](std::int64_t t) { return factors[t]; },
                        [&](std::int64_t t) { return weights[t]; }));
  }
}

TEST(Matmul, OutputsAreSumsOfChains) {  // MM-1
  for (const std::int64_t terms : {1, 40, 255, 256, 257, 512, 600, 1024}) {
    // Backward-input reads its weight in place where there are 64 columns, and packs it otherwise.
    for (const std::int64_t columns : {45, 64, 300}) {
      for (const Output output : {Output::kWrite, Output::kAdd}) {
        SCOPED_TRACE(testing::Message() << terms << " terms, " << columns << " columns, output "
                                        << static_cast<int>(output));
        expect_sums_of_chains(terms, columns, output);
      }
    }
  }
}

TEST(Matmul, AWeightsGradientIsOneChainFromItsOwnValue) {  // MM-1
  const Shape s{600, 33, 20};
  Rng rng(9);
  const Floats dy = normals(rng, s.m * s.n), x = normals(rng, s.m * s.k);
  const Floats base = normals(rng, s.n * s.k);
  const Floats dw = same_everywhere([&](const Backend& backend, const Stream& stream) {
    Floats out = base;
    backend.matmul_backward_weight(stream, {.dy = tensor(dy.data(), {s.m, s.n}),
                                            .x = tensor(x.data(), {s.m, s.k}),
                                            .dweight = tensor(out.data(), {s.n, s.k})});
    return out;
  });
  for (std::int64_t i = 0; i < s.n * s.k; ++i) {
    float chain = base[i];
    for (std::int64_t m = 0; m < s.m; ++m)
      chain = std::fma(dy[m * s.n + i / s.k], x[m * s.k + i % s.k], chain);
    ASSERT_EQ(dw[i], chain);
  }
}

// Every term is less than half a unit in the last place of 1024, and a chain of them is not.
TEST(Matmul, SmallTermsDoNotDrownInALargeOutput) {
  const Shape s{3, 512, 40};
  const float term = 0x1p-15f;  // 1024 has a unit of 2^-13
  const Floats x(static_cast<std::size_t>(s.m * s.k), 1.0f);
  const Floats w(static_cast<std::size_t>(s.n * s.k), term);
  const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
    const TensorView ws = tensor(w.data(), {s.n, s.k});
    const Packed packed(backend, ws);
    Floats out(static_cast<std::size_t>(s.m * s.n), 1024.0f);
    backend.matmul(stream, {.x = tensor(x.data(), {s.m, s.k}),
                            .weight = packed.weight(),
                            .y = tensor(out.data(), {s.m, s.n}),
                            .output = Output::kAdd});
    return out;
  });
  for (const float value : y) ASSERT_EQ(value, 1024.0f + static_cast<float>(s.k) * term);
}

TEST(Matmul, StridedOperandsLeaveTheirNeighboursAlone) {
  const Shape s{9, 33, 20};
  Rng rng(4);
  const Floats wide = normals(rng, s.m * (s.k + 5)), w = normals(rng, s.n * s.k);
  Floats dense;
  for (std::int64_t r = 0; r < s.m; ++r) {
    dense.insert(dense.end(), wide.begin() + r * (s.k + 5) + 2,
                 wide.begin() + r * (s.k + 5) + 2 + s.k);
  }
  same_everywhere([&](const Backend& backend, const Stream& stream) {
    const TensorView ws = tensor(w.data(), {s.n, s.k});
    const Packed packed(backend, ws);
    Floats y = poison(s.m * s.n), out(static_cast<std::size_t>(s.m * (s.n + 4)), 7.0f);
    backend.matmul(stream, {.x = tensor(dense.data(), {s.m, s.k}),
                            .weight = packed.weight(),
                            .y = tensor(y.data(), {s.m, s.n})});
    backend.matmul(stream, {.x = runtime::columns(tensor(wide.data(), {s.m, s.k + 5}), 2, s.k),
                            .weight = packed.weight(),
                            .y = runtime::columns(tensor(out.data(), {s.m, s.n + 4}), 1, s.n)});
    for (std::int64_t r = 0; r < s.m; ++r) {
      const float* row = out.data() + r * (s.n + 4);
      EXPECT_TRUE(same_bits({row + 1, static_cast<std::size_t>(s.n)},
                            {y.data() + r * s.n, static_cast<std::size_t>(s.n)}));
      for (const std::int64_t c : {std::int64_t{0}, s.n + 1, s.n + 2, s.n + 3})
        EXPECT_EQ(row[c], 7.0f);
    }
    return y;
  });
}

TEST(Matmul, BackwardIsTheTransposedProductsHoweverCut) {  // MM-1
  for (const Shape& s : shapes(5)) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.k << " x " << s.n);
    Rng rng(6);
    const Floats x = normals(rng, s.m * s.k), w = normals(rng, s.n * s.k);
    const Floats dy = normals(rng, s.m * s.n), base = normals(rng, s.n * s.k);
    const TensorView xs = tensor(x.data(), {s.m, s.k}), dys = tensor(dy.data(), {s.m, s.n});
    const TensorView ws = tensor(w.data(), {s.n, s.k});
    const Floats both = same_everywhere([&](const Backend& backend, const Stream& stream) {
      Floats dx = poison(s.m * s.k), alone = dx, dw = base, in_cuts = base;
      backend.matmul_backward_input(stream,
                                    {.dy = dys, .weight = ws, .dx = tensor(dx.data(), {s.m, s.k})});
      backend.matmul_backward_weight(
          stream, {.dy = dys, .x = xs, .dweight = tensor(dw.data(), {s.n, s.k})});
      for (std::int64_t r = 0; r < s.m; ++r) {
        backend.matmul_backward_input(stream, {.dy = rows(dys, r, 1),
                                               .weight = ws,
                                               .dx = rows(tensor(alone.data(), {s.m, s.k}), r, 1)});
      }
      const std::int64_t cut = s.m / 3;
      for (const auto& [begin, count] : {std::pair{std::int64_t{0}, cut}, {cut, s.m - cut}}) {
        backend.matmul_backward_weight(stream, {.dy = rows(dys, begin, count),
                                                .x = rows(xs, begin, count),
                                                .dweight = tensor(in_cuts.data(), {s.n, s.k})});
      }
      EXPECT_TRUE(same_bits(dx, alone)) << "a row alone";
      EXPECT_TRUE(same_bits(dw, in_cuts)) << "rows in two calls";
      return joined({dx, dw});
    });
    for (std::int64_t i = 0; i < s.m * s.k; ++i) {
      double expected = 0, size = 1;
      for (std::int64_t n = 0; n < s.n; ++n) {
        const double term = static_cast<double>(dy[i / s.k * s.n + n]) * w[n * s.k + i % s.k];
        expected += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(both[i], expected, 1e-6 * size);
    }
    for (std::int64_t i = 0; i < s.n * s.k; ++i) {
      double expected = static_cast<double>(base[i]), size = 1;
      for (std::int64_t m = 0; m < s.m; ++m) {
        const double term = static_cast<double>(dy[m * s.n + i / s.k]) * x[m * s.k + i % s.k];
        expected += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(both[s.m * s.k + i], expected, 1e-6 * size);
    }
  }
}

TEST(Matmul, ManyThreadedPartsCoverEveryOutput) {
  // Large enough to be cut in both directions.
  const Shape s{300, 256, 200};
  Rng rng(7);
  const Floats x = normals(rng, s.m * s.k), w = normals(rng, s.n * s.k);
  const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
    const TensorView ws = tensor(w.data(), {s.n, s.k}), xs = tensor(x.data(), {s.m, s.k});
    const Packed packed(backend, ws);
    Floats out = poison(s.m * s.n), dx = poison(s.m * s.k), dw(static_cast<std::size_t>(s.n * s.k));
    const TensorView ys = tensor(out.data(), {s.m, s.n});
    backend.matmul(stream, {.x = xs, .weight = packed.weight(), .y = ys});
    backend.matmul_backward_input(stream,
                                  {.dy = ys, .weight = ws, .dx = tensor(dx.data(), {s.m, s.k})});
    backend.matmul_backward_weight(stream,
                                   {.dy = ys, .x = xs, .dweight = tensor(dw.data(), {s.n, s.k})});
    return joined({out, dx, dw});
  });
  EXPECT_FALSE(has_nan(y));
}

}  // namespace
}  // namespace tandem::kernels
