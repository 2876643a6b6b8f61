// The CPU's results (cpu/policy_loss.cc) to the bit, including sums in the order of the tokens:
// threads compute one token each, and for each sum one thread adds up their values, ascending. A
// batch has some ten thousand tokens, so one block takes them all.
//
// With kGspo a kernel before computes the ratio of each sequence and leaves it in dlog_prob of the
// sequence's tokens, where the loss reads it before it writes the gradient there.
#include "kernels/cuda/exponential.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/reduce.cuh"
#include "kernels/ops/policy_loss.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 256;

// exp(x), with x clamped to +-kLogRatioMax. NaN stays NaN.
__device__ __forceinline__ float ratio_of(float log_ratio) {
  const float low = log_ratio < -kLogRatioMax ? -kLogRatioMax : log_ratio;
  return exponential(low > kLogRatioMax ? kLogRatioMax : low);
}

__device__ __forceinline__ float ratio_of(double log_ratio) {
  const double most = kLogRatioMax;
  return exponential(static_cast<float>(log_ratio < -most  ? -most
                                        : log_ratio > most ? most
                                                           : log_ratio));
}

struct Tokens {
  LossMode mode;
  KlEstimate kl_estimate;
  float low, high, clip_dual, kl_coef, entropy_coef;
  const float *current, *proximal, *advantage, *weight;
  const float *importance, *reference, *entropy;  // or null
  float *dlog_prob, *dentropy, *loss;             // the latter two: or null
  PolicyLossStats* stats;
  std::int64_t count;
};

struct TokenLoss {
  float loss;      // the policy term
  float gradient;  // with respect to the current log-probability
  bool clipped;
  bool dual;  // by the dual clip
  bool low;   // by the lower bound
};

__device__ __forceinline__ TokenLoss token_loss(const Tokens& op, float ratio, float advantage,
                                                float current) {
  const float bounded = ratio < op.low ? op.low : ratio > op.high ? op.high : ratio;
  const float bound = -advantage * bounded;
  if (op.mode == LossMode::kCispo)
    return {bound * current, bound, bounded != ratio, false, ratio < op.low};
  const float plain = -advantage * ratio;
  TokenLoss token{plain, plain, false, false, false};
  if (bound > plain) token = {bound, 0.0f, true, false, ratio < op.low};
  const float dual = -advantage * op.clip_dual;
  if (op.mode == LossMode::kVanilla && op.clip_dual > 0 && advantage < 0 && token.loss > dual) {
    token = {dual, 0.0f, true, true, false};
  }
  return token;
}

struct KlTerm {
  float value, gradient;  // with respect to the current log-probability
};

// d = current - reference; `ratio` is exp(-d), clamped.
__device__ __forceinline__ KlTerm kl_term(KlEstimate kind, float d, float ratio) {
  switch (kind) {
    case KlEstimate::kKl:
      return {d, 1.0f};
    case KlEstimate::kAbs:
      return {d < 0 ? -d : d, d < 0 ? -1.0f : d > 0 ? 1.0f : 0.0f};
    case KlEstimate::kMse:
      return {0.5f * d * d, d};
    case KlEstimate::kLowVarKl:
      break;
  }
  const float kl = ratio + d - 1.0f;
  return kl > kKlMax ? KlTerm{kKlMax, 0.0f} : KlTerm{kl, 1.0f - ratio};
}

// Indices of the statistics that a token adds to; the last one is a maximum.
enum Statistic {
  kLoss,
  kTokens,
  kClipped,
  kK1,
  kK3,
  kReferenceKl,
  kEntropy,
  kDualClipped,
  kClippedLow,
  kRatioMax,
};
constexpr int kStatistics = kRatioMax + 1;

