// Whether a message fits the exchange's knowledge of its sender. The doors (doors.h) have checked
// who speaks and that the numbers make sense by themselves; here a message meets the leases,
// versions and steps that it names. A late answer is no misfit: its lease is over, and the ledger
// refuses it. A misfit is a message that no honest peer can send, however late; taken at its word
// it would touch another actor's group, or break an invariant that the ledger CHECKs.
#include <algorithm>
#include <set>

#include "actors/exchange/exchange_core.h"

namespace tandem::actors {

void ExchangeCore::refuse(const Sender& from, const std::string& why) {
  effects_.push_back(Refuse{{from.actor, from.incarnation}, why});
  wake();  // for the part of the message that was taken
}

// No later message will name the payloads of the rest of this one: those that its sender wrote are
// released.
void ExchangeCore::refuse(const Generated& generated, const std::string& why) {
  ReleaseWritten rest{.writer = generated.from, .payloads = {}};
  for (const GroupHeader& header : generated.groups)
    if (!flow_.held.contains(header.payload)) rest.payloads.insert(header.payload);
  effects_.push_back(std::move(rest));
  refuse(generated.from, "Generated: " + why);
}

ExchangeCore::Misfit ExchangeCore::misfit(const Worker& from, GroupId group,
                                          std::uint32_t attempt) const {
  const auto* record = flow_.ledger.find(group);
  if (!record || !record->lease || record->lease->id.value != attempt ||
      record->lease->holder == from.address.incarnation)
    return std::nullopt;
  return "group " + std::to_string(group.value) + " is leased to another";
}

ExchangeCore::Misfit ExchangeCore::misfit(const Worker& from, const GroupHeader& header) const {
  if (std::ssize(header.trajectories) != config_.n)
    return std::to_string(header.trajectories.size()) + " trajectories, and a group has " +
           std::to_string(config_.n);
  if (std::ranges::any_of(header.trajectories, [&](const auto& trajectory) {
        return trajectory.newest > versions_.published;
      }))
    return "tokens of a version that is not published";
  return misfit(from, header.group, header.attempt);
}

// Exact where the exchange knows what was published, which is so of every version that it has told
// anybody to install.
ExchangeCore::Misfit ExchangeCore::misfit(const Installed& installed) const {
  const auto known = versions_.publications.find(installed.version);
  if (known == versions_.publications.end() || known->second.checksum == installed.checksum)
    return std::nullopt;
  return "Installed: " + installed.from.actor + " installed version " +
         std::to_string(installed.version.value) + " with checksum " +
         std::to_string(installed.checksum) + ", and it was published with checksum " +
         std::to_string(known->second.checksum);
}

ExchangeCore::Misfit ExchangeCore::misfit(const Publication& publication) const {
  const auto& place = publication.broadcast;
  if (!place || (versions_.broadcasts && versions_.broadcasts->was_used(place->epoch)))
    return std::nullopt;
  return "version " + std::to_string(publication.version.value) + " is broadcast in epoch " +
         std::to_string(place->epoch) + ", which was not to be used";
}

ExchangeCore::Misfit ExchangeCore::misfit(const Published& published) const {
  const std::int64_t done = flow_.ledger.next_commit().value;
  const PolicyVersion version = published.publication.version;
  const bool initial = version == kInitialWeights && done == 0;
  if (stage_ == Stage::kStarting && training_.busy && (initial || version.value == done))
    return misfit(published.publication);
  return "Published: version " + std::to_string(version.value) + ", which was not asked for";
}

ExchangeCore::Misfit ExchangeCore::misfit(const WarmStarted& started) const {
  const bool awaited = stage_ == Stage::kStarting || stage_ == Stage::kWarmStart;
  if (awaited && training_.busy && versions_.published == kInitialWeights &&
      flow_.ledger.next_commit() == StepId{0} && started.publication.version == PolicyVersion{0})
    return misfit(started.publication);
  return "WarmStarted: no warm start was asked for";
}

ExchangeCore::Misfit ExchangeCore::misfit(const StepCommitted& committed) const {
  const std::string name = "StepCommitted: step " + std::to_string(committed.step.value);
  if (training_.step != committed.step) return name + ", which is not in training";
  if (committed.publication && committed.publication->version.value != committed.step.value + 1)
    return name + " with version " + std::to_string(committed.publication->version.value);
  return committed.publication ? misfit(*committed.publication) : std::nullopt;
}

ExchangeCore::Misfit ExchangeCore::misfit(const CheckpointSaved& saved) const {
  if (saved.step <= flow_.ledger.replay_next()) return std::nullopt;
  return "CheckpointSaved: step " + std::to_string(saved.step.value) +
         ", which it has not trained to";
}

}  // namespace tandem::actors
