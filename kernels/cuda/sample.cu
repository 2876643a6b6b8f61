// The CPU's token for the same logits: weights have its bits, and masses are integers (sample.h),
// which add up to the same number in any order. So a row's block may sum as it likes, where a
// float's histogram would need the CPU's order, one element after another.
//
// Truncation is the CPU's too: the threshold's bits are fixed from the top, here four at a time,
// with the masses of the sixteen digits in registers. "The first so many equal to the threshold"
// is held as the last of their ids.
#include "kernels/cuda/exponential.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/soft_max.cuh"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = kSoftMaxThreads;
constexpr int kWarps = kSoftMaxWarps;
constexpr int kDigitBits = 4;
constexpr int kDigits = 1 << kDigitBits;

// Orders like the float; 0 for NaN, which is thereby never drawn. -0 counts as 0.
__device__ __forceinline__ std::uint32_t order_of(float value) {
  if (value != value) return 0;
  const std::uint32_t bits = __float_as_uint(value + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// The first word of philox4x32(key, counter), of runtime/base/rng.h, as a number in [0, 2^24).
__device__ __forceinline__ std::uint32_t random_24(std::uint64_t key, std::uint64_t counter) {
  std::uint32_t c0 = static_cast<std::uint32_t>(counter);
  std::uint32_t c1 = static_cast<std::uint32_t>(counter >> 32), c2 = 0, c3 = 0;
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c0 >> 8;
}

// The tokens still in the draw: order above `threshold`, and those equal to it up to `last`.
struct Kept {
  std::uint32_t threshold;
  std::int64_t last;
};

template <class T>
struct Row {
  const T* logits;
  std::int64_t count;
  float factor;   // 1 / temperature
  float maximum;  // of logits * factor among tokens that are not banned
  const std::int32_t* banned;
  std::int64_t banned_count;
  std::uint64_t* scratch;  // kWarps of the block's, shared

  __device__ __forceinline__ float logit(std::int64_t token) const {
    return to_float(logits[token]);
  }
  __device__ __forceinline__ bool is_banned(std::int64_t token) const {
    for (std::int64_t i = 0; i < banned_count; ++i) {
      if (banned[i] == token) return true;
    }
    return false;
  }
  __device__ __forceinline__ bool has(const Kept& kept, std::int64_t token,
                                      std::uint32_t order) const {
    if (order < kept.threshold || order == 0) return false;
    return !(order == kept.threshold && token > kept.last) && !is_banned(token);
  }
  __device__ __forceinline__ float weight(float logit) const {
    return exponential(logit * factor - maximum);
  }
  __device__ __forceinline__ std::uint64_t mass(float logit) const {
    const float e = weight(logit);
    return e > 0.0f ? static_cast<std::uint64_t>(e * kUnitMass) : 0;
  }
};

// Functions of a row are for the whole block, which calls together and gets one result.

template <class T, class Measure>
__device__ __forceinline__ std::uint64_t sum_of(const Row<T>& row, const Measure& measure) {
  std::uint64_t sum = 0;
  for (std::int64_t i = threadIdx.x; i < row.count; i += kThreads) sum += measure(i);
  return team_sum<kThreads>(sum, row.scratch);
}

__device__ __forceinline__ std::uint64_t larger(std::uint64_t a, std::uint64_t b) {
  return a > b ? a : b;
}

__device__ __forceinline__ std::uint64_t warp_largest(std::uint64_t value) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    value = larger(value, __shfl_xor_sync(kAllLanes, value, step));
  }
  return value;
}

template <class T, class Measure>
__device__ __forceinline__ std::uint64_t largest_of(const Row<T>& row, const Measure& measure) {
  std::uint64_t most = 0;
  for (std::int64_t i = threadIdx.x; i < row.count; i += kThreads) {
    most = larger(most, measure(i));
  }
  most = warp_largest(most);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane == 0) row.scratch[threadIdx.x / kWarp] = most;
  __syncthreads();
  most = warp_largest(lane < kWarps ? row.scratch[lane] : 0);
  __syncthreads();
  return most;
}

