#include "actors/exchange/publications.h"

#include <algorithm>
#include <utility>

#include "actors/exchange/checks.h"
#include "actors/exchange/workers.h"

namespace tandem::exchange {

void take(Turn& turn, const messages::BroadcastEvents& event) {
  const ActorId from = std::visit([](const auto& message) { return message.from; }, event);
  if (has_ended(turn.facts, from)) return;
  auto& groups = turn.seen.broadcasts.groups;
  if (!groups) return refuse(turn, from, "the weights of this job are not broadcast");
  if (const auto why = groups->take(event, turn.now)) return refuse(turn, from, *why);
  // It may come up while it drains already.
  if (const WorkerFacts* worker = turn.facts.workers.find(from); worker && worker->draining)
    groups->leaves(from);
  turn.wake();
}

void order_broadcasts(Turn& turn) {
  auto& groups = turn.seen.broadcasts.groups;
  if (!groups) return;
  for (Broadcasts::Message& order : groups->decide(turn.now)) {
    if (const auto* open = std::get_if<messages::OpenEpoch>(&order.what))
      turn.record(BroadcastEpochOpened{open->epoch});
    turn.send(To<messages::BroadcastPeer>{order.to, std::move(order.what)});
  }
  for (Broadcasts::News& news : groups->take_news()) turn.say(std::move(news.text), news.level);
}

void note_probe(Turn& turn, PolicyVersion version, const std::vector<float>& probe) {
  auto& probes = turn.seen.learner.probes;
  probes.erase(probes.begin(), probes.lower_bound(turn.facts.versions.oldest_retained));
  if (probe.empty())
    probes.erase(version);
  else
    probes[version] = probe;
}

void note_publication(Turn& turn, const messages::Publication& publication,
                      const std::vector<float>& probe) {
  turn.seen.statistics.add_publication(publication);
  note_probe(turn, publication.version, probe);
  BroadcastsSeen& broadcasts = turn.seen.broadcasts;
  broadcasts.places.erase(broadcasts.places.begin(),
                          broadcasts.places.lower_bound(publication.oldest_retained));
  if (!publication.broadcast) {
    broadcasts.places.erase(publication.version);
    return;
  }
  broadcasts.places[publication.version] = *publication.broadcast;
  ++broadcasts.started;
}

void end_broadcasts_of_learner(Turn& turn) { turn.seen.broadcasts.places.clear(); }

bool needs(const RunView& view, PolicyVersion version) {
  const VersionFacts& versions = view.facts.versions;
  if (version == versions.published) return true;
  const GroupFlow& flow = view.facts.flow;
  const scheduler::Budget& budget = view.config.budget;
  const StepId next = flow.ledger.budget_state().next_step;
  if (flow.fixed && next.value < budget.steps_total && version < versions.published &&
      scheduler::slot_version(budget, next) <= version)
    return true;
  return std::ranges::any_of(view.seen.evaluations, [&](const Evaluation& evaluation) {
    return evaluation.version() == version && !evaluation.generated();
  });
}

static PolicyVersion oldest_needed_at_start(const RunView& view) {
  if (!view.facts.resumed) return kInitialWeights;
  const StepId checkpoint = view.facts.flow.ledger.next_commit();
  return view.facts.flow.fixed ? scheduler::slot_version(view.config.budget, checkpoint)
                               : PolicyVersion{checkpoint.value};
}

PolicyVersion oldest_needed(const RunView& view) {
  if (view.facts.stage == RunStage::kStarting) return oldest_needed_at_start(view);
  PolicyVersion oldest = view.facts.versions.published;
  if (view.facts.flow.fixed)
    oldest =
        std::min(oldest, scheduler::slot_version(view.config.budget,
                                                 view.facts.flow.ledger.budget_state().next_step));
  for (const Evaluation& evaluation : view.seen.evaluations)
    if (!evaluation.generated() && evaluation.version() < oldest &&
        supply_of(evaluation.version(), view.facts.supply()) != scheduler::VersionSupply::kLost)
      oldest = evaluation.version();
  return oldest;
}

// A repeated step publishes its version again where the publisher has lost it.
bool publishes(const RunView& view, StepId step) {
  const PolicyVersion version{step.value + 1};
  const VersionFacts& versions = view.facts.versions;
  if (version <= versions.published)
    return needs(view, version) && !versions.offered.contains(version);
  return version.value % view.config.budget.sync_steps == 0 ||
         version.value == view.config.budget.steps_total;
}

// The retained versions and the one that comes next fill the publisher's K + 2 places at most.
bool evaluation_in_the_way(const RunView& view, StepId step) {
  const bool is_new = step.value >= view.facts.versions.published.value;
  return is_new && publishes(view, step) &&
         oldest_needed(view).value <
             view.facts.versions.published.value - view.config.budget.max_staleness;
}

void ask_to_publish(Turn& turn) {
  turn.seen.learner.publish_asked = turn.now;
  turn.tell_learner(messages::PublishInitial{oldest_needed(turn.view())});
}

void publish_lost(Turn& turn) {
  const RunFacts& facts = turn.facts;
  const bool trains = facts.stage == RunStage::kRunning || facts.stage == RunStage::kFinishing;
  if (!trains || !facts.learner.who || turn.seen.learner.away || facts.learner.owed) return;
  using enum scheduler::VersionSupply;
  const scheduler::SupplyState supply = facts.supply();
  const PolicyVersion newest = facts.versions.published, oldest = oldest_needed(turn.view());
  // Between two syncs a checkpoint may be newer than the published version and hold no other: the
  // learner then publishes that of its own step instead.
  bool lost = supply_of(newest, supply) == kLost;
  for (PolicyVersion version = oldest; version <= newest && !lost; ++version.value)
    lost = supply_of(version, supply) == kHeld && needs(turn.view(), version);
  if (!lost) return;
  turn.record(LearnerAsked{LearnerTask::kPublish, {}});
  ask_to_publish(turn);
}

void announce_again(Turn& turn) {
  for (const auto& [name, rollout] : turn.facts.workers.rollouts()) {
    const PolicyVersion announced = turn.seen.workers.by_actor[name].announced;
    if (announced >= kInitialWeights) announce(turn, rollout.who, announced);
  }
}

void announce(Turn& turn, const ActorId& rollout, PolicyVersion version) {
  const VersionFacts& versions = turn.facts.versions;
  messages::NewVersion offer{.version = version,
                             .oldest_retained = versions.oldest_retained,
                             .source = turn.seen.learner.source};
  WorkerSeen& worker = turn.seen.workers.by_actor[rollout.name];
  const bool first = worker.announced < version;
  worker.announced = version;
  if (first) worker.announced_at = turn.now;
  if (const auto known = versions.checksums.find(version); known != versions.checksums.end())
    offer.checksum = known->second;
  const auto& probes = turn.seen.learner.probes;
  if (const auto probe = probes.find(version); probe != probes.end()) offer.probe = probe->second;
  const BroadcastsSeen& broadcasts = turn.seen.broadcasts;
  const auto place = broadcasts.places.find(version);
  if (first && version == versions.published && place != broadcasts.places.end() &&
      broadcasts.groups && broadcasts.groups->takes_part(rollout, place->second.epoch))
    offer.broadcast = place->second;  // EX-4
  turn.tell(rollout, std::move(offer));
}

}  // namespace tandem::exchange
