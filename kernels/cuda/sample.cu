// A block draws one token, the same one that a CPU draws for the same logits (SA-1). Weights have
// the CPU's bits, and masses are integers (ops/sample.h), which add up to the same number in any
// order. So the threads of a block may add them in parallel; sums of floats would need the CPU's
// order, one element after another.
//
// Truncation works as in cpu/sample.cc: the threshold's bits are fixed from the top, here four at a
// time, with the sums for the sixteen digits in registers. Among tokens equal to the threshold the
// first ones are kept; the CPU counts them, a block knows them by the id of the last one.
#include "kernels/cuda/exponential.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/soft_max.cuh"
#include "kernels/ops/sample.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = kSoftMaxThreads;
constexpr int kWarps = kSoftMaxWarps;
constexpr int kDigitBits = 4;
constexpr int kDigits = 1 << kDigitBits;
constexpr int kTilesMax = 64;

// An integer that orders like the float. NaN gives 0, the order that is never in the draw; -0 and 0
// give the same.
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
  std::uint64_t* scratch;          // kWarps of the block's, shared
  std::uint64_t (*tiles)[kWarps];  // kTilesMax of the block's, shared

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
  __device__ __forceinline__ std::uint64_t mass(const Kept& kept, std::int64_t token) const {
    const float own = logit(token);
    return has(kept, token, order_of(own)) ? mass(own) : 0;
  }
};

// The functions of a row below are for the whole block: all threads call together and get the same
// result.

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

// The sums of a measure over equal stretches of a row, by warp, and over the whole row. The token
// at which the running sum passes a target is then looked for in one stretch alone.
struct Tiles {
  std::uint64_t (*sums)[kWarps];  // [count][kWarps], in the row's shared memory
  std::int64_t size = 0;          // tokens of a stretch
  int count = 0;                  // kTilesMax at most
  std::uint64_t all = 0;
};

template <class T, class Measure>
__device__ __forceinline__ Tiles tiles_of(const Row<T>& row, const Measure& measure) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  constexpr std::int64_t kShortest = std::int64_t{kTilesMax} * kThreads;
  const std::int64_t rounds = (row.count + kShortest - 1) / kShortest;
  Tiles tiles{.sums = row.tiles, .size = rounds * kThreads};
  tiles.count = static_cast<int>((row.count + tiles.size - 1) / tiles.size);
  std::uint64_t all = 0;
  for (int tile = 0; tile < tiles.count; ++tile) {
    std::uint64_t sum = 0;
    for (std::int64_t round = 0; round < rounds; ++round) {
      const std::int64_t i = tile * tiles.size + round * kThreads + threadIdx.x;
      if (i < row.count) sum += measure(i);
    }
    all += sum;
    sum = warp_sum(sum);
    if (lane == 0) tiles.sums[tile][warp] = sum;
  }
  tiles.all = team_sum<kThreads>(all, row.scratch);  // a barrier: all stretches' sums are written
  return tiles;
}

// The first token at which the running sum of the tiles' measure, ids ascending, exceeds `target`;
// the row's count if there is none. The shared memory of the tiles may be used again at once.
template <class T, class Measure>
__device__ __forceinline__ std::int64_t find_first(const Row<T>& row, const Tiles& tiles,
                                                   std::uint64_t target, const Measure& measure) {
  std::uint64_t before = 0;
  int tile = 0;
  for (; tile < tiles.count; ++tile) {
    std::uint64_t until = before;
    for (int warp = 0; warp < kWarps; ++warp) until += tiles.sums[tile][warp];
    if (until > target) break;
    before = until;
  }
  const std::int64_t end = min((tile + 1) * tiles.size, row.count);
  for (std::int64_t begin = tile * tiles.size; begin < end; begin += kThreads) {
    const std::int64_t own = begin + threadIdx.x;
    const std::uint64_t sum = own < end ? measure(own) : 0;
    const Prefix<std::uint64_t> prefix = team_prefix<kThreads>(sum, row.scratch);
    if (before + prefix.all > target) {  // for the whole block
      const std::uint64_t left = before + prefix.before;
      const bool crossed = left <= target && left + sum > target;
      return team_sum<kThreads>(crossed ? own : 0, reinterpret_cast<std::int64_t*>(row.scratch));
    }
    before += prefix.all;
  }
  __syncthreads();
  return row.count;
}

// The smallest set of most probable tokens of `kept` whose measure reaches `target` (at least 1);
// all of `kept` if its measure does not reach it. measure(logit) is 1 for a count (top_k) and the
// mass for a mass (top_p).
template <class T, class Measure>
__device__ __forceinline__ Kept shrink(const Row<T>& row, const Kept& kept, std::uint64_t target,
                                       const Measure& measure) {
  std::uint32_t prefix = 0;
  std::uint64_t above = 0, equal = 0;  // the measures above and within the prefix
  for (int shift = 32 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    const std::uint32_t fixed =
        shift == 32 - kDigitBits ? 0 : ~std::uint32_t{0} << (shift + kDigitBits);
    std::uint64_t at_least[kDigits] = {};  // [d] the measure of tokens with digit d or a higher one
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
  // All tokens with the whole prefix are equal; as many of them are kept as the target takes.
  const auto is_equal = [&](std::int64_t i) -> std::uint64_t {
    const std::uint32_t order = order_of(row.logit(i));
    return order == prefix && row.has(kept, i, order) ? 1 : 0;
  };
  const Tiles tokens = tiles_of(row, is_equal);
  const std::uint64_t of_one = equal / tokens.all;
  const std::uint64_t ties = (target - above + of_one - 1) / of_one;
  return {prefix, find_first(row, tokens, ties - 1, is_equal)};
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
__device__ __forceinline__ std::int64_t draw(const Row<T>& row, const Kept& kept,
                                             std::uint32_t random) {
  const auto mass = [&](std::int64_t i) { return row.mass(kept, i); };
  const Tiles tiles = tiles_of(row, mass);
  const std::int64_t token = find_first(row, tiles, drawn_mass(tiles.all, random), mass);
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
    const std::uint64_t mass = sum_of(row, [&](std::int64_t i) { return row.mass(kept, i); });
    const std::uint64_t target = mass_to_keep(mass, rules.top_p);
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
  __shared__ std::uint64_t tiles[kTilesMax][kWarps];
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
             .scratch = scratch,
             .tiles = tiles};
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
