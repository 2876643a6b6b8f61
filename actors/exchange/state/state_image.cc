#include "actors/exchange/state/state_image.h"

#include <span>

#include "actors/exchange/state/durable_state.h"
#include "runtime/base/digest.h"
#include "runtime/wire/codec.h"

namespace tandem::exchange {

namespace {

// The reasons that every journal of this schema counts. A later one is in the image only where a
// group was discarded for it, so that the hashes of earlier journals stay as they are.
constexpr std::ptrdiff_t kReasonsOfSchema = 6;

std::vector<std::int64_t> image_of_discarded(const scheduler::LedgerCounters& counters) {
  auto end = counters.discarded.end();
  while (end - counters.discarded.begin() > kReasonsOfSchema && *(end - 1) == 0) --end;
  return {counters.discarded.begin(), end};
}

LedgerImage image_of(const scheduler::LedgerSnapshot& ledger) {
  const scheduler::LedgerCounters& counters = ledger.counters;
  LedgerImage image{.issued = counters.issued,
                    .trained = counters.trained,
                    .live = counters.live,
                    .durable = counters.durable,
                    .retrained = counters.retrained,
                    .discarded = image_of_discarded(counters),
                    .refused = {counters.refused.begin(), counters.refused.end()},
                    .next_group = ledger.next_group,
                    .next_lease = ledger.next_lease,
                    .next_step = ledger.next_step,
                    .next_commit = ledger.next_commit,
                    .replay_next = ledger.replay_next,
                    .published = ledger.published,
                    .discarded_since_publish = ledger.discarded_since_publish,
                    .learner = ledger.learner,
                    .batches = {}};
  for (const auto& [step, groups] : ledger.batches) image.batches.push_back({step, groups});
  return image;
}

GroupImage image_of(const scheduler::GroupRecord& record, const GroupFacts& facts) {
  GroupImage image{.id = record.id,
                   .state = record.state,
                   .due = record.due,
                   .step = record.step,
                   .lease = {},
                   .position = facts.position,
                   .slot = facts.slot,
                   .header = facts.header,
                   .rewards = facts.rewards,
                   .failed = facts.failed};
  if (record.lease) image.lease = {record.lease->id, record.lease->holder, record.lease->epoch};
  return image;
}

template <class Version>
std::vector<ChecksumImage> image_of(const std::map<Version, std::uint64_t>& checksums) {
  std::vector<ChecksumImage> image;
  for (const auto& [version, checksum] : checksums) image.push_back({version.value, checksum});
  return image;
}

EvaluationsImage image_of(const EvaluationFacts& facts) {
  EvaluationsImage image{
      .running = {}, .last = facts.last, .once = {facts.once.begin(), facts.once.end()}};
  for (const auto& [id, running] : facts.running)
    image.running.push_back({id, running.kind, running.version});
  return image;
}

void add_slots(StateImage& image, const scheduler::FixedLagSnapshot& fixed) {
  image.fixed_first = fixed.first;
  for (const auto& row : fixed.rows)
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      image.fixed_slots.push_back({row.step, static_cast<std::int32_t>(i), row.cells[i].attempt,
                                   row.cells[i].group, row.cells[i].scored});
}

}  // namespace

StateImage image_of(const RunFacts& facts) {
  const GroupFlow& flow = facts.flow;
  const scheduler::LedgerSnapshot ledger = flow.ledger.snapshot();
  StateImage image{
      .began = facts.began,
      .stage = facts.stage,
      .resumed = facts.resumed,
      .ledger = image_of(ledger),
      .position_next = flow.position_next,
      .generated_for_step = flow.generated_for_step,
      .reward_failures = flow.reward_failures,
      .learner = {.who = facts.learner.who,
                  .owed = facts.learner.owed,
                  .training = facts.learner.training,
                  .checkpoint_awaited = facts.learner.checkpoint_awaited,
                  .durable = facts.learner.durable,
                  .checksums = image_of(facts.learner.checksums)},
      .versions = {.published = facts.versions.published,
                   .oldest_retained = facts.versions.oldest_retained,
                   .offered = {facts.versions.offered.begin(), facts.versions.offered.end()},
                   .checksums = image_of(facts.versions.checksums)},
      .evaluations = image_of(facts.evaluations),
      .end = facts.end.asked,
      .last_save = facts.end.last_save};
  for (const scheduler::GroupRecord& record : ledger.records)
    image.groups.push_back(image_of(record, flow.entries.at(record.id)));
  if (flow.fixed) add_slots(image, flow.fixed->snapshot());
  for (const WorkerFacts* worker : facts.workers.all())
    image.workers.push_back(
        {worker->role, worker->who, worker->capacity, worker->installed, worker->draining});
  for (const auto& [actor, incarnation] : facts.workers.ended)
    image.ended.push_back({actor, incarnation});
  return image;
}

LaterImage later_image_of(const RunFacts& facts) {
  LaterImage image{.suspects = {},
                   .poisoned = {facts.flow.poisoned.begin(), facts.flow.poisoned.end()},
                   .batches_kept = facts.learner.batches_kept};
  for (const auto& [group, suspicion] : facts.flow.suspects.all())
    image.suspects.push_back({group, suspicion.crashes, suspicion.alone, suspicion.last_alone,
                              suspicion.others_work, suspicion.actor});
  return image;
}

BroadcastImage broadcast_image_of(const RunFacts& facts) { return {facts.broadcast_epoch}; }

std::uint64_t hash_of(const StateImage& image, const LaterImage& later,
                      const BroadcastImage& broadcasts) {
  std::string bytes = wire::encode(image);
  if (later != LaterImage{}) bytes += wire::encode(later);
  if (broadcasts != BroadcastImage{}) bytes += wire::encode(broadcasts);
  return checksum64(std::as_bytes(std::span(bytes)));
}

std::uint64_t DurableState::hash() const {
  return hash_of(image_of(facts_), later_image_of(facts_), broadcast_image_of(facts_));
}

}  // namespace tandem::exchange
