// Tokens are taken 16 at a time for exp, then one by one for the sums, which are in double and in
// the order of the tokens. A batch has some thousand tokens, so one thread is enough.
//
// cuda/policy_loss.cu has the same operations in the same order, for the same bits. Lanes of tokens
// with weight 0 are computed with the others, whatever their operands hold, and dropped.
#include "kernels/ops/policy_loss.h"

#include "kernels/cpu/exponential.h"
#include "kernels/cpu/operators.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

struct Lanes {
  alignas(64) float at[kLanes];
};

// NaN stays NaN: it is the second operand of min and max.
F32x16 clamp_ratio(F32x16 log_ratio) {
  return min(set(kLogRatioMax), max(set(-kLogRatioMax), log_ratio));
}

// exp(a - b), with a - b clamped, for the n tokens from t on.
Lanes ratios(const TensorView& a, const TensorView& b, std::int64_t t, int n) {
  Lanes result;
  store(result.at, exp(clamp_ratio(load(a.f32() + t, n) - load(b.f32() + t, n))));
  return result;
}

double clamped(double log_ratio) {
  const double most = static_cast<double>(kLogRatioMax);
  return log_ratio < -most ? -most : log_ratio > most ? most : log_ratio;
}

struct TokenLoss {
  float loss = 0;      // the policy term
  float gradient = 0;  // with respect to the current log-probability
  bool clipped = false;
  bool dual = false;  // by the dual clip
  bool low = false;   // by the lower bound
};

// kVanilla and kGspo. The gradient of -A * ratio with respect to c is -A * ratio, because the ratio
// is exp(c - o) (kGspo: the token's share as policy_loss.h says). Where a bound is in force, which
// does not depend on c, the gradient is 0.
TokenLoss clipped_loss(const PolicyLoss& op, float ratio, float advantage) {
  const float low = 1.0f - op.clip_low, high = 1.0f + op.clip_high;
  const float bounded = ratio < low ? low : ratio > high ? high : ratio;
  const float plain = -advantage * ratio, bound = -advantage * bounded;
  TokenLoss token{.loss = plain, .gradient = plain};
  if (bound > plain) token = {.loss = bound, .gradient = 0, .clipped = true, .low = ratio < low};
  const float dual = -advantage * op.clip_dual;
  if (op.mode == LossMode::kVanilla && op.clip_dual > 0 && advantage < 0 && token.loss > dual) {
    token = {.loss = dual, .gradient = 0, .clipped = true, .dual = true};
  }
  return token;
}

TokenLoss token_loss(const PolicyLoss& op, float ratio, float advantage, float current) {
  if (op.mode != LossMode::kCispo) return clipped_loss(op, ratio, advantage);
  const float low = 1.0f - op.clip_low, high = 1.0f + op.clip_high;
  const float bounded = ratio < low ? low : ratio > high ? high : ratio;
  return {.loss = -advantage * bounded * current,
          .gradient = -advantage * bounded,
          .clipped = bounded != ratio,
          .low = ratio < low};
}

struct KlTerm {
  float value, gradient;  // with respect to the current log-probability
};

