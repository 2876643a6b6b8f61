#include "kernels/ops/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

struct State {
  Floats p, g, m, v;
};

State make_state(std::int64_t n, std::uint64_t seed) {
  Rng rng(seed);
  const auto size = static_cast<std::size_t>(n);
  return {normals(rng, n), normals(rng, n), Floats(size, 0.0f), Floats(size, 0.0f)};
}

AdamW views(const State& s) {
  const std::int64_t n = std::ssize(s.p);
  return {.parameters = tensor(s.p.data(), {n}),
          .gradients = tensor(s.g.data(), {n}),
          .m = tensor(s.m.data(), {n}),
          .v = tensor(s.v.data(), {n})};
}

TEST(AdamW, ThreeStepsFollowTheFormula) {
  for (const std::int64_t n : {1, 19, 40000}) {
    const State start = make_state(n, 1);
    const Floats after = same_everywhere([&](const Backend& backend, const Stream& stream) {
      State s = start;
      for (std::int64_t t = 1; t <= 3; ++t) {
        AdamW op = views(s);
        op.step = t;
        op.lr = 0.01;
        op.beta2 = 0.95;
        op.weight_decay = 0.1;
        op.grad_scale = 0.5f;
        backend.adamw(stream, op);
      }
      return joined({s.p, s.m, s.v});
    });
    for (std::int64_t i = 0; i < n; ++i) {
      double p = start.p[i], m = 0, v = 0;
      const double g = 0.5 * static_cast<double>(start.g[i]);
      for (int t = 1; t <= 3; ++t) {
        m = 0.9 * m + 0.1 * g;
        v = 0.95 * v + 0.05 * g * g;
        p -= 0.01 * 0.1 * p;
        p -= 0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.95, t))) + 1e-8);
      }
      ASSERT_NEAR(after[i], p, 1e-6 * (1 + std::abs(p)));
    }
  }
}

TEST(AdamW, ACutRangeGivesTheSameBits) {
  State whole = make_state(1000, 2), cut = whole;
  AdamW op = views(whole);
  op.step = 1;
  op.lr = 0.01;
  adamw(Stream{}, op);
  for (const auto& [begin, count] : {std::pair{0, 333}, {333, 667}}) {
    AdamW part = views(cut);
    for (TensorView* view : {&part.parameters, &part.gradients, &part.m, &part.v}) {
      *view = rows(*view, begin, count);
    }
    part.step = 1;
    part.lr = 0.01;
    adamw(Stream{}, part);
  }
  EXPECT_TRUE(same_bits(whole.p, cut.p));
}

TEST(AdamW, LearningRateZeroLeavesEveryBit) {
  State s = make_state(100, 3);
  s.p[0] = -0.0f;
  s.p[1] = 1e-42f;
  const Floats before = s.p;
  AdamW op = views(s);
  op.step = 7;
  op.weight_decay = 0.1;
  adamw(Stream{}, op);
  EXPECT_TRUE(same_bits(s.p, before));
  EXPECT_NE(s.m[5], 0.0f);
}

// Words and blocks of flags that end within, at and just beyond the range.
TEST(AdamW, RoundsTheMasterAndListsTheCopiesThatChanged) {
  for (const std::int64_t n : {1, 31, 32, 33, 1001, 40000}) {
    const State start = make_state(n, 4);
    for (const double lr : {0.0, 1e-3, 1.0}) {
      const Floats all = same_everywhere([&](const Backend& backend, const Stream& stream) {
        State s = start;
        const Stored copy(DType::kBF16, {n}, start.p);
        std::vector<std::int32_t> changed(static_cast<std::size_t>(n), -1), count = {-1};
        std::vector<std::int32_t> space(static_cast<std::size_t>(adamw_workspace(n)), -1);
        AdamW op = views(s);
        op.step = 1;
        op.lr = lr;
        op.rounded = copy;
        op.changed = tensor(changed.data(), {n});
        op.changed_count = tensor(count.data(), {1});
        op.workspace = tensor(space.data(), {std::ssize(space)});
        backend.adamw(stream, op);
        const Floats before = rounded(start.p, DType::kBF16), after = copy.values();
        EXPECT_TRUE(same_bits(after, rounded(s.p, DType::kBF16)));
        std::vector<std::int32_t> expected;
        for (std::int32_t i = 0; i < n; ++i) {
          if (before[i] != after[i]) expected.push_back(i);
        }
        EXPECT_EQ(count[0], std::ssize(expected));
        expected.resize(changed.size(), -1);
        EXPECT_EQ(changed, expected);
        return after;
      });
      EXPECT_FALSE(has_nan(all));
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
