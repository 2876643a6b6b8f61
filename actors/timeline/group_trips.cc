// A trip collects its states, each with begin and end, and is put out as one piece: first the begin
// of the whole, then every state that lasted, then the end. In this order viewers nest the states
// into the trip, also where times are equal.
#include "actors/timeline/group_trips.h"

#include <algorithm>
#include <utility>

namespace tandem::timeline {

using scheduler::GroupState;

namespace {

constexpr const char* kTripCategory = "group";
// Where a trip's rows are: viewers make a row for each span that overlaps others.
constexpr TraceRow kTripRow{kGroupsProcess, 0};

std::int64_t number(GroupId group) { return static_cast<std::int64_t>(group.value); }

}  // namespace

GroupTrips::Trip& GroupTrips::find(GroupId group, GroupState state, TraceTime now) {
  const auto [at, is_new] = trips_.try_emplace(group);
  Trip& trip = at->second;
  if (is_new) {
    trip.state = state;
    trip.begun = trip.since = now;
    ++counts_[static_cast<std::size_t>(state)];
  }
  return trip;
}

void GroupTrips::move(Trip& trip, GroupState state, TraceTime now) {
  if (now > trip.since) {
    if (trip.parts.size() == kTripPartsMax) trip.parts.erase(trip.parts.begin());
    trip.parts.push_back({trip.state, trip.since, now});
  }
  --counts_[static_cast<std::size_t>(trip.state)];
  ++counts_[static_cast<std::size_t>(state)];
  trip.state = state;
  trip.since = now;
}

void GroupTrips::end_lease(GroupId group, Trip& trip, TraceTime now, const char* how) {
  if (!trip.open) return;
  const OpenLease open = *std::exchange(trip.open, std::nullopt);
  if (!open.lane) return;
  const bool generates = open.lease.state == GroupState::kRolling;
  TraceArguments facts{{"lease", static_cast<std::int64_t>(open.lease.id.value)},
                       {"ended", std::string(how)}};
  if (open.lease.version)
    facts.push_back({"version", static_cast<std::int64_t>(open.lease.version->value)});
  if (generates && trip.tokens > 0) facts.push_back({"tokens", trip.tokens});
  window_.span({.name = "group " + std::to_string(group.value),
                .category = generates ? "generate" : "score",
                .row = open.lane->row,
                .arguments = std::move(facts)},
               open.since, now);
  rows_.give_back(*open.lane);
}

void GroupTrips::enter(GroupId group, GroupState state, TraceTime now, const char* how) {
  Trip& trip = find(group, state, now);
  end_lease(group, trip, now, how);
  if (trip.state != state) move(trip, state, now);
  if (state == GroupState::kScored) trip.told.scored = now;
}

void GroupTrips::lease(GroupId group, TripLease lease, TraceTime now) {
  Trip& trip = find(group, lease.state, now);
  end_lease(group, trip, now, "leased anew");
  if (trip.state != lease.state) move(trip, lease.state, now);
  if (lease.state == GroupState::kRolling) {
    trip.told.rollout = lease.holder;
    trip.tokens = 0;
  }
  auto lane = rows_.take(pool_of(lease.holder), lease.holder);
  if (!lane) ++leases_not_shown_;
  trip.open = OpenLease{std::move(lease), lane, now};
}

void GroupTrips::adopt(GroupId group, std::string holder, scheduler::LeaseId id, TraceTime now) {
  const auto at = trips_.find(group);
  if (at == trips_.end() || at->second.open) return;
  const GroupState state = at->second.state;
  if (state == GroupState::kRolling || state == GroupState::kScoring)
    lease(group, {state, std::move(holder), id, std::nullopt}, now);
}

void GroupTrips::generated(GroupId group, PolicyVersion oldest, std::int64_t tokens) {
  const auto at = trips_.find(group);
  if (at == trips_.end()) return;
  at->second.told.oldest = oldest;
  at->second.tokens = tokens;
}

void GroupTrips::give_back(GroupId group, TraceTime now, const char* how) {
  const auto at = trips_.find(group);
  if (at == trips_.end()) return;
  const bool scored = at->second.state == GroupState::kScoring;
  enter(group, scored ? GroupState::kGenerated : GroupState::kAdmitted, now, how);
}

void GroupTrips::finish(GroupId group, TraceTime now, const char* how, TraceArguments more) {
  const auto at = trips_.find(group);
  if (at == trips_.end()) return;
  Trip& trip = at->second;
  end_lease(group, trip, now, how);
  move(trip, trip.state, now);
  --counts_[static_cast<std::size_t>(trip.state)];
  more.insert(more.begin(), {"ended", std::string(how)});
  put_out(group, trip, now, std::move(more));
  trips_.erase(at);
}

void GroupTrips::finish_all(TraceTime now, const char* how) {
  while (!trips_.empty()) finish(trips_.begin()->first, now, how);
}

void GroupTrips::put_out(GroupId group, const Trip& trip, TraceTime now, TraceArguments facts) {
  const auto whole = window_.cut(trip.begun, now);
  if (!whole) return;
  const auto event = [&](const char* name) {
    return TraceEvent{.name = name, .category = kTripCategory, .row = kTripRow, .id = group.value};
  };
  TraceEvent first = event("group");
  first.arguments = {{"group", number(group)}};
  window_.begin(std::move(first), whole->first);
  for (const Part& part : trip.parts) {
    const auto shown = window_.cut(part.from, part.to);
    if (!shown) continue;
    window_.begin(event(name(part.state)), shown->first);
    window_.end(event(name(part.state)), shown->last);
  }
  if (!trip.told.rollout.empty()) facts.push_back({"rollout", trip.told.rollout});
  if (trip.told.oldest)
    facts.push_back({"oldest_version", static_cast<std::int64_t>(trip.told.oldest->value)});
  TraceEvent last = event("group");
  last.arguments = std::move(facts);
  window_.end(std::move(last), whole->last);
}

std::optional<GroupTrips::Told> GroupTrips::told(GroupId group) const {
  const auto at = trips_.find(group);
  if (at == trips_.end()) return std::nullopt;
  return at->second.told;
}

}  // namespace tandem::timeline
