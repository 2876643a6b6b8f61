// apply(), and the events of the run, its actors, its learner and its evaluations.
#include "actors/exchange/state/durable_state.h"

#include <algorithm>
#include <utility>

#include "actors/exchange/state/misfit.h"
#include "runtime/base/check.h"

namespace tandem::exchange {

namespace {

constexpr std::size_t kChecksumsKept = 64;  // a rollout may end its copy of a version that is old

// The ledger of a run that goes on from a checkpoint.
scheduler::LedgerSnapshot ledger_of(const RunResumed& event) {
  scheduler::LedgerSnapshot snapshot{.next_group = event.next_group,
                                     .next_lease = scheduler::LeaseId{1}};
  snapshot.counters.issued = event.issued;
  snapshot.counters.trained = snapshot.counters.durable = event.trained;
  snapshot.counters.retrained = event.retrained;
  // An event of an earlier version has fewer reasons.
  CHECK(event.discarded.size() <= scheduler::kDiscardReasons);
  std::copy(event.discarded.begin(), event.discarded.end(), snapshot.counters.discarded.begin());
  for (const ResumedGroup& group : event.groups)
    if (!group.discarded) snapshot.records.push_back({.id = group.group});
  snapshot.counters.live = std::ssize(snapshot.records);
  snapshot.next_step = snapshot.next_commit = snapshot.replay_next = event.checkpoint;
  snapshot.published = PolicyVersion{event.checkpoint.value};
  return snapshot;
}

}  // namespace

void DurableState::apply(const JournalEvent& event) {
  CHECK(!misfit(facts_, event));
  std::visit([this](const auto& what) { on(what); }, event);
}

void DurableState::on(const RunBegan& event) {
  facts_ = {};
  facts_.began = event;
  facts_.flow.ledger = scheduler::Ledger(event.budget);
  if (event.fixed_lag) facts_.flow.fixed.emplace(event.budget);
}

void DurableState::on(const RunResumed& event) {
  GroupFlow& flow = facts_.flow;
  facts_.resumed = true;
  flow.ledger = scheduler::Ledger(facts_.began.budget, ledger_of(event));
  flow.position_next = event.next_position;
  if (flow.fixed) flow.fixed.emplace(facts_.began.budget, event.checkpoint);
  for (const ResumedGroup& group : event.groups) {
    const bool ahead = flow.fixed && group.slot && group.slot->step >= event.checkpoint;
    if (ahead) flow.fixed->issued(*group.slot, group.group);
    if (ahead && group.discarded) flow.fixed->discarded(group.group);
    if (!group.discarded)
      flow.entries.emplace(group.group, GroupFacts{.position = group.position, .slot = group.slot});
  }
  facts_.evaluations.once.insert(event.evaluated.begin(), event.evaluated.end());
}

void DurableState::on(const ExchangeFollowed& event) { facts_.began.epoch = event.epoch; }

void DurableState::on(const StageEntered& event) { facts_.stage = event.stage; }

// The first cause is the one that counts; a failure while a run is being cancelled extends its
// reason.
void DurableState::on(const EndAsked& event) {
  auto& asked = facts_.end.asked;
  if (asked)
    asked->reason = event.reason;
  else
    asked = event;
}

void DurableState::on(const LastSaveAsked& event) { facts_.end.last_save = event.step; }

void DurableState::on(const RunEnded& event) {
  facts_.end.ended = event;
  facts_.stage = RunStage::kEnded;
  facts_.learner.who.reset();
}

void DurableState::on(const StateHashed&) {}

void DurableState::on(const TotalsNoted&) {}

void DurableState::on(const WorkerCameUp& event) {
  facts_.workers.by_role[event.role][event.who.name] =
      WorkerFacts{.role = event.role, .who = event.who, .capacity = event.capacity};
}

void DurableState::on(const WorkerDrains& event) {
  for (auto& [role, workers] : facts_.workers.by_role)
    if (const auto worker = workers.find(event.who.name); worker != workers.end())
      worker->second.draining = true;
}

void DurableState::on(const VersionInstalled& event) {
  WorkersOfRole& rollouts = facts_.workers.by_role.at(messages::Role::kRollout);
  rollouts.at(event.who.name).installed = event.version;
}

void DurableState::on(const IncarnationEnded& event) {
  Incarnation& ended = facts_.workers.ended[event.who.name];
  ended = std::max(ended, event.who.incarnation);
  for (auto& [role, workers] : facts_.workers.by_role) {
    const auto worker = workers.find(event.who.name);
    if (worker != workers.end() && worker->second.who.incarnation == event.who.incarnation)
      workers.erase(worker);
  }
  if (facts_.learner.who != event.who) return;
  facts_.learner.who.reset();
  leave_start();
}

void DurableState::leave_start() {
  facts_.learner.owed.reset();
  facts_.learner.training.reset();
  if (facts_.stage == RunStage::kWarmStart) facts_.stage = RunStage::kStarting;
}

const WorkersOfRole& WorkersFacts::of(const messages::Role& role) const {
  static const WorkersOfRole kNone;
  const auto found = by_role.find(role);
  return found == by_role.end() ? kNone : found->second;
}

std::vector<const WorkerFacts*> WorkersFacts::all() const {
  std::vector<const WorkerFacts*> workers;
  for (const messages::Role& role : messages::kTrainingRoles)
    for (const auto& [actor, worker] : of(role)) workers.push_back(&worker);
  return workers;
}

const WorkerFacts* WorkersFacts::find(const ActorId& who) const {
  for (const auto& [role, workers] : by_role)
    if (const WorkerFacts* worker = find(role, who)) return worker;
  return nullptr;
}

const WorkerFacts* WorkersFacts::find(const messages::Role& role, const ActorId& who) const {
  const WorkersOfRole& workers = of(role);
  const auto worker = workers.find(who.name);
  const bool up = worker != workers.end() && worker->second.who.incarnation == who.incarnation;
  return up ? &worker->second : nullptr;
}

scheduler::SupplyState RunFacts::supply() const {
  return {.offered = versions.offered,
          .next = flow.ledger.replay_next(),
          .older_held = flow.fixed ? began.budget.max_staleness : 0};
}

void DurableState::on(const LearnerCameUp& event) {
  facts_.learner.who = event.who;
  facts_.versions.offered = {event.offered.begin(), event.offered.end()};
  leave_start();
}

void DurableState::on(const LearnerRestarted& event) {
  (void)facts_.flow.ledger.learner_started(event.checkpoint, event.who.incarnation);
  // A newer checkpoint than the learner's is damaged.
  facts_.learner.durable = std::min(facts_.learner.durable, event.checkpoint);
  forget_lost_versions();
}

void DurableState::on(const LearnerAsked& event) {
  facts_.learner.owed = event.task;
  facts_.learner.training = event.step;
}

// The checksums of the step and of those after it are of weights that no longer exist. Versions
// that were published stay what they were: rollouts have them.
void DurableState::on(const LineageBegan& event) {
  auto& checksums = facts_.learner.checksums;
  checksums.erase(checksums.upper_bound(event.step), checksums.end());
  // Where the learner publishes one of these versions again, it has the weights of now.
  auto& published = facts_.versions.checksums;
  published.erase(published.upper_bound(PolicyVersion{event.step.value}), published.end());
}

void DurableState::forget_lost_versions() {
  VersionFacts& versions = facts_.versions;
  const PolicyVersion to_be_had = scheduler::oldest_to_be_had(facts_.supply());
  versions.oldest_retained =
      std::max(versions.oldest_retained, std::min(to_be_had, versions.published));
}

void DurableState::take(const messages::Publication& publication) {
  VersionFacts& versions = facts_.versions;
  versions.published = std::max(versions.published, publication.version);
  versions.oldest_retained = publication.oldest_retained;
  versions.offered = {publication.offered.begin(), publication.offered.end()};
  forget_lost_versions();
  versions.checksums[publication.version] = publication.checksum;
  while (versions.checksums.size() > kChecksumsKept &&
         versions.checksums.begin()->first < versions.oldest_retained)
    versions.checksums.erase(versions.checksums.begin());
}

// Training begins, or begins again, with a version that is not kInitialWeights.
void DurableState::on(const VersionPublished& event) {
  scheduler::Ledger& ledger = facts_.flow.ledger;
  facts_.learner.owed.reset();
  take(event.publication);
  if (facts_.versions.published == kInitialWeights) return;
  const StepId done = ledger.next_commit();
  ledger.published(facts_.versions.published);
  (void)ledger.learner_started(done, event.who.incarnation);
  facts_.learner.durable = done;
  facts_.learner.checksums[done] = event.publication.checksum;
}

void DurableState::on(const VersionsRestored& event) {
  facts_.learner.owed.reset();
  take(event.publication);
  facts_.flow.ledger.published(facts_.versions.published);
}

void DurableState::on(const VersionWithdrawn& event) {
  VersionFacts& versions = facts_.versions;
  versions.offered.erase(event.version);
  if (supply_of(event.version, facts_.supply()) != scheduler::VersionSupply::kLost) return;
  // Nobody waits for what the learner cannot publish again.
  const PolicyVersion next{event.version.value + 1};
  versions.oldest_retained = std::max(versions.oldest_retained, std::min(next, versions.published));
}

void DurableState::on(const CheckpointAsked& event) {
  facts_.learner.checkpoint_awaited = event.step;
}

void DurableState::on(const BroadcastEpochOpened& event) { facts_.broadcast_epoch = event.epoch; }

void DurableState::on(const EvaluationBegan& event) {
  facts_.evaluations.last = event.evaluation;
  facts_.evaluations.running[event.evaluation] = {event.kind, event.version};
  if (event.kind != EvaluationKind::kPeriodic) facts_.evaluations.once.insert(event.kind);
}

void DurableState::on(const EvaluationEnded& event) {
  facts_.evaluations.running.erase(event.evaluation);
}

void DurableState::on(const EvaluationIncomplete&) {}

void DurableState::on(const SamplesFull&) {}

void DurableState::on(const MetricsThinned&) {}

void DurableState::on(const InstallPaused&) {}

}  // namespace tandem::exchange
