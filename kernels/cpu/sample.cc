// Truncation without sorting: a set of most probable tokens is "every logit above a threshold, and
// the first so many equal to it". The threshold is found by fixing the logit's bits (as an integer
// that orders like the float) from the top, eight at a time, with a histogram of counts (top_k) or
// of mass (top_p). Four passes over the row whatever the vocabulary, no workspace; a sort of 152k
// logits costs about ten times that and a buffer.
#include "kernels/ops/sample.h"

#include "kernels/cpu/operators.h"
#include "kernels/cpu/soft_max.h"
#include "runtime/base/rng.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

constexpr std::int64_t kElementsPerRange = 32768;
constexpr int kDigits = 256;

// An integer that orders like the float. NaN gives 0, the order that is never in the draw; -0 and 0
// give the same.
std::uint32_t order_of(float value) {
  if (value != value) return 0;
  const auto bits = __builtin_bit_cast(std::uint32_t, value + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// The tokens still in the draw: order above `threshold`, and the first `ties` equal to it.
struct Kept {
  std::uint32_t threshold = 0;
  std::int64_t ties = kVocabularyMax;
};

template <class T>
struct Row {
  const T* logits;
  std::int64_t count;
  float factor;   // 1 / temperature
  float maximum;  // of logits * factor among tokens that are not banned
  std::span<const std::int32_t> banned;

  [[gnu::always_inline]] bool is_banned(std::int64_t token) const {
    for (std::size_t i = 0; i < banned.size(); ++i) {
      if (banned.data()[i] == token) return true;
    }
    return false;
  }
};

// Calls body(token, order, e) with e = exp(z - maximum) for every token in the draw, ids ascending,
// until it returns false.
template <class T, class Body>
[[gnu::always_inline]] inline void for_each_kept(const Row<T>& row, Kept kept, const Body& body) {
  alignas(64) float weights[kLanes];
  for (std::int64_t i = 0; i < row.count; i += kLanes) {
    const int n = lanes(row.count - i);
    store(weights, exp(load(row.logits + i, n) * set(row.factor) - set(row.maximum)));
    for (int j = 0; j < n; ++j) {
      const std::uint32_t order = order_of(widened(row.logits[i + j]));
      if (order < kept.threshold || order == 0) continue;
      if (row.is_banned(i + j)) continue;
      if (order == kept.threshold && --kept.ties < 0) continue;
      if (!body(i + j, order, weights[j])) return;
    }
  }
}

// The smallest set of most probable tokens of `kept` whose measure reaches `target`, which is not
// 0; all of `kept` if its measure does not reach it. measure(e) is 1 for a count (top_k) and the
// mass for a mass (top_p).
template <class T, class Measure>
Kept shrink(const Row<T>& row, Kept kept, std::uint64_t target, const Measure& measure) {
  std::uint32_t prefix = 0;
  std::uint64_t above = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    std::uint64_t bins[kDigits] = {};
    const std::uint32_t fixed = shift == 24 ? 0 : ~std::uint32_t{0} << (shift + 8);
    for_each_kept(row, kept, [&](std::int64_t, std::uint32_t order, float e) {
      if ((order & fixed) == prefix) bins[order >> shift & 0xffu] += measure(e);
      return true;
    });
    // Walks from the top digit down to the one that reaches the target.
    int digit = kDigits - 1;
    for (; digit >= 0 && above + bins[digit] < target; --digit) above += bins[digit];
    if (digit < 0) return kept;  // in the first pass, if ever
    prefix |= static_cast<std::uint32_t>(digit) << shift;
  }
  // All tokens with the whole prefix are equal; as many of them are kept as the target takes.
  std::uint64_t of_one = 0;
  for_each_kept(row, kept, [&](std::int64_t, std::uint32_t order, float e) {
    if (order != prefix) return true;
    of_one = measure(e);
    return false;
  });
  auto ties = static_cast<std::int64_t>((target - above + of_one - 1) / of_one);
  if (prefix == kept.threshold && ties > kept.ties) ties = kept.ties;
  return {.threshold = prefix, .ties = ties};
}

std::uint64_t mass(float e) { return e > 0 ? static_cast<std::uint64_t>(e * kUnitMass) : 0; }

// The masses of the 16 tokens from `begin` on: 0 for banned tokens, NaN and tokens past the last.
struct Masses {
  std::uint64_t at[kLanes];
  std::uint64_t sum = 0;
};

template <class T>
[[gnu::always_inline]] inline Masses masses_from(const Row<T>& row, std::int64_t begin) {
  alignas(64) float weights[kLanes];
  const int n = lanes(row.count - begin);
  store(weights, exp(load(row.logits + begin, n) * set(row.factor) - set(row.maximum)));
  for (int j = n; j < kLanes; ++j) weights[j] = 0;
  for (std::size_t i = 0; i < row.banned.size(); ++i) {
    const std::int64_t j = row.banned.data()[i] - begin;
    if (j >= 0 && j < kLanes) weights[j] = 0;
  }
  Masses masses;
  for (int j = 0; j < kLanes; ++j) masses.sum += masses.at[j] = mass(weights[j]);
  return masses;
}

// Whether no truncation took place. Banned tokens are out of the draw all the same, with mass 0.
bool is_whole(const Kept& kept) { return kept.threshold == 0; }

template <class T>
std::uint64_t total_mass(const Row<T>& row, const Kept& kept) {
  std::uint64_t total = 0;
  if (is_whole(kept)) {
    for (std::int64_t i = 0; i < row.count; i += kLanes) total += masses_from(row, i).sum;
    return total;
  }
  for_each_kept(row, kept, [&](std::int64_t, std::uint32_t, float e) {
    total += mass(e);
    return true;
  });
  return total;
}

// The first token up to which the masses sum to more than `target`.
template <class T>
std::int64_t whole_row_token(const Row<T>& row, std::uint64_t target) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < row.count; i += kLanes) {
    const Masses masses = masses_from(row, i);
    if (sum + masses.sum <= target) {
      sum += masses.sum;
      continue;
    }
    for (int j = 0; j < kLanes; ++j) {
      sum += masses.at[j];
      if (sum > target) return i + j;
    }
  }
  return 0;
}

