#include "scheduler/fleet/sizing.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

double supply_per_s(const Rates& rates, std::int64_t instances) {
  CHECK(rates.consumed_per_s > 0 && rates.instance_per_s > 0 && instances > 0);
  return static_cast<double>(instances) * rates.instance_per_s;
}

}  // namespace

std::int64_t matched_instances(const Rates& rates, double headroom) {
  CHECK(rates.consumed_per_s > 0 && rates.instance_per_s > 0 && headroom > 0 && headroom <= 1);
  return static_cast<std::int64_t>(
      std::ceil(rates.consumed_per_s / (rates.instance_per_s * headroom)));
}

double trainer_idle_fraction(const Rates& rates, std::int64_t instances) {
  return std::max(0.0, 1.0 - supply_per_s(rates, instances) / rates.consumed_per_s);
}

double rollout_idle_fraction(const Rates& rates, std::int64_t instances) {
  return std::max(0.0, 1.0 - rates.consumed_per_s / supply_per_s(rates, instances));
}

double backlog_per_s(const Rates& rates, std::int64_t instances) {
  return std::max(0.0, supply_per_s(rates, instances) - rates.consumed_per_s);
}

double completions_per_s(const Replicas& replicas) {
  CHECK(replicas.seconds > 0);
  return static_cast<double>(replicas.count * replicas.completions) / replicas.seconds;
}

double seconds_to_complete(const Replicas& replicas, std::int64_t completions) {
  return static_cast<double>(completions) / completions_per_s(replicas);
}

}  // namespace tandem::scheduler