// The first token at which the running sum of the measure, ids ascending, exceeds `target`; row's
// count if none. Tiles of one element per thread, so that a tile's crossing is found by scanning
// warps' sums, then a warp's lanes.
template <class T, class Measure>
__device__ __forceinline__ std::int64_t find_first(const Row<T>& row, std::uint64_t target,
                                                   const Measure& measure) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  std::uint64_t before = 0;
  for (std::int64_t begin = 0; begin < row.count; begin += kThreads) {
    const std::int64_t own = begin + threadIdx.x;
    std::uint64_t sum = own < row.count ? measure(own) : 0;
    for (int step = 1; step < kWarp; step *= 2) {
      const std::uint64_t left = __shfl_up_sync(kAllLanes, sum, static_cast<unsigned>(step));
      if (lane >= step) sum += left;
    }
    if (lane == kWarp - 1) row.scratch[warp] = sum;
    __syncthreads();
    std::uint64_t tile = before;
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) sum += tile;
      tile += row.scratch[w];
    }
    __syncthreads();
    if (tile > target) {  // for the whole block
      const unsigned crossed = __ballot_sync(kAllLanes, sum > target);
      if (lane == 0) row.scratch[warp] = crossed;
      __syncthreads();
      std::int64_t first = row.count;
      for (int w = kWarps - 1; w >= 0; --w) {
        const auto lanes = static_cast<int>(static_cast<unsigned>(row.scratch[w]));
        if (lanes != 0) first = begin + w * kWarp + __ffs(lanes) - 1;
      }
      __syncthreads();
      return first;
    }
    before = tile;
  }
  return row.count;
}

// The smallest set of most probable tokens of `kept` whose measure reaches `target` (at least 1);
// all of them if they do not. measure(logit) is 1 for a count and the mass for mass.
template <class T, class Measure>
__device__ __forceinline__ Kept shrink(const Row<T>& row, const Kept& kept, std::uint64_t target,
                                       const Measure& measure) {
  std::uint32_t prefix = 0;
  std::uint64_t above = 0, equal = 0;  // the measures above and within the prefix
  for (int shift = 32 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    const std::uint32_t fixed =
        shift == 32 - kDigitBits ? 0 : ~std::uint32_t{0} << (shift + kDigitBits);
    std::uint64_t at_least[kDigits] = {};  // the measure of the digits d …
    for (std::int64_t i = threadIdx.x; i < row.count; i += kThreads) {
      const float logit = row.logit(i);
      const std::uint32_t order = order_of(logit);
      if ((order & fixed) != prefix || !row.has(kept, i, order)) continue;
      const std::uint64_t more = measure(logit);
      const std::uint32_t digit = order >> shift & (kDigits - 1);
      for (std::uint32_t d = 0; d < kDigits; ++d) {
        if (d <= digit) at_least[d] += more;
      }
    }
    for (int d = 0; d < kDigits; ++d) {
      at_least[d] = team_sum<kThreads>(at_least[d], row.scratch);
    }
    if (above + at_least[0] < target) return kept;  // in the first pass, if ever
    std::uint32_t digit = 0;
    std::uint64_t beyond = 0;
    equal = at_least[0];
    for (std::uint32_t d = 0; d < kDigits; ++d) {
      if (above + at_least[d] < target) continue;
      digit = d;
      beyond = d + 1 < kDigits ? at_least[d + 1 < kDigits ? d + 1 : d] : 0;
      equal = at_least[d] - beyond;
    }
    above += beyond;
    prefix |= digit << shift;
  }
  // All that share the whole prefix are equal: as many of them as the target takes.
  const std::uint64_t tokens = sum_of(row, [&](std::int64_t i) -> std::uint64_t {
    const std::uint32_t order = order_of(row.logit(i));
    return order == prefix && row.has(kept, i, order) ? 1 : 0;
  });
  const std::uint64_t of_one = equal / tokens;
  const std::uint64_t ties = (target - above + of_one - 1) / of_one;
  const std::int64_t last = find_first(row, ties - 1, [&](std::int64_t i) -> std::uint64_t {
    const std::uint32_t order = order_of(row.logit(i));
    return order == prefix && row.has(kept, i, order) ? 1 : 0;
  });
  return {prefix, last};
}

// The most probable token that is not banned, lowest id among equals.
template <class T>
__device__ __forceinline__ std::int64_t best_token(const Row<T>& row) {
  const std::uint64_t best = largest_of(row, [&](std::int64_t i) -> std::uint64_t {
    if (row.is_banned(i)) return 0;
    const auto id = static_cast<std::uint32_t>(i);
    return (std::uint64_t{order_of(row.logit(i))} << 32) | std::uint64_t{~id};
  });
  return static_cast<std::int64_t>(~static_cast<std::uint32_t>(best));
}

