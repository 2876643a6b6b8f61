#include "actors/exchange/checks.h"

#include <algorithm>

namespace tandem::exchange {

bool is_away(const RunView& view, const ActorId& worker) {
  const auto seen = view.seen.workers.by_actor.find(worker.name);
  return seen != view.seen.workers.by_actor.end() && seen->second.away;
}

bool is_here(const RunView& view, const ActorId& worker) {
  const auto seen = view.seen.workers.by_actor.find(worker.name);
  return seen == view.seen.workers.by_actor.end() || (!seen->second.away && !seen->second.silent);
}

bool comes_too_early(const Turn& turn, const ActorId& from) {
  return turn.facts.workers.find(from) && is_away(turn.view(), from);
}

void refuse(Turn& turn, const ActorId& from, const std::string& why) {
  turn.send(Refuse{from, why});
  turn.wake();  // for the part of the message that was taken
}

Misfit misfit(const RunView& view, const ActorId& from, GroupId group, std::uint32_t attempt) {
  const auto* record = view.facts.flow.ledger.find(group);
  if (!record || !record->lease || record->lease->id.value != attempt ||
      record->lease->holder == from.incarnation)
    return std::nullopt;
  return "group " + std::to_string(group.value) + " is leased to another";
}

Misfit misfit(const RunView& view, const ActorId& from, const messages::GroupHeader& header) {
  if (std::ssize(header.trajectories) != view.config.n)
    return std::to_string(header.trajectories.size()) + " trajectories, and a group has " +
           std::to_string(view.config.n);
  if (std::ranges::any_of(header.trajectories, [&](const auto& trajectory) {
        return trajectory.newest > view.facts.versions.published;
      }))
    return "tokens of a version that is not published";
  return misfit(view, from, header.group, header.attempt);
}

// Exact where the exchange knows what was published, which is so of every version that it has told
// anybody to install.
Misfit misfit(const RunView& view, const messages::Installed& installed) {
  const auto& checksums = view.facts.versions.checksums;
  const auto known = checksums.find(installed.version);
  if (known == checksums.end() || known->second == installed.checksum) return std::nullopt;
  return "Installed: " + installed.from.name + " installed version " +
         std::to_string(installed.version.value) + " with checksum " +
         std::to_string(installed.checksum) + ", and it was published with checksum " +
         std::to_string(known->second);
}

static Misfit misfit(const RunView& view, const messages::Publication& publication) {
  const auto& place = publication.broadcast;
  const auto& groups = view.seen.broadcasts.groups;
  if (!place || (groups && groups->was_used(place->epoch))) return std::nullopt;
  return "version " + std::to_string(publication.version.value) + " is broadcast in epoch " +
         std::to_string(place->epoch) + ", which was not to be used";
}

Misfit misfit(const RunView& view, const messages::Published& published) {
  const std::int64_t done = view.facts.flow.ledger.next_commit().value;
  const PolicyVersion version = published.publication.version;
  const bool initial = version == kInitialWeights && done == 0;
  const bool fits = view.facts.stage == RunStage::kStarting
                        ? initial || version.value == done
                        : version.value == view.facts.flow.ledger.replay_next().value;
  if (view.facts.learner.owed == LearnerTask::kPublish && fits)
    return misfit(view, published.publication);
  return "Published: version " + std::to_string(version.value) + ", which was not asked for";
}

Misfit misfit(const RunView& view, const messages::WarmStarted& started) {
  const RunFacts& facts = view.facts;
  const bool awaited = facts.stage == RunStage::kStarting || facts.stage == RunStage::kWarmStart;
  if (awaited && facts.learner.owed && facts.versions.published == kInitialWeights &&
      facts.flow.ledger.next_commit() == StepId{0} &&
      started.publication.version == PolicyVersion{0})
    return misfit(view, started.publication);
  return "WarmStarted: no warm start was asked for";
}

Misfit misfit(const RunView& view, const messages::StepCommitted& committed) {
  const std::string name = "StepCommitted: step " + std::to_string(committed.step.value);
  if (view.facts.learner.training != committed.step) return name + ", which is not in training";
  if (committed.publication && committed.publication->version.value != committed.step.value + 1)
    return name + " with version " + std::to_string(committed.publication->version.value);
  return committed.publication ? misfit(view, *committed.publication) : std::nullopt;
}

Misfit misfit(const RunView& view, const messages::CheckpointSaved& saved) {
  if (saved.step <= view.facts.flow.ledger.replay_next()) return std::nullopt;
  return "CheckpointSaved: step " + std::to_string(saved.step.value) +
         ", which it has not trained to";
}

Misfit misfit(const RunView& view, const GroupHistory& history, StepId checkpoint) {
  if (checkpoint < history.from())
    return "the journal has the groups of checkpoint " + std::to_string(history.from().value) +
           " and of later ones, not of checkpoint " + std::to_string(checkpoint.value) +
           " (retention.archive_bytes): begin a new run from that checkpoint by model.path";
  for (const RestoredGroup& group : history.at(checkpoint)) {
    const bool slot_ahead = group.slot && group.slot->step >= checkpoint;
    if (view.config.fixed_lag && !slot_ahead && !group.trained_at && !group.discarded)
      return "the journal was not written under async.schedule: fixed_lag";
  }
  const std::int64_t trained = history.trained(checkpoint);
  const std::int64_t due = checkpoint.value * view.config.budget.groups_per_step;
  if (trained == due) return std::nullopt;
  return "the journal holds " + std::to_string(trained) + " groups trained before checkpoint " +
         std::to_string(checkpoint.value) + ", not " + std::to_string(due);
}

}  // namespace tandem::exchange
