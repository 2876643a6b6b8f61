// The nearest change is found by trial: the job with a change is placed on empty nodes, until it
// fits. A share of a node's memory is searched among whole hundredths, and among thousandths below
// one hundredth. Pages, and with them the reserved memory, rise with the share, so the largest
// share that fits is found by halving. Each trial is a placement of the whole job, which takes
// milliseconds for thousands of actors.
#include "scheduler/fleet/memory_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "scheduler/fleet/placement.h"

namespace tandem::scheduler {
namespace {

constexpr int kThousandths = 1000;
constexpr std::int64_t kMebibyteBytes = std::int64_t{1} << 20;

std::int64_t largest_memory(std::span<const NodeCapacity> nodes) {
  std::int64_t most = 0;
  for (const NodeCapacity& node : nodes) {
    if (node.total.memory_bytes <= 0) return 0;  // one node announces none: the size is not known
    most = std::max(most, node.total.memory_bytes);
  }
  return most;
}

bool has_plan(const MemoryDemand& demand) { return !demand.rows.empty() || demand.paged; }

bool enough_pages(const MemoryDemand& demand) {
  return !demand.paged || demand.paged->pages >= demand.paged->pages_min;
}

bool fits_with_memory(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles) {
  const auto enough = [](const RoleDemand& role) { return enough_pages(role.memory); };
  return std::ranges::all_of(roles, enough) && place(nodes, gangs_of(roles, "job")).index() == 0;
}

std::string share_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", share);
  return text;
}

// The shares below `share` that are worth a try, ascending: 0.001 … 0.009, then 0.01, 0.02, ….
std::vector<double> smaller_shares(double share) {
  std::vector<double> shares;
  for (int n = 1; n < kThousandths; n += n < 10 ? 1 : 10)
    if (const double candidate = n / double{kThousandths}; candidate < share)
      shares.push_back(candidate);
  return shares;
}

// The smallest share that gives a rank the pages that it needs, rounded up to the steps of
// smaller_shares(); at most 1.
double share_needed(const PagedMemory& paged, std::int64_t node_bytes) {
  const double bytes = static_cast<double>(paged.pages_min * paged.page_bytes) * paged.sharers;
  const double share = bytes / static_cast<double>(std::max<std::int64_t>(node_bytes, 1));
  const double unit = share < 0.01 ? kThousandths : kThousandths / 10.0;
  return std::min(1.0, std::ceil(share * unit) / unit);
}

// A copy of the roles that is changed and placed. Trials do not affect each other.
class Trial {
 public:
  Trial(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles)
      : nodes_(nodes), roles_(roles.begin(), roles.end()) {}

  void apply(const MemoryOption& option) {
    for (RoleDemand& role : roles_)
      if (const auto changed = option.demand.find(role.role); changed != option.demand.end())
        role.memory = changed->second;
    settle_memory(roles_, nodes_);
  }
  bool fits() const { return fits_with_memory(nodes_, roles_); }

  // "rollout.gpu_memory_utilization=0.03"; none where no smaller share helps.
  std::optional<std::string> nearest_share() {
    const auto role = std::ranges::find_if(
        roles_, [](const RoleDemand& r) { return r.memory.paged.has_value(); });
    if (role == roles_.end()) return std::nullopt;
    PagedMemory& paged = *role->memory.paged;
    const double asked = paged.share;
    const auto fits_with = [&](double share) {
      paged.share = share;
      settle_memory(roles_, nodes_);
      return fits();
    };
    // The share that was asked for is too small for the rank itself: only a larger one can help.
    if (const double needed = share_needed(paged, largest_memory(nodes_)); needed > asked)
      return fits_with(needed) ? std::optional(setting(paged)) : std::nullopt;
    std::vector<double> shares = smaller_shares(asked);
    std::erase_if(shares, [&, least = share_needed(paged, largest_memory(nodes_))](double share) {
      return share < least;
    });
    // Shares that fit come before those that do not, because memory rises with the share.
    const auto too_large = std::ranges::partition_point(shares, fits_with);
    if (too_large == shares.begin()) return std::nullopt;
    paged.share = *std::prev(too_large);
    return setting(paged);
  }

 private:
  static std::string setting(const PagedMemory& paged) {
    return paged.share_key + "=" + share_text(paged.share);
  }

