// Sampling on a CPU: frequencies, truncation, ties and bans against slow versions that sort all
// tokens; the reported log-probabilities have the bits of log_prob.
#include "kernels/ops/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "kernels/ops/log_prob.h"
#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;
using TokenIds = std::vector<std::int32_t>;

struct Draws {
  TokenIds tokens;
  Floats log_probs;
};

Draws run(const Backend& backend, const Stream& stream, const Floats& logits,
          const std::vector<RowSampling>& rows) {
  const std::int64_t r = std::ssize(rows), v = std::ssize(logits) / r;
  Draws draws{TokenIds(rows.size(), -1), poison(r)};
  backend.sample(stream, {.logits = tensor(logits.data(), {r, v}),
                          .rows = rows,
                          .tokens = tensor(draws.tokens.data(), {r}),
                          .log_prob = tensor(draws.log_probs.data(), {r})});
  return draws;
}

// `count` draws from one row of logits, at the positions 0, 1, ….
Draws draw_many(const Floats& logits, RowSampling rules, std::int64_t count) {
  Floats all;
  std::vector<RowSampling> rows;
  for (std::int64_t i = 0; i < count; ++i) {
    all.insert(all.end(), logits.begin(), logits.end());
    rules.position = static_cast<std::uint64_t>(i);
    rows.push_back(rules);
  }
  return run(cpu_backend(), Stream{}, all, rows);
}

std::set<std::int32_t> support(const Floats& logits, const RowSampling& rules) {
  const Draws draws = draw_many(logits, rules, 4000);
  return {draws.tokens.begin(), draws.tokens.end()};
}

// Logits of given probabilities.
Floats logits_of(std::initializer_list<float> probabilities) {
  Floats logits;
  for (const float p : probabilities) logits.push_back(std::log(p));
  return logits;
}

TEST(Sample, FrequenciesFollowTheDistribution) {
  Rng rng(11);
  const Floats logits = normals(rng, 20, 1.5f);
  for (const float temperature : {1.0f, 0.5f, 2.0f}) {
    const std::int64_t count = 20000;
    const Draws draws = draw_many(logits, {.seed = 5, .temperature = temperature}, count);
    std::vector<double> observed(20), p(20);
    for (const std::int32_t token : draws.tokens) observed[token] += 1;
    double sum = 0;
    for (std::size_t i = 0; i < 20; ++i) {
      p[i] = std::exp(static_cast<double>(logits[i]) / static_cast<double>(temperature));
      sum += p[i];
    }
    double chi_square = 0;
    for (std::size_t i = 0; i < 20; ++i) {
      const double expected = p[i] / sum * count;
      chi_square += (observed[i] - expected) * (observed[i] - expected) / expected;
    }
    // 19 degrees of freedom: 43.8 is exceeded once in 1,000 honest seeds; the seed is fixed.
    EXPECT_LT(chi_square, 43.8) << "temperature " << temperature;
  }
}

TEST(Sample, SeveralDrawsOfOneRowAreThoseOfItsCopies) {
  Rng rng(15);
  const std::int64_t v = 33;
  const Floats logits = normals(rng, 2 * v);
  Floats copies;
  std::vector<RowSampling> rows;
  for (const std::int32_t from : {1, 0, 1, 1, 0}) {
    copies.insert(copies.end(), logits.begin() + from * v, logits.begin() + (from + 1) * v);
    rows.push_back({.seed = rng.next(), .logits_row = from});
  }
  std::vector<RowSampling> own = rows;
  for (RowSampling& row : own) row.logits_row = kOwnRow;
  same_everywhere([&](const Backend& backend, const Stream& stream) {
    Draws draws{TokenIds(rows.size(), -1), poison(std::ssize(rows))};
    backend.sample(stream, {.logits = tensor(logits.data(), {2, v}),
                            .rows = rows,
                            .tokens = tensor(draws.tokens.data(), {std::ssize(rows)}),
                            .log_prob = tensor(draws.log_probs.data(), {std::ssize(rows)})});
    const Draws expected = run(backend, stream, copies, own);
    EXPECT_EQ(draws.tokens, expected.tokens);
    EXPECT_TRUE(same_bits(draws.log_probs, expected.log_probs));
    return draws.log_probs;
  });
}

