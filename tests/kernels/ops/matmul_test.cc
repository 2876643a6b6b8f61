// Products on a CPU: each output is the sum by one chain that matmul.h defines, whatever else is
// computed with it, on every instruction set that this machine has.
#include "kernels/ops/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/device/memory.h"
#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::rows;
using device::tensor;

struct ProductShape {
  std::int64_t m, k, n;
};

// The shapes are ragged in every direction: below, at and above tiles, panels, step blocks and
// parts; rows 4 KiB apart (copied) and not; operands read in place and packed. The last shape has a
// part of 192 rows with several blocks of terms, and several groups of columns that are packed one
// after another.
std::vector<ProductShape> shapes(std::uint64_t seed) {
  std::vector<ProductShape> all = {{1, 1, 1},      {1, 64, 32},    {12, 64, 128}, {13, 65, 33},
                                   {2, 600, 50},   {25, 300, 7},   {64, 64, 384}, {100, 520, 40},
                                   {9, 1024, 40},  {200, 1024, 6}, {30, 40, 600}, {700, 30, 40},
                                   {300, 5, 1024}, {200, 300, 530}};
  Rng rng(seed);
  for (int i = 0; i < 12; ++i) {
    all.push_back({static_cast<std::int64_t>(rng.below(40)) + 1,
                   static_cast<std::int64_t>(rng.below(150)) + 1,
                   static_cast<std::int64_t>(rng.below(150)) + 1});
  }
  return all;
}

class PackedMatrix {
 public:
  PackedMatrix(const Backend& backend, const TensorView& weight)
      : memory_(*device::Buffer::allocate(
            static_cast<std::size_t>(packed_elements(weight.dtype, weight.dim(0), weight.dim(1))) *
                device::size_bytes(weight.dtype),
            "a test")) {
    const std::span<std::byte> panels = memory_.as<std::byte>();
    std::fill(panels.begin(), panels.end(), std::byte{0xff});  // NaN
    weight_ = packed_weight(panels.data(), weight.dtype, weight.dim(0), weight.dim(1));
    backend.pack_weight(Stream{}, {.weight = weight, .packed = weight_});
  }
  const PackedWeight& weight() const { return weight_; }

 private:
  device::Buffer memory_;
  PackedWeight weight_;
};

TEST(Matmul, ForwardIsTheProductWhateverElseIsComputed) {  // MM-1
  for (const ProductShape& s : shapes(1)) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.k << " x " << s.n);
    Rng rng(2);
    const Floats x = normals(rng, s.m * s.k), w = normals(rng, s.n * s.k);
    const TensorView xs = tensor(x.data(), {s.m, s.k}), ws = tensor(w.data(), {s.n, s.k});
    const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
      const PackedMatrix packed(backend, ws);
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

// The dtypes of a product's operands and of its output.
struct Types {
  DType operand, output;
};

constexpr Types kTypes[] = {
    {DType::kF32, DType::kF32}, {DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16}};

// The number that the arithmetic of bf16 operands sees.
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

float add_product(DType operand, float a, float b, float sum) {
  if (operand == DType::kF32) return std::fma(a, b, sum);
  return flushed(std::fma(flushed(a), flushed(b), flushed(sum)));
}

// The terms of one chain, as MM-1 states it, added to `sum`. `a` and `b` read the factors of a
// term.
template <class A, class B>
float chain(DType operand, std::int64_t first, std::int64_t last, float sum, const A& a,
            const B& b) {
  if (operand == DType::kF32) {
    for (std::int64_t t = first; t < last; ++t) sum = add_product(operand, a(t), b(t), sum);
    return sum;
  }
  for (std::int64_t t = first; t < last; t += 2) {
    const bool filled = t + 1 == last;
    sum = add_product(operand, filled ? 0 : a(t + 1), filled ? 0 : b(t + 1), sum);
    sum = add_product(operand, a(t), b(t), sum);
  }
  return sum;
}

