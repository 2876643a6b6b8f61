#include "actors/timeline/trace_rows.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include "actors/messages/roles.h"
#include "runtime/base/check.h"

namespace tandem::timeline {
namespace {

constexpr std::int64_t kOthersProcess = 20;  // where those of other roles begin
constexpr std::int64_t kOrdersOfOne = 1000;  // places for the lanes of one name

// Actors stand in the order of their numbers, so that rollout/10 comes behind rollout/9.
std::int64_t order_of(const std::string& name, std::size_t otherwise) {
  std::int64_t number = 0;
  const std::string_view digits = std::string_view(name).substr(name.rfind('/') + 1);
  const auto [stop, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = failure == std::errc{} && stop == digits.data() + digits.size();
  return (is_number ? number : static_cast<std::int64_t>(otherwise)) * kOrdersOfOne;
}

}  // namespace

std::string short_name(const std::string& actor) {
  const std::size_t number = actor.rfind('/');
  if (number == std::string::npos || number == 0) return actor;
  const std::size_t role = actor.rfind('/', number - 1);
  return role == std::string::npos ? actor : actor.substr(role + 1);
}

// The processes of the roles that train stand in the order in which actors are placed.
std::int64_t TraceRows::process(const TracePool& pool) {
  const auto [at, is_new] = processes_.try_emplace(pool, 0);
  if (!is_new) return at->second;
  const auto role = std::ranges::find(messages::kTrainingRoles, pool, &messages::Role::text);
  const bool trains = role != std::end(messages::kTrainingRoles);
  if (pool == kRunPool)
    at->second = 1;
  else if (pool == kGroupsPool)
    at->second = kGroupsProcess;
  else if (trains)
    at->second = 2 + std::distance(std::begin(messages::kTrainingRoles), role);
  else
    at->second = kOthersProcess + static_cast<std::int64_t>(processes_.size());
  const bool is_role = pool != kRunPool && pool != kGroupsPool;
  name({at->second, 0}, "process", is_role ? pool + " pool" : pool, at->second);
  return at->second;
}

void TraceRows::name(TraceRow row, const std::string& kind, const std::string& shown,
                     std::int64_t order) {
  window_.metadata({.name = kind + "_name", .row = row, .arguments = {{"name", shown}}});
  window_.metadata(
      {.name = kind + "_sort_index", .row = row, .arguments = {{"sort_index", order}}});
}

TracePool pool_of(const std::string& short_name) {
  const std::size_t end = short_name.find('/');
  return end == std::string::npos ? kRunPool : short_name.substr(0, end);
}

TraceRow TraceRows::make(const Named& named, const std::string& shown, std::int64_t order) {
  const TraceRow row{process(named.pool), ++threads_};
  name(row, "thread", shown, order);
  return row;
}

std::size_t TraceRows::find(const TracePool& pool, const std::string& name) {
  const auto [at, is_new] = by_name_.try_emplace({pool, name}, named_.size());
  if (is_new)
    named_.push_back({.pool = pool, .name = name, .order = order_of(name, named_.size())});
  return at->second;
}

TraceRow TraceRows::row(const TracePool& pool, const std::string& name) {
  Named& named = named_[find(pool, name)];
  if (named.row.process == 0) named.row = make(named, named.name, named.order);
  return named.row;
}

std::optional<TraceLane> TraceRows::take(const TracePool& pool, const std::string& name) {
  const std::size_t owner = find(pool, name);
  Named& named = named_[owner];
  const auto lane = static_cast<std::size_t>(
      std::distance(named.taken.begin(), std::ranges::find(named.taken, false)));
  if (lane == kLanesMax) return std::nullopt;
  if (lane == named.taken.size()) {
    const std::string shown = named.name + ", lane " + std::to_string(lane + 1);
    named.lanes.push_back(make(named, shown, named.order + 1 + static_cast<std::int64_t>(lane)));
    named.taken.push_back(false);
  }
  named.taken[lane] = true;
  return TraceLane{named.lanes[lane], owner, lane};
}

void TraceRows::give_back(const TraceLane& lane) {
  CHECK(named_[lane.owner].taken[lane.lane]);
  named_[lane.owner].taken[lane.lane] = false;
}

}  // namespace tandem::timeline
