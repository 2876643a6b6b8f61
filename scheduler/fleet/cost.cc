#include "scheduler/fleet/cost.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <system_error>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "scheduler/fleet/sizing.h"

namespace tandem::scheduler {
namespace {

Error pricing_error(std::string message) {
  return {ErrorCode::kInvalid, std::move(message), "",
          "as in rollout=2.10,learner=4.00 or rollout=2.10,learner=4.00,currency=EUR: the prices "
          "of a device for an hour"};
}

// The shortest text that reads as the same number.
std::string number_text(double value) {
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  CHECK(written.ec == std::errc());
  return {text.data(), written.ptr};
}

Result<double> parse_price(std::string_view pool, std::string_view text) {
  double price = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, price);
  // A comparison with NaN is false.
  if (read.ec == std::errc() && read.ptr == end && price >= 0 && price <= kPriceMax) return price;
  return pricing_error("`" + visible(text, Lines::kOne) + "` is no price of " + std::string(pool) +
                       ": a price is a number from 0 to a million");
}

}  // namespace

bool is_currency(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && text.size() <= kCurrencyBytesMax && std::ranges::all_of(text, is_letter);
}

Result<Pricing> parse_pricing(std::string_view text) {
  Pricing prices;
  std::set<std::string_view> given;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::string_view name = word.substr(0, word.find('='));
    const std::string_view value = word.substr(std::min(name.size() + 1, word.size()));
    if (!given.insert(name).second)
      return pricing_error("`" + visible(name, Lines::kOne) + "` is given twice");
    if (name == "rollout" || name == "learner") {
      const auto price = parse_price(name, value);
      if (!price) return price.error();
      (name == "rollout" ? prices.rollout : prices.learner) = *price;
    } else if (name != "currency") {
      return pricing_error("`" + visible(word, Lines::kOne) +
                           "` is no price: the pools are rollout and learner");
    } else if (!is_currency(value)) {
      return pricing_error("`" + visible(value, Lines::kOne) +
                           "` is no currency: it is a word of at most 16 letters");
    } else {
      prices.currency = value;
    }
  }
  for (const char* pool : {"rollout", "learner"})
    if (!given.contains(pool)) return pricing_error("there is no price of " + std::string(pool));
  return prices;
}

std::string text_of(const Pricing& prices) {
  return "rollout=" + number_text(prices.rollout) + ",learner=" + number_text(prices.learner) +
         ",currency=" + prices.currency;
}

double devices_of(double gpus) { return gpus > 0 ? gpus : 1; }

double cost_of(const DeviceSeconds& used, const Pricing& prices) {
  return (used.rollout * prices.rollout + used.learner * prices.learner) / kSecondsPerHour;
}

double goodput(std::uint64_t tokens_trained, const DeviceSeconds& used) {
  return used.total() > 0 ? static_cast<double>(tokens_trained) / used.total() : 0;
}

void add_cost_point(std::deque<CostPoint>& newest, const CostPoint& point) {
  CHECK(newest.empty() || newest.back().steps < point.steps);
  newest.push_back(point);
  if (newest.size() > kCostSteps + 1) newest.pop_front();
}

std::optional<double> cost_per_step(const std::deque<CostPoint>& newest, const Pricing& prices) {
  if (newest.empty()) return std::nullopt;
  const CostPoint from = newest.size() > 1 ? newest.front() : CostPoint{};
  const CostPoint& to = newest.back();
  if (to.steps <= from.steps) return std::nullopt;
  return (cost_of(to.used, prices) - cost_of(from.used, prices)) /
         static_cast<double>(to.steps - from.steps);
}

}  // namespace tandem::scheduler