TEST(Sample, DrawsDependOnSeedAndPositionNotOnTheBatch) {
  Rng rng(12);
  const std::int64_t v = 33, r = 70;
  const Floats logits = normals(rng, r * v);
  std::vector<RowSampling> rows;
  for (std::int64_t i = 0; i < r; ++i) {
    rows.push_back({.seed = static_cast<std::uint64_t>(i / 7),
                    .position = static_cast<std::uint64_t>(i),
                    .temperature = 0.5f + 0.1f * static_cast<float>(i % 9),
                    .top_p = i % 3 == 0 ? 0.8f : 1.0f,
                    .min_p = i % 4 == 0 ? 0.05f : 0.0f,
                    .top_k = static_cast<std::int32_t>(i % 5 == 0 ? 7 : 0)});
  }
  same_everywhere([&](const Backend& backend, const Stream& stream) {
    const Draws all = run(backend, stream, logits, rows);
    for (std::int64_t i = 0; i < r; ++i) {
      const Floats row(logits.begin() + i * v, logits.begin() + (i + 1) * v);
      const Draws alone = run(backend, stream, row, {rows[i]});
      EXPECT_EQ(alone.tokens[0], all.tokens[i]);
      EXPECT_TRUE(same_bits(alone.log_probs, std::span(all.log_probs).subspan(i, 1)));
    }
    Floats both = all.log_probs;
    both.insert(both.end(), all.tokens.begin(), all.tokens.end());
    return both;
  });
}

TEST(Sample, ReportsTheBitsOfLogProbUntruncated) {  // LP-1
  Rng rng(13);
  const std::int64_t v = 1000, r = 16;
  const Floats logits = normals(rng, r * v, 2);
  std::vector<RowSampling> rows(r, {.seed = 3, .temperature = 0.7f, .top_p = 0.9f, .top_k = 40});
  const Draws draws = run(cpu_backend(), Stream{}, logits, rows);
  Floats expected = poison(r);
  log_prob(Stream{}, {.logits = tensor(logits.data(), {r, v}),
                      .targets = tensor(draws.tokens.data(), {r}),
                      .temperature = 0.7f,
                      .log_prob = tensor(expected.data(), {r})});
  EXPECT_TRUE(same_bits(draws.log_probs, expected));
}

TEST(Sample, TruncationKeepsWhatItSays) {
  using Set = std::set<std::int32_t>;
  const Floats logits = logits_of({0.1f, 0.4f, 0.05f, 0.3f, 0.15f});
  EXPECT_EQ(support(logits, {}), (Set{0, 1, 2, 3, 4}));
  EXPECT_EQ(support(logits, {.top_k = 1}), (Set{1}));
  EXPECT_EQ(support(logits, {.top_k = 3}), (Set{1, 3, 4}));
  EXPECT_EQ(support(logits, {.top_k = 9}), (Set{0, 1, 2, 3, 4}));
  EXPECT_EQ(support(logits, {.top_p = 0.39f}), (Set{1}));
  EXPECT_EQ(support(logits, {.top_p = 0.41f}), (Set{1, 3}));
  EXPECT_EQ(support(logits, {.top_p = 0.84f}), (Set{1, 3, 4}));
  EXPECT_EQ(support(logits, {.min_p = 0.3f}), (Set{1, 3, 4}));
  EXPECT_EQ(support(logits, {.min_p = 0.99f}), (Set{1}));
  // top_p works on what top_k left, renormalised: 0.4 and 0.3 are 0.57 and 0.43 of it.
  EXPECT_EQ(support(logits, {.top_p = 0.56f, .top_k = 2}), (Set{1}));
  EXPECT_EQ(support(logits, {.top_p = 0.58f, .top_k = 2}), (Set{1, 3}));
  EXPECT_EQ(support(logits, {.top_p = 0.5f, .min_p = 0.7f}), (Set{1}));
  const std::int32_t banned[] = {1, 4};
  EXPECT_EQ(support(logits, {.banned = banned}), (Set{0, 2, 3}));
  EXPECT_EQ(support(logits, {.top_k = 2, .banned = banned}), (Set{0, 3}));
  EXPECT_EQ(support(logits, {.min_p = 0.3f, .banned = banned}), (Set{0, 3}));
}

