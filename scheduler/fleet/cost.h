// What the devices of a job cost: device seconds of its two pools, their price, and the tokens that
// they train. Pure arithmetic; not responsible for when an actor is up.
//
// A device is one GPU. An actor with a share of a GPU has that share of a device, and an actor
// without a GPU is one device itself. Each rank of the learner counts as an actor.
//
// GP-1  Goodput and device seconds need no prices; without prices nothing has a cost.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::scheduler {

inline constexpr double kPriceMax = 1e6;
inline constexpr std::size_t kCurrencyBytesMax = 16;

// The prices of one device for an hour, by pool; from 0 to kPriceMax.
struct Pricing {
  double rollout = 0, learner = 0;
  std::string currency = "USD";
  bool operator==(const Pricing&) const = default;
};
// A currency is a word of 1 to kCurrencyBytesMax ASCII letters: "USD", "credits".
bool is_currency(std::string_view text);
// Reads "rollout=2.10,learner=4.00" with an optional ",currency=EUR", in any order.
Result<Pricing> parse_pricing(std::string_view text);
std::string text_of(const Pricing& prices);  // what parse_pricing() reads as the same prices

// The devices of an actor that reserves so many GPUs.
double devices_of(double gpus);

struct FleetDevices {
  double per_rollout = 1;  // of one rollout actor
  double learner = 1;      // of all ranks together
};

struct DeviceSeconds {
  double rollout = 0, learner = 0;
  double total() const { return rollout + learner; }
};
double cost_of(const DeviceSeconds& used, const Pricing& prices);
// Trained tokens per device second of both pools; 0 before a device was used.
double goodput(std::uint64_t tokens_trained, const DeviceSeconds& used);

// The device seconds that the run had used when so many steps were committed. A default one is the
// beginning of the run.
struct CostPoint {
  std::int64_t steps = 0;
  DeviceSeconds used;
};
// Costs of a step are means over so many of the newest steps.
inline constexpr std::size_t kCostSteps = 20;
// Adds a point, of more steps than the one before, and drops those that the mean leaves out.
void add_cost_point(std::deque<CostPoint>& newest, const CostPoint& point);
// The cost of a step: the mean over the steps between the first and the last of the points, or from
// the beginning of the run to the only one. nullopt: no step is committed.
std::optional<double> cost_per_step(const std::deque<CostPoint>& newest, const Pricing& prices);

}  // namespace tandem::scheduler