template <class A, class B>
float sum_of_chains(DType operand, std::int64_t terms, Output output, float before, const A& a,
                    const B& b) {
  float sum = before;
  for (std::int64_t first = 0; first < terms; first += kChainSteps) {
    const std::int64_t last = std::min(first + kChainSteps, terms);
    const float one = chain(operand, first, last, 0, a, b);
    sum = first == 0 && output == Output::kWrite ? one : sum + one;
  }
  return sum;
}

struct Sums {
  Types types;
  std::int64_t terms, columns;
  Output output;
};

// 13 rows by `columns` outputs of so many terms, every way that there is to compute them.
void expect_sums_of_chains(const Sums& s) {
  const std::int64_t m = 13, terms = s.terms, columns = s.columns;
  const DType operand = s.types.operand, output = s.types.output;
  Rng rng(static_cast<std::uint64_t>(terms));
  const Floats a = rounded(normals(rng, m * terms), operand);
  const Floats base = rounded(normals(rng, m * columns), output);
  // The same numbers as the weight [N, K] of forward and, transposed, of backward-input.
  const Floats w = rounded(normals(rng, columns * terms), operand);
  Floats turned(w.size());
  for (std::int64_t i = 0; i < columns * terms; ++i) turned[i % terms * columns + i / terms] = w[i];
  const Stored as(operand, {m, terms}, a), ws(operand, {columns, terms}, w);
  const Stored back_ws(operand, {terms, columns}, turned);
  const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
    const PackedMatrix packed(backend, ws);
    const auto before = [&] { return Stored(output, {m, columns}, base); };
    const Stored by_packed = before(), by_plain = before(), alone = before();
    backend.matmul(stream,
                   {.x = as, .weight = packed.weight(), .y = by_packed, .output = s.output});
    backend.matmul_plain(stream, {.x = as, .weight = ws, .y = by_plain, .output = s.output});
    for (std::int64_t r = 0; r < m; ++r)
      backend.matmul(stream, {.x = rows(as, r, 1),
                              .weight = packed.weight(),
                              .y = rows(alone, r, 1),
                              .output = s.output});
    EXPECT_TRUE(same_bits(by_packed.values(), by_plain.values())) << "packed or not";
    EXPECT_TRUE(same_bits(by_packed.values(), alone.values())) << "a row alone";
    if (operand != output) return by_packed.values();
    const Stored back = before();
    backend.matmul_backward_input(stream,
                                  {.dy = as, .weight = back_ws, .dx = back, .output = s.output});
    EXPECT_TRUE(same_bits(by_packed.values(), back.values())) << "backward of the input";
    return by_packed.values();
  });
  Floats expected(y.size());
  for (std::int64_t i = 0; i < m * columns; ++i) {
    const float* factors = a.data() + i / columns * terms;
    const float* weights = w.data() + i % columns * terms;
    expected[i] = sum_of_chains(
        operand, terms, s.output, base[i], [&](std::int64_t t) { return factors[t]; },
        [&](std::int64_t t) { return weights[t]; });
  }
  expected = rounded(expected, output);
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], expected[i]);
}

class MatmulTypes : public testing::TestWithParam<Types> {};

std::string types_name(const testing::TestParamInfo<Types>& info) {
  return std::string(device::name(info.param.operand)) + "_to_" + device::name(info.param.output);
}

INSTANTIATE_TEST_SUITE_P(Of, MatmulTypes, testing::ValuesIn(kTypes), types_name);

TEST_P(MatmulTypes, OutputsAreSumsOfChains) {  // MM-1
  for (const std::int64_t terms : {1, 2, 41, 255, 256, 257, 512, 601, 1024}) {
    // Backward-input reads its weight in place where there are 64 columns, and packs it otherwise.
    for (const std::int64_t columns : {45, 64, 140}) {
      for (const Output output : {Output::kWrite, Output::kAdd}) {
        SCOPED_TRACE(testing::Message() << terms << " terms, " << columns << " columns, output "
                                        << static_cast<int>(output));
        expect_sums_of_chains({GetParam(), terms, columns, output});
      }
    }
  }
}

