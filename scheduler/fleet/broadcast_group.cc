// Events only note what has happened and queue Leaves; decide() alone returns orders, so that an
// order never outlives a later event of the same turn. An epoch is moved from forming_ to in_use_
// to previous_, or ended by end(), the one place that asks its ranks to leave (BG-3).
//
// Easy to get wrong: an actor may end at any moment between two calls. forget() drops every order
// that is queued for it, and every event names an incarnation and an epoch, which are compared with
// the present ones before the event has any effect (BG-5).
#include "scheduler/fleet/broadcast_group.h"

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

namespace tandem::scheduler {
namespace {

std::string broadcast_seconds(Duration time) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.0f s", seconds(time));
  return buffer;
}

std::string names(const std::vector<ActorId>& peers) {
  std::string text;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (i > 0) text += i + 1 == peers.size() ? " and " : ", ";
    text += peers[i].name;
  }
  return text;
}

std::string epoch_text(std::uint64_t number) { return "epoch " + std::to_string(number); }

std::string nccl_text(int version) {  // for NCCL 2.9 or later
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

bool BroadcastGroup::Group::has(const ActorId& peer) const {
  return peer == learner || std::ranges::find(members, peer) != members.end();
}

std::vector<ActorId> BroadcastGroup::Group::absent() const {
  std::vector<ActorId> peers;
  for (const ActorId& member : members)
    if (!joined.contains(member)) peers.push_back(member);
  if (!joined.contains(learner)) peers.push_back(learner);
  return peers;
}

BroadcastGroup::Actor* BroadcastGroup::find(const ActorId& peer) {
  if (learner_ && learner_->peer == peer) return &*learner_;
  const auto found = members_.find(peer.name);
  return found != members_.end() && found->second.peer == peer ? &found->second : nullptr;
}

void BroadcastGroup::learner_up(const ActorId& learner, int nccl_version) {
  const auto ended = ended_.find(learner.name);
  if (ended != ended_.end() && ended->second == learner.incarnation) return;
  if (learner_ && learner_->peer == learner) return;
  // A copy of the name: gone() destroys the learner that holds it.
  if (learner_) gone(std::string(learner_->peer.name));
  learner_ = Actor{.peer = learner, .nccl_version = nccl_version};
  // The new learner clears all blame: it may itself have been the cause.
  for (auto& [name, member] : members_) {
    member.proven = false;
    member.noticed = member.failures = 0;
  }
  tried_max_ = SIZE_MAX;
  failures_ = 0;
  backoff_until_ = {};
}

void BroadcastGroup::member_up(const ActorId& member, int nccl_version) {
  const auto ended = ended_.find(member.name);
  if (ended != ended_.end() && ended->second == member.incarnation) return;
  const auto found = members_.find(member.name);
  if (found != members_.end() && found->second.peer == member) return;
  if (found != members_.end()) gone(member.name);
  members_.insert_or_assign(member.name, Actor{.peer = member, .nccl_version = nccl_version});
}

void BroadcastGroup::forget(const ActorId& peer) {
  // An event that was sent before the end may arrive after it: `ended_` keeps it from reviving the
  // actor.
  ended_[peer.name] = peer.incarnation;
  if (learner_ && learner_->peer == peer)
    learner_.reset();
  else
    members_.erase(peer.name);
  std::erase_if(leaves_, [&](const LeaveOrder& leave) { return leave.to == peer; });
}

void BroadcastGroup::gone(const std::string& actor) {
  const auto found = members_.find(actor);
  const bool learner = learner_ && learner_->peer.name == actor;
  if (!learner && found == members_.end()) return;
  const ActorId peer = learner ? learner_->peer : found->second.peer;
  // The actor is forgotten first, so that end() queues no Leave for it (BG-5).
  forget(peer);
  const std::string why = (learner ? "the learner " : "") + actor + " is gone";
  if (forming_ && forming_->has(peer)) end(forming_, why);
  if (in_use_ && in_use_->has(peer)) end(in_use_, why);
  // The Leaves of that epoch have been queued; only the record of its members ends.
  if (learner) previous_.reset();
}

void BroadcastGroup::leaves(const std::string& actor) {
  if (learner_ && learner_->peer.name == actor) learner_->leaves = true;
  const auto found = members_.find(actor);
  if (found != members_.end()) found->second.leaves = true;
}

// Asks the ranks that were asked into it to leave, those whose incarnation goes on.
void BroadcastGroup::end(std::optional<Group>& group, const std::string& why) {
  const auto leave = [&](const ActorId& peer) {
    if (find(peer)) leaves_.push_back({.to = peer, .epoch = group->number, .why = why});
  };
  leave(group->learner);
  // Before kJoining no member has been asked, and a member that was not asked must get no Leave
  // (BG-3).
  if (group->phase != Phase::kOpening && group->phase != Phase::kInviting)
    std::ranges::for_each(group->members, leave);
  group.reset();
}

void BroadcastGroup::opened(const ActorId& from, std::uint64_t epoch) {
  if (!forming_ || forming_->number != epoch || forming_->learner != from) return;
  if (forming_->phase == Phase::kOpening) forming_->phase = Phase::kInviting;
}

void BroadcastGroup::joined(const ActorId& from, std::uint64_t epoch) {
  if (!forming_ || forming_->number != epoch || !forming_->has(from)) return;
  if (forming_->phase != Phase::kInviting && forming_->phase != Phase::kJoining) return;
  // The learner joins when it has opened, perhaps before any member was invited.
  forming_->joined.insert(from);
  if (forming_->phase == Phase::kJoining && forming_->absent().empty())
    forming_->phase = Phase::kJoined;
}

void BroadcastGroup::in_use(const ActorId& from, std::uint64_t epoch) {
  if (!forming_ || forming_->number != epoch || forming_->learner != from) return;
  if (forming_->phase != Phase::kSwitching) return;
  previous_.reset();
  if (in_use_) {
    // A copy is kept, since takes_part() is asked about members that have not left yet.
    previous_ = in_use_;
    end(in_use_, epoch_text(epoch) + " is in use");
  }
  in_use_ = std::exchange(forming_, std::nullopt);
  in_use_->phase = Phase::kInUse;
  in_use_->joined.clear();
  learner_->proven = true;
  for (const ActorId& peer : in_use_->members) {
    Actor& member = *find(peer);
    member.proven = true;
    member.noticed = member.failures = 0;
  }
  // The members of this epoch are proven; the next one may try twice as many others.
  tried_max_ = tried_max_ > SIZE_MAX / 2 ? SIZE_MAX : tried_max_ * 2;
  backoff_until_ = {};
}

void BroadcastGroup::failed(const ActorId& from, std::uint64_t epoch, const std::string& why,
                            Time now) {
  const std::string reason = from.name + " failed in " + epoch_text(epoch) + ": " + why;
  const auto is = [&](const std::optional<Group>& group) {
    return group && group->number == epoch && group->has(from);
  };
  // The previous epoch's ranks have been asked to leave already; no broadcast reaches them any
  // more.
  if (is(previous_)) previous_.reset();
  if (is(forming_)) {
    blame({from}, why);
    count_failure(now);
    end(forming_, reason);
  } else if (is(in_use_)) {
    if (now - in_use_->since >= limits_.backoff_max) failures_ = 0;  // it has worked
    count_failure(now);
    end(in_use_, reason);
  }
}

void BroadcastGroup::left(const ActorId& from, std::uint64_t epoch) {
  if (Actor* const actor = find(from)) actor->owes.erase(epoch);
  if (previous_ && previous_->number == epoch) previous_->joined.insert(from);
}

void BroadcastGroup::count_failure(Time now) {
  Duration wait = limits_.backoff;
  // The loop ends at backoff_max, so that the product cannot overflow.
  for (int i = 0; i < failures_ && wait < limits_.backoff_max; ++i) wait *= 2;
  ++failures_;
  backoff_until_ = now + std::min(wait, limits_.backoff_max);
}

// Records an epoch that did not form. `noticed` are the ranks that failed first or did not join.
// See Blame in the header.
void BroadcastGroup::blame(std::vector<ActorId> noticed, const std::string& why) {
  if (forming_->phase <= Phase::kInviting) return;  // no member was asked
  failed_epoch_ = forming_->number;
  for (const ActorId& peer : noticed) ++find(peer)->noticed;
  std::vector<Actor*> unproven;
  for (const ActorId& peer : forming_->members)
    if (Actor* const member = find(peer); !member->proven) unproven.push_back(member);
  if (unproven.empty()) {  // one that worked before no longer does: all must prove themselves again
    learner_->proven = false;
    for (const ActorId& peer : forming_->members) find(peer)->proven = false;
    tried_max_ = std::max<std::size_t>(1, forming_->members.size() / 2);
    return;
  }
  tried_max_ = std::max<std::size_t>(1, unproven.size() / 2);
  if (unproven.size() > 1 || !learner_->proven) return;
  ++unproven.front()->failures;
  unproven.front()->last_failure = why;
}

bool BroadcastGroup::eligible(const Actor& member) const {
  return !member.leaves && learner_ && member.nccl_version == learner_->nccl_version &&
         member.failures < limits_.failures_max;
}

std::vector<const BroadcastGroup::Actor*> BroadcastGroup::wanted() const {
  std::vector<const Actor*> found;
  for (const auto& [name, member] : members_)
    if (eligible(member) && member.owes.empty()) found.push_back(&member);
  return found;
}

// Whether the wanted members differ from those in use. A member in use that still owes the answer
// to the Leave of an earlier epoch is no change.
bool BroadcastGroup::changed() const {
  return std::ranges::any_of(members_, [this](const auto& entry) {
    const Actor& member = entry.second;
    const bool uses = in_use_ && in_use_->has(member.peer);
    return uses ? !eligible(member) : eligible(member) && member.owes.empty();
  });
}

std::vector<ActorId> BroadcastGroup::choose() const {
  std::vector<ActorId> chosen;
  std::vector<const Actor*> unproven;
  // A rank that owes an answer explains the last failure, so the others are not halved.
  bool hung = false;
  for (const auto& [name, member] : members_) hung = hung || member.owes.contains(failed_epoch_);
  for (const Actor* const member : wanted()) {
    if (member->proven)
      chosen.push_back(member->peer);
    else
      unproven.push_back(member);
  }
  std::ranges::sort(unproven, {}, [](const Actor* member) {
    return std::tuple(member->failures, member->noticed, member->peer);
  });
  if (!hung && unproven.size() > tried_max_) unproven.resize(tried_max_);
  for (const Actor* const member : unproven) chosen.push_back(member->peer);
  // Sorted, so that ranks follow from names alone.
  std::ranges::sort(chosen);
  return chosen;
}

std::optional<Time> BroadcastGroup::opens_at() const {
  if (forming_ || !learner_ || learner_->leaves || !learner_->owes.empty()) return std::nullopt;
  if (!changed() || wanted().empty()) return std::nullopt;
  Time at = backoff_until_;
  for (const auto& [name, member] : members_) {
    if (!eligible(member)) continue;
    // Members that owe answers get `settle` to give them: without them the epoch would soon have to
    // be replaced.
    for (const auto& [epoch, since] : member.owes) at = std::max(at, since + limits_.settle);
  }
  return at;
}

void BroadcastGroup::check_deadline(Time now) {
  if (!forming_ || forming_->phase > Phase::kJoining) return;
  if (now - forming_->since < limits_.forming_max) return;
  const bool unopened = forming_->phase == Phase::kOpening;
  const std::string why = epoch_text(forming_->number) + " did not form within " +
                          broadcast_seconds(limits_.forming_max) + ": " +
                          (unopened ? "the learner " + forming_->learner.name + " had not opened it"
                                    : names(forming_->absent()) + " had not joined");
  blame(forming_->absent(), why);
  count_failure(now);
  end(forming_, why);
}

void BroadcastGroup::open(Time now, std::vector<BroadcastOrder>& orders) {
  forming_ =
      Group{.number = ++last_epoch_, .learner = learner_->peer, .members = choose(), .since = now};
  orders.push_back(OpenOrder{.to = learner_->peer,
                             .epoch = last_epoch_,
                             .size = static_cast<int>(forming_->members.size()) + 1});
}

std::vector<BroadcastOrder> BroadcastGroup::decide(Time now) {
  std::vector<BroadcastOrder> orders;
  check_deadline(now);
  for (LeaveOrder& leave : std::exchange(leaves_, {})) {
    // The answer is owed from now on, when the order is sent; find() succeeds because forget()
    // dropped the orders of actors that ended.
    find(leave.to)->owes.emplace(leave.epoch, now);
    orders.push_back(std::move(leave));
  }
  if (const auto at = opens_at(); at && *at <= now) open(now, orders);
  if (!forming_) return orders;
  if (forming_->phase == Phase::kInviting) {
    forming_->phase = Phase::kJoining;
    for (int rank = 1; const ActorId& member : forming_->members)
      orders.push_back(JoinOrder{.to = member,
                                 .epoch = forming_->number,
                                 .rank = rank++,
                                 .size = static_cast<int>(forming_->members.size()) + 1});
  }
  if (forming_->phase == Phase::kJoined) {
    forming_->phase = Phase::kSwitching;
    forming_->since = now;
    orders.push_back(UseOrder{.to = forming_->learner, .epoch = forming_->number});
  }
  return orders;
}

std::optional<Time> BroadcastGroup::next_deadline() const {
  if (forming_ && forming_->phase <= Phase::kJoining) return forming_->since + limits_.forming_max;
  return opens_at();
}

bool BroadcastGroup::takes_part(const ActorId& member, std::uint64_t epoch) const {
  const auto reaches = [&](const std::optional<Group>& group) {
    return group && group->number == epoch && group->has(member) && member != group->learner;
  };
  const auto up = members_.find(member.name);
  if (up == members_.end() || up->second.peer != member) return false;
  return reaches(in_use_) || (reaches(forming_) && forming_->phase == Phase::kSwitching) ||
         (reaches(previous_) && !previous_->joined.contains(member));
}

std::optional<std::uint64_t> BroadcastGroup::epoch_in_use() const {
  return in_use_ ? std::optional(in_use_->number) : std::nullopt;
}

std::string BroadcastGroup::left_out(const Actor& member, Time now) const {
  const std::string& name = member.peer.name;
  if (member.leaves) return name + " is in no further epoch, because it drains.";
  if (member.nccl_version != learner_->nccl_version)
    return name + " takes no part, because it has NCCL " + nccl_text(member.nccl_version) +
           " and the learner has NCCL " + nccl_text(learner_->nccl_version) + ".";
  if (member.failures >= limits_.failures_max)
    return name + " takes no part until it is restarted, because it failed " +
           std::to_string(member.failures) +
           " times in a row; the last time: " + member.last_failure + ".";
  if (!member.owes.empty())
    return name + " has not answered for " + broadcast_seconds(now - member.owes.begin()->second) +
           " that it left " + epoch_text(member.owes.begin()->first) +
           "; it is asked into no epoch before.";
  return name + " takes no part yet.";
}

std::optional<std::string> BroadcastGroup::awaited(Time now) const {
  if (!forming_) {
    if (learner_->leaves) return "No further epoch is formed, because the learner drains.";
    if (!learner_->owes.empty())
      return "No epoch is formed before " + learner_->peer.name + " answers that it left " +
             epoch_text(learner_->owes.begin()->first) + "; it has not for " +
             broadcast_seconds(now - learner_->owes.begin()->second) + ".";
    const auto at = opens_at();
    if (!at || *at <= now) return std::nullopt;
    return "The next epoch is tried in " + broadcast_seconds(*at - now) +
           (failures_ > 0 ? ", after " + std::to_string(failures_) + " failures in a row." : ".");
  }
  const std::string since = broadcast_seconds(now - forming_->since);
  const std::string number = epoch_text(forming_->number);
  if (forming_->phase == Phase::kOpening)
    return "The learner " + forming_->learner.name + " is to open " + number + " since " + since +
           ".";
  if (forming_->phase >= Phase::kJoined)
    return "The learner " + forming_->learner.name + " is to use " + number + " since " + since +
           ".";
  return "Since " + since + " it is awaited that " + names(forming_->absent()) + " join " + number +
         ".";
}

std::vector<std::string> BroadcastGroup::explain(Time now) const {
  if (!learner_) return {"No weights are broadcast, because no learner with NCCL is up."};
  std::vector<std::string> lines;
  if (in_use_)
    lines.push_back(names(in_use_->members) + " get broadcasts of " + learner_->peer.name + " in " +
                    epoch_text(in_use_->number) + ".");
  else
    lines.push_back("No epoch is in use; each rollout fetches its weights.");
  for (const auto& [name, member] : members_) {
    const bool uses = in_use_ && in_use_->has(member.peer);
    const bool forms = forming_ && forming_->has(member.peer);
    if (!eligible(member) || !(uses || forms)) lines.push_back(left_out(member, now));
  }
  if (const auto line = awaited(now)) lines.push_back(*line);
  return lines;
}

}  // namespace tandem::scheduler
