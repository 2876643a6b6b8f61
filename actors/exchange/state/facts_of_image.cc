// The facts of a run from their image: each function is the inverse of one in state_image.cc.
#include <algorithm>
#include <utility>

#include "actors/exchange/state/state_image.h"
#include "runtime/base/check.h"

namespace tandem::exchange {

namespace {

template <std::size_t N>
void fill(std::array<std::int64_t, N>& counts, const std::vector<std::int64_t>& image) {
  CHECK(image.size() <= N);  // an image of an earlier version has fewer
  std::ranges::copy(image, counts.begin());
}

scheduler::GroupRecord record_of(const GroupImage& image) {
  scheduler::GroupRecord record{
      .id = image.id, .state = image.state, .due = image.due, .lease = {}, .step = image.step};
  if (image.lease)
    record.lease = scheduler::Lease{.group = image.id,
                                    .id = image.lease->id,
                                    .holder = image.lease->holder,
                                    .epoch = image.lease->epoch,
                                    .deadline = kNoDeadline};
  return record;
}

scheduler::LedgerSnapshot ledger_of(const LedgerImage& image,
                                    const std::vector<GroupImage>& groups) {
  scheduler::LedgerSnapshot snapshot{.next_group = image.next_group,
                                     .next_lease = image.next_lease,
                                     .next_step = image.next_step,
                                     .next_commit = image.next_commit,
                                     .replay_next = image.replay_next,
                                     .published = image.published,
                                     .discarded_since_publish = image.discarded_since_publish,
                                     .learner = image.learner};
  scheduler::LedgerCounters& counters = snapshot.counters;
  counters.issued = image.issued;
  counters.trained = image.trained;
  counters.live = image.live;
  counters.durable = image.durable;
  counters.retrained = image.retrained;
  fill(counters.discarded, image.discarded);
  fill(counters.refused, image.refused);
  for (const GroupImage& group : groups) snapshot.records.push_back(record_of(group));
  for (const BatchImage& batch : image.batches)
    snapshot.batches.emplace_back(batch.step, batch.groups);
  return snapshot;
}

scheduler::FixedLagSnapshot fixed_of(StepId first, const std::vector<SlotImage>& slots) {
  scheduler::FixedLagSnapshot snapshot{.first = first, .rows = {}};
  for (const SlotImage& slot : slots) {
    if (snapshot.rows.empty() || snapshot.rows.back().step != slot.step)
      snapshot.rows.push_back({slot.step, {}});
    snapshot.rows.back().cells.push_back({slot.attempt, slot.group, slot.scored});
  }
  return snapshot;
}

GroupFlow flow_of(const StateImage& image, const LaterImage& later) {
  GroupFlow flow;
  const scheduler::Budget& budget = image.began.budget;
  flow.ledger = scheduler::Ledger(budget, ledger_of(image.ledger, image.groups));
  if (image.fixed_first)
    flow.fixed.emplace(budget, fixed_of(*image.fixed_first, image.fixed_slots));
  for (const GroupImage& group : image.groups) {
    flow.entries.emplace(group.id, GroupFacts{.position = group.position,
                                              .slot = group.slot,
                                              .header = group.header,
                                              .rewards = group.rewards,
                                              .failed = group.failed});
    if (group.header) flow.held.hold(group.header->payload);
  }
  flow.poisoned.insert(later.poisoned.begin(), later.poisoned.end());
  std::map<GroupId, scheduler::Suspicion> suspicions;
  for (const SuspicionImage& one : later.suspects)
    suspicions[one.group] = {.crashes = one.crashes,
                             .alone = one.alone,
                             .last_alone = one.last_alone,
                             .others_work = one.others_work,
                             .actor = one.actor};
  flow.suspects = scheduler::Suspects(std::move(suspicions));
  flow.position_next = image.position_next;
  flow.generated_for_step = image.generated_for_step;
  flow.reward_failures = image.reward_failures;
  return flow;
}

WorkersFacts workers_of(const StateImage& image) {
  WorkersFacts workers;
  for (const WorkerImage& one : image.workers)
    workers.by_role[one.role][one.who.name] = {.role = one.role,
                                               .who = one.who,
                                               .capacity = one.capacity,
                                               .installed = one.installed,
                                               .draining = one.draining};
  for (const ActorId& one : image.ended) workers.ended[one.name] = one.incarnation;
  return workers;
}

template <class Version>
std::map<Version, std::uint64_t> checksums_of(const std::vector<ChecksumImage>& image) {
  std::map<Version, std::uint64_t> checksums;
  for (const ChecksumImage& one : image) checksums[Version{one.version}] = one.checksum;
  return checksums;
}

EvaluationFacts evaluations_of(const EvaluationsImage& image) {
  EvaluationFacts facts{
      .running = {}, .last = image.last, .once = {image.once.begin(), image.once.end()}};
  for (const EvaluationBegan& one : image.running)
    facts.running[one.evaluation] = {one.kind, one.version};
  return facts;
}

}  // namespace

bool can_be_restored(const StateImage& image) {
  return image.ledger.discarded.size() <= scheduler::kDiscardReasons &&
         image.ledger.refused.size() <= scheduler::kRefusals;
}

RunFacts facts_of(const StateImage& image, const LaterImage& later,
                  const BroadcastImage& broadcasts) {
  return {.began = image.began,
          .stage = image.stage,
          .resumed = image.resumed,
          .flow = flow_of(image, later),
          .workers = workers_of(image),
          .learner = {.who = image.learner.who,
                      .owed = image.learner.owed,
                      .training = image.learner.training,
                      .durable = image.learner.durable,
                      .batches_kept = later.batches_kept,
                      .checkpoint_awaited = image.learner.checkpoint_awaited,
                      .checksums = checksums_of<StepId>(image.learner.checksums)},
          .versions = {.published = image.versions.published,
                       .oldest_retained = image.versions.oldest_retained,
                       .offered = {image.versions.offered.begin(), image.versions.offered.end()},
                       .checksums = checksums_of<PolicyVersion>(image.versions.checksums)},
          .evaluations = evaluations_of(image.evaluations),
          .end = {.asked = image.end, .last_save = image.last_save},
          .broadcast_epoch = broadcasts.epoch};
}

}  // namespace tandem::exchange
