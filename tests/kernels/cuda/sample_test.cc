// SA-1: a GPU draws the CPU's tokens, for vocabularies of many sizes and all truncations, and
// reports the bits of log_prob (LP-1).
#include "kernels/ops/sample.h"

#include <cmath>

#include "kernels/ops/log_prob.h"
#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

using CudaSample = CudaDTypeTest;

struct Draws {
  std::vector<std::int32_t> tokens;
  Floats log_probs;
};

Draws on_cpu(const Floats& logits, const std::vector<RowSampling>& rows) {
  const std::int64_t r = std::ssize(rows), v = std::ssize(logits) / r;
  Draws draws{std::vector<std::int32_t>(rows.size(), -1), poison(r)};
  sample(Stream{}, {.logits = tensor(logits.data(), {r, v}),
                    .rows = rows,
                    .tokens = tensor(draws.tokens.data(), {r}),
                    .log_prob = tensor(draws.log_probs.data(), {r})});
  return draws;
}

// All rows that ban tokens must ban the same ones. There are as many rows of logits as draws, or
// fewer.
Draws on_gpu(const Stream& gpu, DType dtype, const Floats& logits, std::vector<RowSampling> rows,
             std::int64_t logit_rows = 0) {
  const std::int64_t r = std::ssize(rows), l = logit_rows > 0 ? logit_rows : r;
  const std::int64_t v = std::ssize(logits) / l;
  std::span<const std::int32_t> all;
  for (const RowSampling& row : rows) all = row.banned.empty() ? all : row.banned;
  const OnGpu<std::int32_t> banned(gpu, {all.begin(), all.end()});
  for (RowSampling& row : rows) {
    if (!row.banned.empty()) row.banned = banned.span();
  }
  const OnGpu<RowSampling> rules(gpu, rows);
  const Operand xs(gpu, dtype, {l, v}, logits);
  const Operand tokens = Operand::poisoned(gpu, DType::kI32, {r});
  const Operand log_probs = Operand::poisoned(gpu, DType::kF32, {r});
  sample(gpu, {.logits = xs, .rows = rules.span(), .tokens = tokens, .log_prob = log_probs});
  return {tokens.integers(), log_probs.values()};
}

// Every rule alone and with others, over rows that are random, of many equal logits, and with
// values that are never drawn.
std::vector<RowSampling> all_rules(std::span<const std::int32_t> banned) {
  return {{.temperature = 1},
          {.temperature = 0},
          {.temperature = 0, .banned = banned},
          {.temperature = 0.6f, .banned = banned},
          {.temperature = 1.3f, .top_k = 1},
          {.temperature = 1, .top_k = 7},
          {.temperature = 1, .top_k = 1 << 20},
          {.temperature = 0.8f, .top_p = 0.3f},
          {.temperature = 1.5f, .top_p = 0.95f},
          {.temperature = 1, .min_p = 0.1f},
          {.temperature = 1, .min_p = 0.5f, .top_k = 40},
          {.temperature = 0.7f, .top_p = 0.9f, .min_p = 0.02f, .top_k = 50, .banned = banned}};
}

// More tokens than a stretch of one round has, of which there are at most 64: of few values, so
// that what top_k and top_p leave out ends among ties, and the draw falls into any stretch.
TEST_P(CudaSample, Sa1StretchesOfSeveralRounds) {  // SA-1
  constexpr std::int64_t kVocabulary = 64 * 256 + 300;
  Rng rng(21);
  Floats logits;
  std::vector<RowSampling> rows;
  for (const RowSampling& rules : {RowSampling{}, RowSampling{.top_k = 9000},
                                   RowSampling{.top_p = 0.7f}, RowSampling{.top_k = 16383}}) {
    for (const bool last_alone : {false, true}) {
      for (std::int64_t i = 0; i < kVocabulary; ++i) {
        const auto value = static_cast<float>(rng.below(2));
        logits.push_back(last_alone && i + 1 < kVocabulary ? value - 90 : value);
      }
      rows.push_back(rules);
      rows.back().seed = rng.next();
    }
  }
  const Draws actual = on_gpu(gpu(), GetParam(), logits, rows), expected = on_cpu(logits, rows);
  EXPECT_EQ(actual.tokens, expected.tokens);
  EXPECT_EQ(expected.tokens[1], kVocabulary - 1);
}