// Writes the token's gradients and loss, and its statistics to `found`, which is all zeros before.
// With kGspo dlog_prob[t] holds the sequence's ratio on entry.
__device__ __forceinline__ void take_token(const Tokens& op, std::int64_t t,
                                           double (&found)[kStatistics]) {
  const float weight = op.weight[t];
  if (weight == 0) {
    op.dlog_prob[t] = 0.0f;
    if (op.dentropy != nullptr) op.dentropy[t] = 0.0f;
    if (op.loss != nullptr) op.loss[t] = 0.0f;
    return;
  }
  const float current = op.current[t], proximal = op.proximal[t];
  const float own = ratio_of(current - proximal);
  const float ratio = op.mode == LossMode::kGspo ? op.dlog_prob[t] : own;
  const TokenLoss token = token_loss(op, ratio, op.advantage[t], current);
  const float importance = op.importance == nullptr ? 1.0f : op.importance[t];
  float loss = importance * token.loss, gradient = importance * token.gradient;
  if (op.reference != nullptr) {
    const float other = ratio_of(op.reference[t] - current);
    const KlTerm kl = kl_term(op.kl_estimate, current - op.reference[t], other);
    loss += op.kl_coef * kl.value;
    gradient += op.kl_coef * kl.gradient;
    found[kReferenceKl] = kl.value;
  }
  if (op.entropy != nullptr) {
    loss -= op.entropy_coef * op.entropy[t];
    found[kEntropy] = op.entropy[t];
  }
  op.dlog_prob[t] = weight * gradient;
  if (op.dentropy != nullptr) op.dentropy[t] = -weight * op.entropy_coef;
  if (op.loss != nullptr) op.loss[t] = weight * loss;
  const double k1 = static_cast<double>(proximal) - static_cast<double>(current);
  found[kLoss] = static_cast<double>(weight) * static_cast<double>(loss);
  found[kTokens] = 1;
  found[kClipped] = token.clipped ? 1 : 0;
  found[kDualClipped] = token.dual ? 1 : 0;
  found[kClippedLow] = token.low ? 1 : 0;
  found[kK1] = k1;
  found[kK3] = static_cast<double>(own) - 1 + k1;
  found[kRatioMax] = own;
}

__device__ __forceinline__ double* statistic(PolicyLossStats* stats, int which) {
  double* const all[kStatistics] = {
      &stats->loss,         &stats->tokens,       &stats->clipped, &stats->approx_kl_k1,
      &stats->approx_kl_k3, &stats->reference_kl, &stats->entropy, &stats->dual_clipped,
      &stats->clipped_low,  &stats->ratio_max};
  return all[which];
}

// One block. Each thread takes a token of the tile; then each of the first kStatistics threads adds
// up one statistic, tokens ascending.
__global__ void policy_loss_kernel(Tokens op) {
  __shared__ double tile[kStatistics][kThreads];
  const int own = static_cast<int>(threadIdx.x);
  double sum = own < kStatistics ? *statistic(op.stats, own) : 0;
  for (std::int64_t begin = 0; begin < op.count; begin += kThreads) {
    double found[kStatistics] = {};
    if (begin + own < op.count) take_token(op, begin + own, found);
    for (int s = 0; s < kStatistics; ++s) tile[s][own] = found[s];
    __syncthreads();
    if (own < kStatistics) {
      for (int i = 0; i < kThreads; ++i) {
        const double more = tile[own][i];
        sum = own == kRatioMax ? (more > sum ? more : sum) : sum + more;
      }
    }
    __syncthreads();
  }
  if (own < kStatistics) *statistic(op.stats, own) = sum;
}

// The sum of a - b over one sequence's tokens of non-zero weight, in double, tokens ascending, and
// the number of these tokens. All lanes of a warp call together and get the same.
struct Difference {
  double sum;
  double tokens;
};