  std::span<const NodeCapacity> nodes_;
  std::vector<RoleDemand> roles_;
};

std::optional<std::string> nearest_share(std::span<const NodeCapacity> nodes,
                                         std::span<const RoleDemand> roles) {
  return Trial(nodes, roles).nearest_share();
}

std::optional<std::string> nearest_single_option(std::span<const NodeCapacity> nodes,
                                                 std::span<const RoleDemand> roles,
                                                 std::span<const MemoryOption> options) {
  for (const MemoryOption& option : options) {
    if (option.changes > 1) continue;
    Trial trial(nodes, roles);
    trial.apply(option);
    if (trial.fits()) return option.setting;
  }
  return std::nullopt;
}

std::optional<std::string> nearest_option(std::span<const NodeCapacity> nodes,
                                          std::span<const RoleDemand> roles,
                                          std::span<const MemoryOption> options) {
  for (const MemoryOption& option : options) {
    Trial trial(nodes, roles);
    trial.apply(option);
    if (trial.fits()) return option.setting;
    if (const auto share = trial.nearest_share()) return option.setting + " and " + *share;
  }
  return std::nullopt;
}

std::int64_t mebibytes_up(std::int64_t bytes) {
  return (bytes + kMebibyteBytes - 1) / kMebibyteBytes;
}

// How many MiB, in place of the largest node's memory, would make the job fit as it is. The number
// is found by halving between the present size and the sum of all ranks' greatest needs; the job's
// pages grow with the node.
std::int64_t node_mebibytes_needed(std::span<const NodeCapacity> nodes,
                                   std::span<const RoleDemand> asked) {
  std::vector<NodeCapacity> changed(nodes.begin(), nodes.end());
  NodeCapacity& node = *std::ranges::max_element(
      changed, {}, [](const NodeCapacity& n) { return n.total.memory_bytes; });
  std::vector<RoleDemand> roles(asked.begin(), asked.end());
  std::int64_t all = 0;
  for (const RoleDemand& role : roles) {
    MemoryDemand most = role.memory;
    // Unknown memory gives every rank all pages that it could ever use: an upper bound.
    settle_pages(most, 0);
    all += std::max(role.per_rank.memory_bytes, reserved_bytes(most)) * role.replicas * role.ranks;
  }
  std::int64_t too_little = mebibytes_up(node.total.memory_bytes);
  std::int64_t enough = std::max(too_little + 1, mebibytes_up(all));
  while (enough - too_little > 1) {
    const std::int64_t half = too_little + (enough - too_little) / 2;
    node.total.memory_bytes = node.free.memory_bytes = half * kMebibyteBytes;
    settle_memory(roles, changed);
    (fits_with_memory(changed, roles) ? enough : too_little) = half;
  }
  return enough;
}

}  // namespace

void settle_memory(std::span<RoleDemand> roles, std::span<const NodeCapacity> nodes) {
  for (RoleDemand& role : roles) {
    if (!has_plan(role.memory)) continue;
    settle_pages(role.memory, largest_memory(nodes));
    role.per_rank.memory_bytes = reserved_bytes(role.memory);
  }
}

std::string memory_table_of(std::span<const RoleDemand> roles) {
  std::vector<RoleMemory> planned;
  for (const RoleDemand& role : roles)
    planned.push_back({role.role, std::int64_t{role.replicas} * role.ranks, role.memory});
  return memory_table(planned);
}

Result<void> check_pages(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles,
                         std::span<const MemoryOption> options) {
  const auto few = std::ranges::find_if(
      roles, [](const RoleDemand& role) { return !enough_pages(role.memory); });
  if (few == roles.end()) return {};
  const PagedMemory& paged = *few->memory.paged;
  std::optional<std::string> nearest = nearest_share(nodes, roles);
  if (!nearest) nearest = nearest_option(nodes, roles, options);
  return Error{ErrorCode::kInfeasible,
               "one sequence of the greatest length needs " +
                   mebibytes_text(paged.pages_min * paged.page_bytes) + " of " + paged.name +
                   ", and each " + few->role + " may take " +
                   mebibytes_text(paged_bytes(few->memory)) + " of the largest node's " +
                   mebibytes_text(largest_memory(nodes)),
               paged.share_key,
               nearest ? "with " + *nearest + " it would fit"
                       : "use a node with more memory, or lower data.max_response_length"};
}

bool memory_is_short(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles) {
  std::vector<RoleDemand> weightless(roles.begin(), roles.end());
  for (RoleDemand& role : weightless) role.per_rank.memory_bytes = 0;
  return place(nodes, gangs_of(weightless, "job")).index() == 0;
}

Error memory_refusal(std::span<const NodeCapacity> nodes, std::span<const RoleDemand> roles,
                     std::span<const MemoryOption> options, MemoryShortage shortage) {
  std::optional<std::string> nearest = nearest_share(nodes, roles);
  if (!nearest) nearest = nearest_single_option(nodes, roles, options);
  if (!nearest) nearest = std::move(shortage.counts);
  if (!nearest) nearest = nearest_option(nodes, roles, options);
  const std::string node = std::to_string(node_mebibytes_needed(nodes, roles)) + " MiB";
  const std::string help =
      nearest ? "with " + *nearest + " it would fit, or with a node that offers " + node
              : "no smaller setting is enough: it needs a node that offers " + node +
                    " (`tandem node --memory`), or a smaller model";
  std::string message = std::move(shortage.message);
  if (std::string table = memory_table_of(roles); !table.empty()) {
    table.pop_back();  // the last newline
    message += "\nmemory of each rank:\n" + table;
  }
  return {ErrorCode::kInfeasible, std::move(message), "", help};
}

}  // namespace tandem::scheduler
