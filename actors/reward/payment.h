// How the score of a verifier becomes a reward:
//
//   paid(score) = weight * clip(scale * score + bias)
#pragma once

#include <algorithm>
#include <array>
#include <optional>

namespace tandem::reward {

struct Payment {
  double scale = 1, bias = 0;
  std::optional<std::array<double, 2>> clip = {};  // the least and the greatest; nullopt: none
  double weight = 1;
  bool operator==(const Payment&) const = default;
};

// clip(scale * score + bias).
inline double before_weight(const Payment& payment, double score) {
  const double paid = payment.scale * score + payment.bias;
  return payment.clip ? std::clamp(paid, (*payment.clip)[0], (*payment.clip)[1]) : paid;
}

}  // namespace tandem::reward