__device__ __forceinline__ Difference sequence_difference(const float* a, const float* b,
                                                          const float* weight, std::int64_t begin,
                                                          std::int64_t end) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  Difference total{0, 0};
  for (std::int64_t first = begin; first < end; first += kWarp) {
    const std::int64_t t = first + lane;
    const bool counts = t < end && weight[t] != 0;
    const double own = counts ? static_cast<double>(a[t]) - static_cast<double>(b[t]) : 0;
    total.tokens += __popc(__ballot_sync(kAllLanes, counts));
    for (int i = 0; i < kWarp; ++i) total.sum += __shfl_sync(kAllLanes, own, i);
  }
  return total;
}

// A block of one warp takes a sequence and leaves its ratio in dlog_prob of its tokens, for
// take_token.
__global__ void sequence_ratio_kernel(Tokens op, const std::int32_t* begins) {
  const std::int64_t begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
  const Difference difference = sequence_difference(op.current, op.proximal, op.weight, begin, end);
  const float ratio = difference.tokens == 0 ? 1.0f : ratio_of(difference.sum / difference.tokens);
  for (std::int64_t t = begin + threadIdx.x; t < end; t += kWarp) op.dlog_prob[t] = ratio;
}

struct Weights {
  const float *proximal, *behaviour, *weight;
  float* importance;
  float threshold;
  std::int64_t count;

  __device__ __forceinline__ void set(std::int64_t t, float ratio) const {
    importance[t] = weight[t] == 0 ? 1.0f : ratio < threshold ? ratio : threshold;
  }
};

__global__ void token_weights_kernel(Weights op) {
  const std::int64_t t = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (t < op.count) op.set(t, ratio_of(op.proximal[t] - op.behaviour[t]));
}

__global__ void sequence_weights_kernel(Weights op, const std::int32_t* begins) {
  const std::int64_t begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
  const float ratio =
      ratio_of(sequence_difference(op.proximal, op.behaviour, op.weight, begin, end).sum);
  for (std::int64_t t = begin + threadIdx.x; t < end; t += kWarp) op.set(t, ratio);
}

}  // namespace

void policy_loss(const Stream& stream, const PolicyLoss& op) {
  const Tokens tokens{.mode = op.mode,
                      .kl_estimate = op.kl_estimate,
                      .low = 1.0f - op.clip_low,
                      .high = 1.0f + op.clip_high,
                      .clip_dual = op.clip_dual,
                      .kl_coef = op.kl_coef,
                      .entropy_coef = op.entropy_coef,
                      .current = data<float>(op.current),
                      .proximal = data<float>(op.proximal),
                      .advantage = data<float>(op.advantage),
                      .weight = data<float>(op.weight),
                      .importance = data<float>(op.importance),
                      .reference = data<float>(op.reference),
                      .entropy = data<float>(op.entropy),
                      .dlog_prob = data<float>(op.dlog_prob),
                      .dentropy = data<float>(op.dentropy),
                      .loss = data<float>(op.loss),
                      .stats = op.stats,
                      .count = op.current.dim(0)};
  if (op.mode == LossMode::kGspo) {
    launch(stream, {.grid = blocks_for(op.sequence_begin.dim(0) - 1, 1), .block = kWarp},
           sequence_ratio_kernel, tokens, data<std::int32_t>(op.sequence_begin));
  }
  launch(stream, {.grid = 1, .block = kThreads}, policy_loss_kernel, tokens);
}

void importance_weights(const Stream& stream, const ImportanceWeights& op) {
  const Weights weights{.proximal = data<float>(op.proximal),
                        .behaviour = data<float>(op.behaviour),
                        .weight = data<float>(op.weight),
                        .importance = data<float>(op.importance),
                        .threshold = op.threshold,
                        .count = op.weight.dim(0)};
  if (op.level == ImportanceLevel::kToken) {
    launch(stream, {.grid = blocks_for(weights.count, kThreads), .block = kThreads},
           token_weights_kernel, weights);
  } else {
    launch(stream, {.grid = blocks_for(op.sequence_begin.dim(0) - 1, 1), .block = kWarp},
           sequence_weights_kernel, weights, data<std::int32_t>(op.sequence_begin));
  }
}

}  // namespace tandem::kernels::cuda
