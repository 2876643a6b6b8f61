#include "actors/forecast/lengths.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/rng.h"

namespace tandem::forecast {
namespace {

constexpr const char* kForms =
    "constant(256), uniform(1,16) or lognormal(MEAN,SIGMA,MOST), in tokens";

// The numbers between the brackets of "name(1,2,3)"; empty where the text has another form.
std::vector<double> numbers_of(std::string_view text, std::string_view name) {
  std::vector<double> numbers;
  if (!text.starts_with(name) || text.size() < name.size() + 2 || text[name.size()] != '(' ||
      text.back() != ')')
    return numbers;
  std::string_view rest = text.substr(name.size() + 1, text.size() - name.size() - 2);
  for (;;) {
    double number = 0;
    const auto [stop, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (fault != std::errc{} || !std::isfinite(number)) return {};
    numbers.push_back(number);
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
    if (rest.empty()) return numbers;
    if (rest.front() != ',') return {};
    rest.remove_prefix(1);
  }
}

bool is_length(double tokens) { return tokens >= 1 && tokens <= kLengthMost; }

}  // namespace

Result<Lengths> Lengths::parse(const std::string& text) {
  Lengths lengths;
  lengths.text_ = text;
  const auto invalid = [&](const char* why) {
    return Error{ErrorCode::kInvalid, "`" + text + "` is no distribution of lengths" + why, "",
                 kForms};
  };
  std::vector<double> numbers = numbers_of(text, "constant");
  if (numbers.size() == 1) {
    if (!is_length(numbers[0])) return invalid(": a completion has 1 to 16,777,216 tokens");
    lengths.a_ = lengths.b_ = numbers[0];
    return lengths;
  }
  numbers = numbers_of(text, "uniform");
  if (numbers.size() == 2) {
    if (!is_length(numbers[0]) || !is_length(numbers[1]) || numbers[0] > numbers[1])
      return invalid(": the first number is the least, 1 or more");
    lengths.kind_ = Kind::kUniform;
    lengths.a_ = numbers[0];
    lengths.b_ = numbers[1];
    return lengths;
  }
  numbers = numbers_of(text, "lognormal");
  if (numbers.size() != 3) return invalid("");
  if (!is_length(numbers[0]) || !is_length(numbers[2]) || numbers[1] < 0 || numbers[1] > 10)
    return invalid(": MEAN and MOST are at least 1, SIGMA is between 0 and 10");
  lengths.kind_ = Kind::kLogNormal;
  // The mean of exp(N(mu, sigma²)) is exp(mu + sigma² / 2).
  lengths.a_ = std::log(numbers[0]) - numbers[1] * numbers[1] / 2;
  lengths.b_ = numbers[1];
  lengths.most_ = numbers[2];
  return lengths;
}

Lengths Lengths::recorded(std::vector<std::vector<std::int32_t>> groups) {
  CHECK(!groups.empty());
  CHECK(std::ranges::none_of(groups, [](const auto& group) { return group.empty(); }));
  Lengths lengths;
  lengths.kind_ = Kind::kRecorded;
  lengths.text_ = std::to_string(groups.size()) + " groups that were recorded";
  lengths.groups_ = std::move(groups);
  return lengths;
}

std::vector<std::int32_t> Lengths::draw(std::uint64_t seed, std::int32_t n,
                                        std::int32_t most) const {
  Rng rng(derive_seed(seed, "lengths"));
  std::vector<std::int32_t> drawn;
  const std::vector<std::int32_t>* group = nullptr;
  if (kind_ == Kind::kRecorded) group = &groups_[rng.below(groups_.size())];
  for (std::int32_t i = 0; i < n; ++i) {
    double tokens = a_;
    if (kind_ == Kind::kUniform)
      tokens = a_ + static_cast<double>(rng.below(static_cast<std::uint64_t>(b_ - a_) + 1));
    if (kind_ == Kind::kLogNormal) tokens = std::min(most_, std::exp(a_ + b_ * rng.normal()));
    if (group) tokens = (*group)[static_cast<std::size_t>(i) % group->size()];
    drawn.push_back(
        static_cast<std::int32_t>(std::clamp(std::round(tokens), 1.0, static_cast<double>(most))));
  }
  return drawn;
}

}  // namespace tandem::forecast
