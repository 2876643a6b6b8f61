// How long completions are, as a distribution from which a forecast draws. Recorded groups are
// drawn whole, since the completions of one prompt are alike. A value; pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::forecast {

inline constexpr std::int32_t kLengthMost = 1 << 24;  // tokens

class Lengths {
 public:
  // "constant(256)"; "uniform(1,16)", both ends included; "lognormal(MEAN,SIGMA,MOST)" with the
  // mean of the distribution before it is cut at MOST, and SIGMA that of the logarithm. kInvalid
  // for any other text, and for parameters without sense.
  static Result<Lengths> parse(const std::string& text);
  // Groups that a run has recorded, none of them empty; at least one (CHECKed).
  static Lengths recorded(std::vector<std::vector<std::int32_t>> groups);

  // The lengths of the completions of one group, each in [1, most]: a function of the seed.
  std::vector<std::int32_t> draw(std::uint64_t seed, std::int32_t n, std::int32_t most) const;
  // "lognormal(2900,0.99,28672)", "412 groups that were recorded".
  const std::string& text() const { return text_; }

 private:
  enum class Kind { kConstant, kUniform, kLogNormal, kRecorded };
  Kind kind_ = Kind::kConstant;
  double a_ = 1, b_ = 1, most_ = 1;
  std::vector<std::vector<std::int32_t>> groups_;
  std::string text_;
};

}  // namespace tandem::forecast