// The sizes of shapes() make tiles and parts with many rows, few rows and ragged ones.
TEST_P(MatmulTypes, ARowDoesNotDependOnTheOthers) {  // MM-1
  const auto [operand, output] = GetParam();
  for (const ProductShape& s : shapes(11)) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.k << " x " << s.n);
    Rng rng(12);
    const Floats x = rounded(normals(rng, s.m * s.k), operand);
    const Floats w = rounded(normals(rng, s.n * s.k), operand);
    const Stored xs(operand, {s.m, s.k}, x), ws(operand, {s.n, s.k}, w);
    const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
      const PackedMatrix packed(backend, ws);
      const Stored all = Stored::poisoned(output, {s.m, s.n}),
                   plain = Stored::poisoned(output, {s.m, s.n});
      const Stored some = Stored::poisoned(output, {s.m, s.n});
      backend.matmul(stream, {.x = xs, .weight = packed.weight(), .y = all});
      backend.matmul_plain(stream, {.x = xs, .weight = ws, .y = plain});
      for (std::int64_t r = 0; r < s.m; r += 5) {
        const std::int64_t count = std::min<std::int64_t>(5, s.m - r);
        backend.matmul(
            stream,
            {.x = rows(xs, r, count), .weight = packed.weight(), .y = rows(some, r, count)});
      }
      EXPECT_TRUE(same_bits(all.values(), plain.values())) << "packed or not";
      EXPECT_TRUE(same_bits(all.values(), some.values())) << "some rows";
      return all.values();
    });
    Floats expected(y.size());
    for (std::int64_t i = 0; i < s.m * s.n; ++i)
      expected[i] = static_cast<float>(
          dot(std::span(x).subspan(i / s.n * s.k, s.k), std::span(w).subspan(i % s.n * s.k, s.k)));
    expect_close(y, expected, output);
  }
}

class MatmulIn : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, MatmulIn, testing::ValuesIn(kFloatTypes), dtype_name);

// Every way that the operands of dw can lie, in calls that cut its rows.
TEST_P(MatmulIn, AWeightsGradientIsOneChainFromItsOwnValue) {  // MM-1
  const DType operand = GetParam();
  for (const ProductShape s : {ProductShape{600, 33, 20}, ProductShape{41, 64, 700},
                               ProductShape{1, 7, 5}, ProductShape{257, 300, 530}}) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.k << " x " << s.n);
    Rng rng(9);
    const Floats dy = rounded(normals(rng, s.m * s.n), operand);
    const Floats x = rounded(normals(rng, s.m * s.k), operand), base = normals(rng, s.n * s.k);
    const Stored dys(operand, {s.m, s.n}, dy), xs(operand, {s.m, s.k}, x);
    const Floats dw = same_everywhere([&](const Backend& backend, const Stream& stream) {
      Floats out = base, in_cuts = base;
      backend.matmul_backward_weight(
          stream, {.dy = dys, .x = xs, .dweight = tensor(out.data(), {s.n, s.k})});
      const std::int64_t cut = s.m / 3 / 2 * 2;  // bf16 takes pairs of rows
      for (const auto& [begin, count] : {std::pair{std::int64_t{0}, cut}, {cut, s.m - cut}}) {
        backend.matmul_backward_weight(stream, {.dy = rows(dys, begin, count),
                                                .x = rows(xs, begin, count),
                                                .dweight = tensor(in_cuts.data(), {s.n, s.k})});
      }
      EXPECT_TRUE(same_bits(out, in_cuts)) << "rows in two calls";
      return out;
    });
    for (std::int64_t i = 0; i < s.n * s.k; ++i) {
      ASSERT_EQ(dw[i],
                chain(
                    operand, 0, s.m, base[i], [&](std::int64_t m) { return dy[m * s.n + i / s.k]; },
                    [&](std::int64_t m) { return x[m * s.k + i % s.k]; }));
    }
  }
}