// d = current - reference; `ratio` is exp(-d), clamped.
KlTerm kl_term(KlEstimate kind, float d, float ratio) {
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

// GSPO's ratio: exp of the mean of current - proximal over the sequence's tokens that count; 1 if
// there are none.
float sequence_ratio(const PolicyLoss& op, std::int64_t begin, std::int64_t end) {
  const float *current = op.current.f32(), *proximal = op.proximal.f32(), *weight = op.weight.f32();
  double sum = 0, tokens = 0;
  for (std::int64_t t = begin; t < end; ++t) {
    if (weight[t] == 0) continue;
    sum += static_cast<double>(current[t]) - static_cast<double>(proximal[t]);
    tokens += 1;
  }
  return tokens == 0 ? 1.0f : exp(static_cast<float>(clamped(sum / tokens)));
}

// Ratios of one token.
struct TokenRatios {
  float ratio;      // in the loss: the token's own or its sequence's
  float own;        // exp(current - proximal)
  float reference;  // exp(reference - current)
};

// Writes one token's gradients and loss, and adds its loss and statistics to the sums.
void add_token(const PolicyLoss& op, std::int64_t t, const TokenRatios& ratios) {
  PolicyLossStats& stats = *op.stats;
  const float current = op.current.f32()[t], weight = op.weight.f32()[t];
  const TokenLoss token = token_loss(op, ratios.ratio, op.advantage.f32()[t], current);
  const float importance = op.importance.empty() ? 1.0f : op.importance.f32()[t];
  float loss = importance * token.loss, gradient = importance * token.gradient;
  if (!op.reference.empty()) {
    const KlTerm kl = kl_term(op.kl_estimate, current - op.reference.f32()[t], ratios.reference);
    loss += op.kl_coef * kl.value;
    gradient += op.kl_coef * kl.gradient;
    stats.reference_kl += static_cast<double>(kl.value);
  }
  if (!op.entropy.empty()) {
    loss -= op.entropy_coef * op.entropy.f32()[t];
    stats.entropy += static_cast<double>(op.entropy.f32()[t]);
  }
  op.dlog_prob.f32()[t] = weight * gradient;
  if (!op.dentropy.empty()) op.dentropy.f32()[t] = -weight * op.entropy_coef;
  const double own = static_cast<double>(ratios.own);
  const double k1 = static_cast<double>(op.proximal.f32()[t]) - static_cast<double>(current);
  if (!op.loss.empty()) op.loss.f32()[t] = weight * loss;
  stats.loss += static_cast<double>(weight) * static_cast<double>(loss);
  stats.tokens += 1;
  stats.clipped += token.clipped ? 1 : 0;
  stats.dual_clipped += token.dual ? 1 : 0;
  stats.clipped_low += token.low ? 1 : 0;
  stats.approx_kl_k1 += k1;
  stats.approx_kl_k3 += own - 1 + k1;
  if (own > stats.ratio_max) stats.ratio_max = own;
}

// The tokens [begin, end), which are one sequence where the loss takes the sequence's ratio.
void policy_tokens(const PolicyLoss& op, std::int64_t begin, std::int64_t end) {
  const bool by_sequence = op.mode == LossMode::kGspo;
  const float shared = by_sequence ? sequence_ratio(op, begin, end) : 0.0f;
  for (std::int64_t i = begin; i < end; i += kLanes) {
    const int n = lanes(end - i);
    const Lanes own = ratios(op.current, op.proximal, i, n);
    const Lanes reference = op.reference.empty() ? Lanes{} : ratios(op.reference, op.current, i, n);
    for (int j = 0; j < n; ++j) {
      if (op.weight.f32()[i + j] == 0) {
        op.dlog_prob.f32()[i + j] = 0;
        if (!op.dentropy.empty()) op.dentropy.f32()[i + j] = 0;
        if (!op.loss.empty()) op.loss.f32()[i + j] = 0;
        continue;
      }
      add_token(op, i + j,
                {.ratio = by_sequence ? shared : own.at[j],
                 .own = own.at[j],
                 .reference = reference.at[j]});
    }
  }
}

}  // namespace

void policy_loss(const Stream&, const PolicyLoss& op) {
  if (op.sequence_begin.empty()) return policy_tokens(op, 0, op.current.dim(0));
  const std::int32_t* begin = op.sequence_begin.i32();
  for (std::int64_t s = 0; s + 1 < op.sequence_begin.dim(0); ++s) {
    policy_tokens(op, begin[s], begin[s + 1]);
  }
}

void importance_weights(const Stream&, const ImportanceWeights& op) {
  const float* weight = op.weight.f32();
  float* importance = op.importance.f32();
  if (op.level == ImportanceLevel::kToken) {
    const std::int64_t tokens = op.weight.dim(0);
    for (std::int64_t i = 0; i < tokens; i += kLanes) {
      const int n = lanes(tokens - i);
      const Lanes ratio = ratios(op.proximal, op.behaviour, i, n);
      for (int j = 0; j < n; ++j) {
        const float bounded = ratio.at[j] < op.threshold ? ratio.at[j] : op.threshold;
        importance[i + j] = weight[i + j] == 0 ? 1.0f : bounded;
      }
    }
    return;
  }
  const std::int32_t* begin = op.sequence_begin.i32();
  for (std::int64_t s = 0; s + 1 < op.sequence_begin.dim(0); ++s) {
    double sum = 0;
    for (std::int64_t t = begin[s]; t < begin[s + 1]; ++t) {
      if (weight[t] == 0) continue;
      sum += static_cast<double>(op.proximal.f32()[t]) - static_cast<double>(op.behaviour.f32()[t]);
    }
    const float ratio = exp(static_cast<float>(clamped(sum)));
    const float bounded = ratio < op.threshold ? ratio : op.threshold;
    for (std::int64_t t = begin[s]; t < begin[s + 1]; ++t) {
      importance[t] = weight[t] == 0 ? 1.0f : bounded;
    }
  }
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
