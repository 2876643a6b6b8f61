// A group goes to the rollout with most room among those that may have it: the budget says for
// which installed versions a lease keeps every group trainable in time. The tokens of an answer lie
// in the payload store already; a payload that no group takes is released at once.
#include "actors/exchange/generation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "actors/exchange/admission.h"
#include "actors/exchange/checks.h"
#include "actors/exchange/discards.h"
#include "actors/exchange/evaluation_suspects.h"
#include "actors/exchange/quarantine.h"
#include "actors/exchange/run_end.h"
#include "actors/exchange/workers.h"
#include "actors/messages/group_tokens.h"

namespace tandem::exchange {

using scheduler::GroupState;
using scheduler::LeaseId;

namespace {

struct Choice {
  const WorkerFacts* rollout = nullptr;  // null: no rollout may have the group now
  PolicyVersion version;
};

enum class Room { kNeeded, kLater };  // kLater: also a rollout that is full, once it has room
using Allowed = std::function<bool(const WorkerFacts&)>;

Choice choose_rollout(const RunView& view, GroupId group, Room needed, const Allowed& allowed) {
  const GroupFlow& flow = view.facts.flow;
  const GroupFacts& facts = flow.entries.at(group);
  const auto kept_due = flow.ledger.find(group)->due;
  const std::int64_t n = view.config.n;
  Choice best;
  std::int64_t room_best = needed == Room::kNeeded ? n - 1 : -1;
  for (const auto& [name, worker] : view.facts.workers.rollouts()) {
    // Asked first, since it costs least: few rollouts have more room than all before them.
    const std::int64_t room = worker.capacity - flow.ledger.held_by(worker.who.incarnation) * n;
    if (room <= room_best) continue;
    // A rollout that has only the untrained weights, for an evaluation of them, generates nothing
    // to train.
    if (worker.draining || !is_here(view, worker.who) ||
        (!flow.fixed && worker.installed < PolicyVersion{0}) || !allowed(worker))
      continue;
    const PolicyVersion version =
        facts.slot ? scheduler::slot_version(view.config.budget, facts.slot->step)
                   : *worker.installed;
    // Under a fixed lag a group waits here, and not in an engine, until its version can be had.
    if (facts.slot && !view.facts.versions.offered.contains(version)) continue;
    if (scheduler::lease_verdict(view.config.budget, flow.ledger.budget_state(), version,
                                 kept_due) != scheduler::LeaseVerdict::kLease)
      continue;
    best = {&worker, version};
    room_best = room;
  }
  return best;
}

// One round of leases. Suspects are tried alone: first by a rollout that has generated something,
// so that its end would mean something, and such a rollout gets no other work until it is idle. A
// rollout for which there is nothing else takes a suspect as well.
class Leasing {
 public:
  explicit Leasing(Turn& turn) : turn_(turn), flow_(turn.facts.flow) {
    for (const GroupId group : flow_.suspects.isolated())
      if (flow_.ledger.find(group)->state == GroupState::kAdmitted) suspects_.push_back(group);
    if (const auto kept = kept_for_trial(turn.view())) closed_.insert(*kept);
    if (flow_.suspects.all().empty() && turn.seen.evaluation_suspects.all().empty()) return;
    for (const auto& [name, rollout] : turn.facts.workers.rollouts())
      if (tries_alone(turn.view(), rollout)) closed_.insert(name);
  }
  void try_suspects() {
    std::erase_if(suspects_, [&](GroupId group) {
      const auto has_worked = [&](const WorkerFacts& rollout) {
        return is_open(rollout) && turn_.seen.workers.by_actor.at(rollout.who.name).generated;
      };
      if (lease_alone(group, has_worked)) return true;
      const Choice later = choose_rollout(turn_.view(), group, Room::kLater, has_worked);
      if (later.rollout) closed_.insert(later.rollout->who.name);
      return false;
    });
  }
  void lease_others() {
    const auto& admitted = flow_.ledger.queue(GroupState::kAdmitted);
    for (auto next = admitted.begin(); next != admitted.end();) {
      const GroupId group = (next++)->second;
      if (flow_.suspects.is_isolated(group)) continue;
      const Choice choice = choose_rollout(turn_.view(), group, Room::kNeeded,
                                           [&](const auto& rollout) { return is_open(rollout); });
      if (!choice.rollout) return;  // the groups behind it are due later, and wait as well
      lease(group, choice);
    }
  }
  void try_suspects_of_idle_rollouts() {
    for (const GroupId group : suspects_)
      lease_alone(group, [&](const auto& rollout) { return is_open(rollout); });
  }
  void send() {
    for (auto& [name, assignment] : assignments_)
      turn_.tell(assignment.first, std::move(assignment.second));
  }