// Bf16 differs from f32 here: a denormal factor, a product or a sum that is denormal, and a
// denormal output that is added to are zeros.
TEST(Matmul, DenormalsOfBf16OperandsCountAsZeros) {  // MM-1
  const float smallest = 0x1p-126f, denormal = 0x1p-130f;
  struct Terms {
    Floats x, w;
    float before, expected;
  };
  const Terms all[] = {
      {{denormal, 0}, {0x1p20f, 0}, 0, 0},         {{0, denormal}, {0, 0x1p20f}, 0, 0},
      {{0x1p-70f, 0}, {0x1p-70f, 0}, 0, 0},        {{smallest, -1}, {1.5f, smallest}, 0, 0},
      {{1, 1}, {smallest, 0}, denormal, smallest}, {{1}, {smallest}, 0, smallest}};
  for (const Terms& terms : all) {
    const std::int64_t k = std::ssize(terms.x);
    const Stored x(DType::kBF16, {1, k}, terms.x), w(DType::kBF16, {1, k}, terms.w);
    for (const DType output : {DType::kF32, DType::kBF16}) {
      const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
        const Stored out(output, {1, 1}, Floats{terms.before});
        backend.matmul_plain(stream, {.x = x, .weight = w, .y = out, .output = Output::kAdd});
        return out.values();
      });
      EXPECT_EQ(y[0], terms.expected) << &terms - all;
    }
  }
  EXPECT_NE(denormal * 1.5f, 0.0f) << "the thread has its former mode";
}

// Factors whose products lie on both sides of the smallest normal number.
TEST(Matmul, TinySumsOfBf16OperandsHaveTheSameBitsEverywhere) {  // MM-1
  const std::int64_t m = 40, k = 17, n = 70;
  Rng rng(14);
  const auto tiny = [&](std::int64_t count) {
    Floats values = normals(rng, count);
    for (float& value : values) value = std::ldexp(value, -60 - static_cast<int>(rng.below(6)));
    return rounded(values, DType::kBF16);
  };
  const Floats x = tiny(m * k), w = tiny(n * k);
  const Stored xs(DType::kBF16, {m, k}, x), ws(DType::kBF16, {n, k}, w);
  const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
    const Stored out = Stored::poisoned(DType::kF32, {m, n});
    backend.matmul_plain(stream, {.x = xs, .weight = ws, .y = out});
    return out.values();
  });
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < m * n; ++i) {
    const float expected = chain(
        DType::kBF16, 0, k, 0, [&](std::int64_t t) { return x[i / n * k + t]; },
        [&](std::int64_t t) { return w[i % n * k + t]; });
    ASSERT_EQ(y[i], expected);
    zeros += expected == 0 ? 1 : 0;
  }
  EXPECT_GT(zeros, 10);
  EXPECT_LT(zeros, m * n - 10);
}

TEST(Matmul, InfinitiesAndNansOfBf16OperandsStayWhatTheyAre) {
  const std::int64_t k = 259;
  const auto product = [&](float a, float b, std::int64_t at) {
    Floats xs(k, 1.0f), ws(k, 1.0f);
    xs[at] = a;
    ws[at] = b;
    const Stored x(DType::kBF16, {1, k}, xs), w(DType::kBF16, {1, k}, ws);
    return same_everywhere([&](const Backend& backend, const Stream& stream) {
      const PackedMatrix packed(backend, w);
      const Stored y = Stored::poisoned(DType::kBF16, {1, 1});
      backend.matmul(stream, {.x = x, .weight = packed.weight(), .y = y});
      return y.values();
    })[0];
  };
  for (const std::int64_t at : {0, 1, 255, 258}) {
    EXPECT_EQ(product(INFINITY, 1, at), INFINITY);
    EXPECT_EQ(product(-INFINITY, 2, at), -INFINITY);
    EXPECT_TRUE(std::isnan(product(INFINITY, 0, at)));
    EXPECT_TRUE(std::isnan(product(NAN, 1, at)));
    EXPECT_EQ(product(3e38f, 3e38f, at), INFINITY);
  }
}