TEST(Sample, EqualLogitsAreRankedByTokenId) {
  using Set = std::set<std::int32_t>;
  const Floats logits = {1, 2, 1, 2, 1, 0.0f, -0.0f};
  EXPECT_EQ(support(logits, {.top_k = 1}), (Set{1}));
  EXPECT_EQ(support(logits, {.top_k = 3}), (Set{0, 1, 3}));
  EXPECT_EQ(support(logits, {.top_k = 6}), (Set{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(support(Floats(10, 0.5f), {.top_p = 0.35f}), (Set{0, 1, 2, 3}));
}

TEST(Sample, GreedyTakesTheFirstOfTheMostProbable) {
  const Floats logits = {1, 3, 2, 3, NAN};
  const std::int32_t banned[] = {1, 3};
  const auto only = [&](const RowSampling& rules) {
    return run(cpu_backend(), Stream{}, logits, {rules}).tokens[0];
  };
  EXPECT_EQ(only({.temperature = 0}), 1);
  EXPECT_EQ(only({.temperature = 0, .banned = banned}), 2);
}

TEST(Sample, BannedTokensStillCountInTheReportedLogProbability) {
  const Floats logits = logits_of({0.5f, 0.25f, 0.25f});
  const std::int32_t banned[] = {0};
  const Draws draws = draw_many(logits, {.seed = 2, .banned = banned}, 50);
  for (const float value : draws.log_probs) EXPECT_NEAR(value, std::log(0.25), 1e-6);
}

TEST(Sample, TopKOfALargeVocabularyAgreesWithSorting) {
  const std::int64_t v = 152000;
  Rng rng(14);
  Floats logits = normals(rng, v, 3);
  for (std::int64_t i = 0; i < v; i += 3) logits[i] = std::round(logits[i]);  // many ties
  std::vector<std::int32_t> order(static_cast<std::size_t>(v));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return logits[a] > logits[b]; });
  for (const std::int32_t k : {1, 50, 5000}) {
    const std::set<std::int32_t> kept(order.begin(), order.begin() + k);
    for (const std::int32_t token : draw_many(logits, {.seed = 4, .top_k = k}, 6).tokens) {
      EXPECT_TRUE(kept.contains(token)) << "top_k " << k;
    }
  }
}

// An element in bf16 is an f32 like any other: equal draws, and log-probabilities.
TEST(Sample, LogitsMayBeBf16) {
  const std::int64_t r = 40, v = 301;
  Rng rng(21);
  const Floats logits = rounded(normals(rng, r * v, 2), DType::kBF16);
  std::vector<RowSampling> rows;
  for (std::int64_t i = 0; i < r; ++i) {
    rows.push_back({.seed = 3,
                    .position = static_cast<std::uint64_t>(i),
                    .temperature = i % 4 == 0 ? 0.0f : 0.8f,
                    .top_p = i % 3 == 0 ? 0.9f : 1.0f,
                    .top_k = i % 5 == 0 ? 20 : 0});
  }
  expect_rounded_once({DType::kF32, DType::kF32},
                      [&](DType dtype, const Backend& backend, const Stream& stream) {
                        const Stored stored_logits(dtype, {r, v}, logits);
                        TokenIds tokens(rows.size(), -1);
                        Floats log_probs = poison(r);
                        backend.sample(stream, {.logits = stored_logits,
                                                .rows = rows,
                                                .tokens = tensor(tokens.data(), {r}),
                                                .log_prob = tensor(log_probs.data(), {r})});
                        return std::vector{log_probs, Floats(tokens.begin(), tokens.end())};
                      });
}

}  // namespace
}  // namespace tandem::kernels