template <class T>
__device__ __forceinline__ std::uint64_t mass_of(const Row<T>& row, const Kept& kept) {
  return sum_of(row, [&](std::int64_t i) -> std::uint64_t {
    const float logit = row.logit(i);
    return row.has(kept, i, order_of(logit)) ? row.mass(logit) : 0;
  });
}

template <class T>
__device__ __forceinline__ std::int64_t draw(const Row<T>& row, const Kept& kept,
                                             std::uint32_t random) {
  const std::uint64_t target = drawn_mass(mass_of(row, kept), random);
  const std::int64_t token = find_first(row, target, [&](std::int64_t i) -> std::uint64_t {
    const float logit = row.logit(i);
    return row.has(kept, i, order_of(logit)) ? row.mass(logit) : 0;
  });
  return token < row.count ? token : 0;
}

template <class T>
__device__ __forceinline__ std::int64_t sample_row(const Row<T>& row, const RowSampling& rules) {
  Kept kept{0, row.count};
  if (rules.min_p > 0) {
    // The threshold is an order, so it is found among the logits: the lowest one that passes.
    const std::uint32_t top = order_of(infinity());
    kept.threshold = top - static_cast<std::uint32_t>(largest_of(row, [&](std::int64_t i) {
                       const float logit = row.logit(i);
                       const std::uint32_t order = order_of(logit);
                       const bool passes =
                           row.has(kept, i, order) && row.weight(logit) >= rules.min_p;
                       return std::uint64_t{passes ? top - order : 0};
                     }));
  }
  if (rules.top_k > 0 && rules.top_k < row.count) {
    kept = shrink(row, kept, static_cast<std::uint64_t>(rules.top_k),
                  [](float) { return std::uint64_t{1}; });
  }
  if (rules.top_p < 1) {
    const std::uint64_t target = mass_to_keep(mass_of(row, kept), rules.top_p);
    kept = shrink(row, kept, target, [&](float logit) { return row.mass(logit); });
  }
  return draw(row, kept, random_24(rules.seed, rules.position));
}

template <class T>
struct Rows {
  const T* logits;
  const RowSampling* rules;
  std::int32_t* tokens;
  float* log_prob;
  std::int64_t stride, vocabulary;
};

template <class T, bool kVector>
__global__ void sample_kernel(Rows<T> op) {
  __shared__ SoftMaxSums sums_scratch[kSoftMaxWarps];
  __shared__ std::uint64_t scratch[kWarps];
  const std::int64_t r = blockIdx.x;
  const RowSampling& rules = op.rules[r];
  const bool greedy = rules.temperature == 0;
  const float factor = greedy ? 1.0f : 1.0f / rules.temperature;
  const T* logits = op.logits + (rules.logits_row == kOwnRow ? r : rules.logits_row) * op.stride;
  const SoftMaxSums sums = soft_max_sums<kVector>(logits, op.vocabulary, factor, sums_scratch);
  Row<T> row{.logits = logits,
             .count = op.vocabulary,
             .factor = factor,
             .maximum = sums.maximum,
             .banned = rules.banned.data(),
             .banned_count = static_cast<std::int64_t>(rules.banned.size()),
             .scratch = scratch};
  if (row.banned_count > 0) row.maximum = row.logit(best_token(row)) * factor;
  const std::int64_t token = greedy ? best_token(row) : sample_row(row, rules);
  if (threadIdx.x != 0) return;
  op.tokens[r] = static_cast<std::int32_t>(token);
  op.log_prob[r] = (row.logit(token) * factor - sums.maximum) - logarithm(sums.sum);
}

}  // namespace

void sample(const Stream& stream, const Sample& op) {
  with_type(op.logits.dtype, [&]<class T>(T) {
    const Rows<T> rows{.logits = data<T>(op.logits),
                       .rules = op.rows.data(),
                       .tokens = data<std::int32_t>(op.tokens),
                       .log_prob = data<float>(op.log_prob),
                       .stride = op.logits.row_stride,
                       .vocabulary = op.logits.dim(1)};
    with_flag(packs_align({op.logits}), [&](auto vector) {
      launch(stream, {.grid = blocks_for(std::ssize(op.rows), 1), .block = kThreads},
             sample_kernel<T, vector>, rows);
    });
  });
}

}  // namespace tandem::kernels::cuda