// An odd number of terms ends before its neighbours, which a product must not read.
TEST(Matmul, AnOddNumberOfBf16TermsIsFilledWithZeros) {
  const std::int64_t m = 3, k = 7, n = 5;
  Rng rng(13);
  Floats wide(static_cast<std::size_t>(m * (k + 1)), NAN),
      w = rounded(normals(rng, n * k), DType::kBF16);
  Floats x;
  for (std::int64_t r = 0; r < m; ++r) {
    for (std::int64_t t = 0; t < k; ++t) {
      x.push_back(rounded(normals(rng, 1), DType::kBF16)[0]);
      wide[r * (k + 1) + t] = x.back();
    }
  }
  const Stored inside(DType::kBF16, {m, k + 1}, wide), xs(DType::kBF16, {m, k}, x);
  const Stored ws(DType::kBF16, {n, k}, w);
  same_everywhere([&](const Backend& backend, const Stream& stream) {
    const Stored y = Stored::poisoned(DType::kF32, {m, n}),
                 same = Stored::poisoned(DType::kF32, {m, n});
    backend.matmul_plain(stream, {.x = xs, .weight = ws, .y = y});
    backend.matmul_plain(stream, {.x = device::columns(inside, 0, k), .weight = ws, .y = same});
    EXPECT_FALSE(has_nan(y.values()));
    EXPECT_TRUE(same_bits(y.values(), same.values()));
    return y.values();
  });
}

// Every term is less than half a unit in the last place of 1024, and a chain of them is not.
TEST(Matmul, SmallTermsDoNotDrownInALargeOutput) {
  const ProductShape s{3, 512, 40};
  const float term = 0x1p-15f;  // 1024 has a unit of 2^-13
  const Floats x(static_cast<std::size_t>(s.m * s.k), 1.0f);
  const Floats w(static_cast<std::size_t>(s.n * s.k), term);
  const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
    const TensorView ws = tensor(w.data(), {s.n, s.k});
    const PackedMatrix packed(backend, ws);
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
  const ProductShape s{9, 33, 20};
  Rng rng(4);
  const Floats wide = normals(rng, s.m * (s.k + 5)), w = normals(rng, s.n * s.k);
  Floats dense;
  for (std::int64_t r = 0; r < s.m; ++r) {
    dense.insert(dense.end(), wide.begin() + r * (s.k + 5) + 2,
                 wide.begin() + r * (s.k + 5) + 2 + s.k);
  }
  same_everywhere([&](const Backend& backend, const Stream& stream) {
    const TensorView ws = tensor(w.data(), {s.n, s.k});
    const PackedMatrix packed(backend, ws);
    Floats y = poison(s.m * s.n), out(static_cast<std::size_t>(s.m * (s.n + 4)), 7.0f);
    backend.matmul(stream, {.x = tensor(dense.data(), {s.m, s.k}),
                            .weight = packed.weight(),
                            .y = tensor(y.data(), {s.m, s.n})});
    backend.matmul(stream, {.x = device::columns(tensor(wide.data(), {s.m, s.k + 5}), 2, s.k),
                            .weight = packed.weight(),
                            .y = device::columns(tensor(out.data(), {s.m, s.n + 4}), 1, s.n)});
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
  for (const ProductShape& s : shapes(5)) {
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

// Large enough to be cut in both directions.
TEST_P(MatmulTypes, ManyThreadedPartsCoverEveryOutput) {
  const auto [operand, output] = GetParam();
  const ProductShape s{300, 256, 200};
  Rng rng(7);
  const Stored xs(operand, {s.m, s.k}, normals(rng, s.m * s.k));
  const Stored ws(operand, {s.n, s.k}, normals(rng, s.n * s.k));
  const Stored dys(operand, {s.m, s.n}, normals(rng, s.m * s.n));
  const Floats y = same_everywhere([&](const Backend& backend, const Stream& stream) {
    const PackedMatrix packed(backend, ws);
    const Stored out = Stored::poisoned(output, {s.m, s.n});
    const Stored dx = Stored::poisoned(operand, {s.m, s.k});
    Floats dw(static_cast<std::size_t>(s.n * s.k));
    backend.matmul(stream, {.x = xs, .weight = packed.weight(), .y = out});
    backend.matmul_backward_input(stream, {.dy = dys, .weight = ws, .dx = dx});
    backend.matmul_backward_weight(stream,
                                   {.dy = dys, .x = xs, .dweight = tensor(dw.data(), {s.n, s.k})});
    return joined({out.values(), dx.values(), dw});
  });
  EXPECT_FALSE(has_nan(y));
}

}  // namespace
}  // namespace tandem::kernels