template <class T>
std::int32_t draw(const Row<T>& row, const Kept& kept, std::uint32_t random) {
  const std::uint64_t target = drawn_mass(total_mass(row, kept), random);
  if (is_whole(kept)) return static_cast<std::int32_t>(whole_row_token(row, target));
  std::uint64_t sum = 0;
  std::int64_t token = 0;
  for_each_kept(row, kept, [&](std::int64_t i, std::uint32_t, float e) {
    sum += mass(e);
    if (sum > target) token = i;
    return sum <= target;
  });
  return static_cast<std::int32_t>(token);
}

// The most probable token that is not banned, lowest id among equals.
template <class T>
std::int64_t best_token(const Row<T>& row) {
  std::int64_t best = 0;
  std::uint32_t best_order = 0;
  bool found = false;
  for (std::int64_t i = 0; i < row.count; ++i) {
    const std::uint32_t order = order_of(widened(row.logits[i]));
    if (found && order <= best_order) continue;
    if (row.is_banned(i)) continue;
    best = i;
    best_order = order;
    found = true;
  }
  return best;
}

template <class T>
std::int32_t sample_row(const Row<T>& row, const RowSampling& rules) {
  Kept kept;
  if (rules.min_p > 0) {
    // The threshold is an order, so it is found among the logits: the lowest one that passes.
    std::uint32_t lowest = order_of(kInfinity);
    for_each_kept(row, kept, [&](std::int64_t, std::uint32_t order, float e) {
      if (e >= rules.min_p && order < lowest) lowest = order;
      return true;
    });
    kept.threshold = lowest;
  }
  if (rules.top_k > 0 && rules.top_k < row.count) {
    kept = shrink(row, kept, static_cast<std::uint64_t>(rules.top_k),
                  [](float) { return std::uint64_t{1}; });
  }
  if (rules.top_p < 1) {
    const std::uint64_t target = mass_to_keep(total_mass(row, kept), rules.top_p);
    kept = shrink(row, kept, target, [](float e) { return mass(e); });
  }
  return draw(row, kept, philox4x32(rules.seed, rules.position)[0] >> 8);
}

template <class T>
void sample_rows(const Stream& stream, const Sample& op) {
  const std::int64_t vocabulary = op.logits.dim(1);
  const std::int64_t grain = vocabulary < kElementsPerRange ? kElementsPerRange / vocabulary : 1;
  device::parallel_for(
      stream.pool, std::ssize(op.rows), grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          const RowSampling& rules = op.rows.data()[r];
          const bool greedy = rules.temperature == 0;
          const float factor = greedy ? 1.0f : 1.0f / rules.temperature;
          const std::int64_t from = rules.logits_row == kOwnRow ? r : rules.logits_row;
          const T* logits = data<T>(op.logits) + from * op.logits.row_stride;
          const SoftmaxSums sums = softmax_sums<false>(logits, vocabulary, factor);
          Row<T> row{.logits = logits,
                     .count = vocabulary,
                     .factor = factor,
                     .maximum = sums.maximum,
                     .banned = rules.banned};
          if (!rules.banned.empty()) row.maximum = widened(logits[best_token(row)]) * factor;
          const std::int32_t token =
              greedy ? static_cast<std::int32_t>(best_token(row)) : sample_row(row, rules);
          op.tokens.i32()[r] = token;
          op.log_prob.f32()[r] = (widened(logits[token]) * factor - sums.maximum) - log(sums.sum);
        }
      });
}

}  // namespace

void sample(const Stream& stream, const Sample& op) {
  with_type(op.logits.dtype, [&]<class T>(T) { sample_rows<T>(stream, op); });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