TEST_P(CudaSample, Sa1DrawsTheCpusTokens) {  // SA-1
  const DType dtype = GetParam();
  std::vector<std::int64_t> sizes = {5, 33, 300};
  if (!emulated()) sizes.insert(sizes.end(), {700, 151936});
  for (const std::int64_t v : sizes) {
    const std::vector<std::int32_t> banned = {0, 3};
    Rng rng(static_cast<std::uint64_t>(v));
    Floats logits;
    std::vector<RowSampling> rows;
    for (RowSampling rules : all_rules(banned)) {
      for (const float deviation : {3.0f, 0.5f, 40.0f}) {
        if (emulated() && v != 33 && deviation != 3.0f) continue;
        Floats row = rounded(normals(rng, v, deviation), dtype);
        if (deviation == 0.5f) {
          for (float& logit : row) logit = std::round(logit);  // ties, of zeros of both signs too
        }
        if (deviation == 40.0f) row[1] = -INFINITY;
        logits.insert(logits.end(), row.begin(), row.end());
        rules.seed = rng.next();
        rules.position = rng.next();
        rows.push_back(rules);
      }
    }
    const Draws actual = on_gpu(gpu(), dtype, logits, rows), expected = on_cpu(logits, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(actual.tokens[i], expected.tokens[i]) << "row " << i << " of " << v;
    }
    expect_close(actual.log_probs, expected.log_probs, DType::kF32);
  }
}

TEST_P(CudaSample, Sa1ManyDrawsOfOneRow) {
  const DType dtype = GetParam();
  Rng rng(5);
  const std::int64_t v = 40, count = emulated() ? 150 : 100'000;
  const Floats row = rounded(normals(rng, v, 1.5f), dtype);
  Floats logits;
  std::vector<RowSampling> rows;
  for (std::int64_t i = 0; i < count; ++i) {
    logits.insert(logits.end(), row.begin(), row.end());
    rows.push_back({.seed = 5, .position = static_cast<std::uint64_t>(i), .temperature = 1});
  }
  const std::vector<std::int32_t> expected = on_cpu(logits, rows).tokens;
  EXPECT_EQ(on_gpu(gpu(), dtype, logits, rows).tokens, expected);
  Floats two = normals(rng, v);
  two.insert(two.end(), row.begin(), row.end());
  for (RowSampling& rules : rows) rules.logits_row = 1;
  EXPECT_EQ(on_gpu(gpu(), dtype, two, rows, 2).tokens, expected) << "all from the second row";
}

TEST_P(CudaSample, NanIsNeverDrawn) {
  const Floats logits = {NAN, 1, NAN, 3, 3, NAN, NAN, 2};
  for (const RowSampling& rules : all_rules({})) {
    const std::int32_t token = on_gpu(gpu(), GetParam(), logits, {rules}).tokens[0];
    EXPECT_TRUE(token == 1 || token == 3 || token == 4 || token == 7) << token;
  }
}

TEST_P(CudaSample, Lp1ReportsTheBitsOfLogProbUntruncated) {  // LP-1
  const DType dtype = GetParam();
  Rng rng(13);
  const std::int64_t v = 2500, r = 3;
  const Floats logits = normals(rng, r * v, 2);
  std::vector<RowSampling> rows(r, {.seed = 3, .temperature = 0.7f});
  rows[1].top_k = 40;
  const Draws draws = on_gpu(gpu(), dtype, logits, rows);
  const Operand xs(gpu(), dtype, {r, v}, logits), targets(gpu(), {r}, draws.tokens);
  const Operand expected = Operand::poisoned(gpu(), DType::kF32, {r});
  const Operand entropy = Operand::poisoned(gpu(), DType::kF32, {r});
  log_prob(gpu(), LogProb{.logits = xs,
                          .targets = targets,
                          .temperature = 0.7f,
                          .log_prob = expected,
                          .entropy = entropy});
  EXPECT_TRUE(same_bits(draws.log_probs, expected.values()));
}

INSTANTIATE_TEST_SUITE_P(Types, CudaSample, testing::ValuesIn(kFloatTypes), dtype_name);

}  // namespace
}  // namespace tandem::kernels
