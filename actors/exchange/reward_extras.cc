#include "actors/exchange/reward_extras.h"

#include <cmath>
#include <utility>

#include "runtime/base/json.h"

namespace tandem::exchange {

std::map<std::string, double> numbers_in(std::string_view extra) {
  std::map<std::string, double> numbers;
  const nlohmann::json object = extra.empty() ? nlohmann::json() : parse_json(extra);
  if (!object.is_object()) return numbers;
  for (const auto& [key, value] : object.items()) {
    if (key == "pred" || (!value.is_number() && !value.is_boolean())) continue;
    const double number = value.is_boolean() ? (value.get<bool>() ? 1 : 0) : value.get<double>();
    if (std::isfinite(number)) numbers[source_name(key)] = number;
  }
  return numbers;
}

std::map<std::string, double> ExtraKeys::means(const std::vector<std::string_view>& extras) {
  struct Sum {
    double total = 0, count = 0;
  };
  std::map<std::string, Sum> sums;
  for (const std::string_view extra : extras) {
    for (const auto& [name, number] : numbers_in(extra)) {
      if (!known_.contains(name) && known_.size() >= kExtraKeysMax) {
        leave_out(name);
        continue;
      }
      known_.insert(name);
      Sum& sum = sums[name];
      sum.total += number;
      sum.count += 1;
    }
  }
  std::map<std::string, double> means;
  for (const auto& [name, sum] : sums) means[name] = sum.total / sum.count;
  return means;
}

void ExtraKeys::leave_out(const std::string& name) {
  if (!left_out_) left_out_ = name;
}

std::optional<std::string> ExtraKeys::left_out() {
  if (!left_out_ || std::exchange(told_, true)) return std::nullopt;
  return left_out_;
}

}  // namespace tandem::exchange