 private:
  bool is_open(const WorkerFacts& rollout) const { return !closed_.contains(rollout.who.name); }
  bool lease_alone(GroupId group, const Allowed& allowed) {
    const Choice choice =
        choose_rollout(turn_.view(), group, Room::kNeeded, [&](const WorkerFacts& rollout) {
          return allowed(rollout) && is_idle(turn_.view(), rollout);
        });
    if (!choice.rollout) return false;
    closed_.insert(choice.rollout->who.name);
    lease(group, choice);
    return true;
  }
  void lease(GroupId group, const Choice& choice);

  Turn& turn_;
  const GroupFlow& flow_;
  std::vector<GroupId> suspects_;  // that are admitted and are to be tried alone
  std::set<std::string> closed_;   // rollouts that get no other group
  std::map<std::string, std::pair<ActorId, messages::Assign>> assignments_;
};

void Leasing::lease(GroupId group, const Choice& choice) {
  const ActorId holder = choice.rollout->who;
  const LeaseId lease = flow_.ledger.next_lease();
  turn_.record(RolloutLeased{group, lease, holder, choice.version});
  turn_.set_deadline({group, lease, turn_.config.epoch}, turn_.now + turn_.config.rollout_lease);
  const GroupFacts& facts = flow_.entries.at(group);
  messages::GroupWork work{
      .group = group,
      .attempt = static_cast<std::uint32_t>(lease.value),
      .due = *flow_.ledger.find(group)->due,
      .seed = seed_of(turn_.config, group, facts),
      .n = turn_.config.n,
      .prompt = turn_.config.train[turn_.config.prompt_at(facts.position)].prompt};
  if (flow_.fixed) work.version = choice.version;
  auto& [to, assign] = assignments_[holder.name];
  to = holder;
  assign.groups.push_back(std::move(work));
}

// No later message will name the payloads of the rest of this one: those that its sender wrote are
// released.
void refuse_rest(Turn& turn, const messages::Generated& generated, const std::string& why) {
  ReleaseWritten rest{.writer = generated.from, .payloads = {}};
  for (const messages::GroupHeader& header : generated.groups)
    if (!turn.facts.flow.held.contains(header.payload)) rest.payloads.insert(header.payload);
  turn.send(std::move(rest));
  refuse(turn, generated.from, "Generated: " + why);
}

// One group of an answer. `holds`: the sender is up; of one that has ended no lease is left.
void take_header(Turn& turn, const ActorId& from, bool holds, const messages::GroupHeader& header) {
  PolicyVersion oldest =
      header.trajectories.empty() ? PolicyVersion{} : header.trajectories[0].oldest;
  for (const messages::TrajectoryHeader& trajectory : header.trajectories)
    oldest = std::min(oldest, trajectory.oldest);
  const std::uint64_t tokens = messages::completion_tokens(header);
  const LeaseId lease{header.attempt};
  const auto refusal = holds ? turn.facts.flow.ledger.refusal_of_generated(
                                   {header.group, lease, turn.config.epoch}, oldest)
                             : std::optional(scheduler::Refusal::kOldLease);
  if (refusal) {
    turn.record(AnswerRefused{.answer = RefusedAnswer::kGenerated,
                              .group = header.group,
                              .lease = lease,
                              .holder = from,
                              .oldest = oldest,
                              .refusal = *refusal});
    turn.seen.fleet.wasted(tokens);
    return turn.send(ReleasePayload{header.payload});
  }
  turn.seen.statistics.work.tokens_generated += tokens;
  turn.record(GroupGenerated{from, header});
  turn.seen.workers.by_actor[from.name].generated = true;
  turn.seen.evaluation_suspects.worked(from.name);
}

}  // namespace

// A rollout that has outlived an exchange tells again what that one may not have journalled. Here
// it had: the group has this payload, or went on to where it needs none.
bool is_told_again(const RunView& view, const ActorId& from, const messages::GroupHeader& header,
                   bool is_its_own) {
  const auto seen = view.seen.workers.by_actor.find(from.name);
  if (seen == view.seen.workers.by_actor.end() || !seen->second.came_back) return false;
  const auto entry = view.facts.flow.entries.find(header.group);
  if (entry != view.facts.flow.entries.end() && entry->second.header &&
      entry->second.header->payload == header.payload)
    return true;
  return !is_its_own && view.facts.flow.ledger.refusal_of_hand_back(
                            {header.group, LeaseId{header.attempt}, view.config.epoch});
}

void lease_rollouts(Turn& turn) {
  Leasing leasing(turn);
  leasing.try_suspects();
  leasing.lease_others();
  leasing.try_suspects_of_idle_rollouts();
  leasing.send();
}

void hand_back_to_rollout(Turn& turn, const ActorId& who, std::vector<GroupId> groups) {
  turn.tell(who, messages::HandBack{std::move(groups)});
}

messages::ActorLoad load_of_rollout(const RunView& view, const WorkerFacts& worker) {
  const std::string held =
      std::to_string(view.facts.flow.ledger.held_by(worker.who.incarnation) * view.config.n);
  return {.actor = worker.who.name,
          .policy_version = worker.installed.value_or(kInitialWeights).value,
          .load = worker.draining ? held + " left" : held + "/" + std::to_string(worker.capacity),
          .engine = view.seen.workers.by_actor.at(worker.who.name).stats};
}

void take(Turn& turn, const messages::RolloutUp& up) {
  come_up(turn, messages::Role::kRollout, up.from, up.capacity, "RolloutUp");
}

void take(Turn& turn, GroupsGenerated stored) {
  const messages::Generated& generated = stored.message;
  if (comes_too_early(turn, generated.from)) return;
  const bool holds = turn.facts.workers.find(messages::Role::kRollout, generated.from) != nullptr;
  for (const messages::GroupHeader& header : generated.groups) {
    const bool is_its_own = stored.payloads.erase(header.payload) > 0;
    if (is_told_again(turn.view(), generated.from, header, is_its_own)) continue;
    const bool usable = is_its_own && !turn.facts.flow.held.contains(header.payload);
    // One that has ended may have told it before, or its payload has gone with it.
    if (!usable && !holds && has_ended(turn.facts, generated.from)) continue;
    if (!usable) return refuse_rest(turn, generated, "a payload that is not its own");
    if (const auto why = holds ? misfit(turn.view(), generated.from, header) : std::nullopt)
      return refuse_rest(turn, generated, *why);
    take_header(turn, generated.from, holds, header);
  }
  turn.wake();
  if (!holds) return;
  turn.seen.workers.by_actor[generated.from.name].worked = turn.now;
  messages::GroupsKept kept;
  for (const messages::GroupHeader& header : generated.groups) kept.groups.push_back(header.group);
  turn.tell(generated.from, std::move(kept));
}

void take(Turn& turn, const messages::EngineBroke& broke) {
  if (!turn.facts.workers.find(messages::Role::kRollout, broke.from)) return;
  turn.seen.workers.by_actor[broke.from.name].broke = true;
}

void take(Turn& turn, const messages::Unservable& unservable) {
  const ActorId& from = unservable.from;
  if (!turn.facts.workers.find(messages::Role::kRollout, from)) return;
  if (comes_too_early(turn, from)) return;
  if (const auto why = misfit(turn.view(), from, unservable.group, unservable.attempt))
    return refuse(turn, from, "Unservable: " + *why);
  const LeaseId lease{unservable.attempt};
  if (const auto refusal = turn.facts.flow.ledger.refusal_of_hand_back(
          {unservable.group, lease, turn.config.epoch})) {
    turn.record(AnswerRefused{.answer = RefusedAnswer::kHandBack,
                              .group = unservable.group,
                              .lease = lease,
                              .holder = from,
                              .oldest = {},
                              .refusal = *refusal});
    return turn.wake();
  }
  turn.record(GroupHandedBack{unservable.group, lease, from, unservable.message});
  switch (unservable.reason) {
    case messages::UnservableReason::kPromptTooLong:
      discard(turn, unservable.group, scheduler::DiscardReason::kPromptTooLong);
      break;
    case messages::UnservableReason::kCannotEncode:
      return fail(turn, "a prompt cannot be encoded: " + unservable.message);
    case messages::UnservableReason::
        kVersionGone:  // leased again, to an actor that can still have it
      break;
  }
  turn.wake();
}

}  // namespace tandem::exchange
