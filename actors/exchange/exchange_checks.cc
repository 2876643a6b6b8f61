// Whether what a peer says fits what the exchange knows of it. The doors (doors.h) have checked who
// speaks and that the numbers make sense by themselves; here a message meets the leases, versions
// and steps that it speaks of. A late answer is no misfit: its lease is over, and the ledger
// refuses it. A misfit is what no honest peer can send, however late; taken at its word it would
// touch what is another's, or break an invariant that the ledger CHECKs.
#include <algorithm>
#include <set>

#include "actors/exchange/exchange.h"

namespace tandem::actors {

void Exchange::refuse(runtime::Context& cx, const Sender& from, const std::string& why) {
  links_.refuse({from.actor, from.incarnation}, why);
  wake(cx);  // for the part of the message that was taken
}

// A payload says itself for which lease it was made. Where the sender holds that lease no other
// honest rank wrote it; where it does not, the payload may be another's whose message is on its
// way.
bool Exchange::wrote(const Sender& from, const runtime::PayloadRef& payload) {
  const auto group = read(payload);
  const auto* record = group ? ledger_.find(group->group) : nullptr;
  return record && record->lease && record->lease->id.value == group->attempt &&
         record->lease->holder == from.incarnation;
}

// Nobody will speak of the rest of the message again: what its sender wrote for it goes.
void Exchange::refuse(runtime::Context& cx, const Generated& generated, const std::string& why) {
  std::set<runtime::PayloadRef> named;  // once, however often the message names it
  for (const GroupHeader& header : generated.groups) named.insert(header.payload);
  for (const runtime::PayloadRef& payload : named)
    if (shelf_.free(payload) && wrote(generated.from, payload)) shelf_.release(payload);
  refuse(cx, generated.from, "Generated: " + why);
}

Exchange::Misfit Exchange::misfit(const Worker& from, GroupId group, std::uint32_t attempt) const {
  const auto* record = ledger_.find(group);
  if (!record || !record->lease || record->lease->id.value != attempt ||
      record->lease->holder == from.address.incarnation)
    return std::nullopt;
  return "group " + std::to_string(group.value) + " is leased to another";
}

Exchange::Misfit Exchange::misfit(const Worker& from, const GroupHeader& header) const {
  if (std::ssize(header.trajectories) != config_.n)
    return std::to_string(header.trajectories.size()) + " trajectories, and a group has " +
           std::to_string(config_.n);
  if (std::ranges::any_of(header.trajectories,
                          [&](const auto& trajectory) { return trajectory.newest > published_; }))
    return "tokens of a version that is not published";
  return misfit(from, header.group, header.attempt);
}

// Exact where the exchange knows what was published, which is so of every version that it has told
// anybody to install.
Exchange::Misfit Exchange::misfit(const Installed& installed) const {
  const auto known = publications_.find(installed.version);
  if (known == publications_.end() || known->second.checksum == installed.checksum)
    return std::nullopt;
  return "Installed: " + installed.from.actor + " installed version " +
         std::to_string(installed.version.value) + " with checksum " +
         std::to_string(installed.checksum) + ", and it was published with checksum " +
         std::to_string(known->second.checksum);
}

Exchange::Misfit Exchange::misfit(const Publication& publication) const {
  const auto& place = publication.broadcast;
  if (!place || (broadcasts_ && broadcasts_->was_used(place->epoch))) return std::nullopt;
  return "version " + std::to_string(publication.version.value) + " is broadcast in epoch " +
         std::to_string(place->epoch) + ", which was not to be used";
}

Exchange::Misfit Exchange::misfit(const Published& published) const {
  const std::int64_t done = ledger_.next_commit().value;
  const PolicyVersion version = published.publication.version;
  const bool initial = version == kInitialWeights && done == 0;
  if (stage_ == Stage::kStarting && learner_busy_ && (initial || version.value == done))
    return misfit(published.publication);
  return "Published: version " + std::to_string(version.value) + ", which was not asked for";
}

Exchange::Misfit Exchange::misfit(const WarmStarted& started) const {
  const bool awaited = stage_ == Stage::kStarting || stage_ == Stage::kWarmStart;
  if (awaited && learner_busy_ && published_ == kInitialWeights &&
      ledger_.next_commit() == StepId{0} && started.publication.version == PolicyVersion{0})
    return misfit(started.publication);
  return "WarmStarted: no warm start was asked for";
}

Exchange::Misfit Exchange::misfit(const StepCommitted& committed) const {
  const std::string name = "StepCommitted: step " + std::to_string(committed.step.value);
  if (step_in_flight_ != committed.step) return name + ", which is not in training";
  if (committed.publication && committed.publication->version.value != committed.step.value + 1)
    return name + " with version " + std::to_string(committed.publication->version.value);
  return committed.publication ? misfit(*committed.publication) : std::nullopt;
}

Exchange::Misfit Exchange::misfit(const CheckpointSaved& saved) const {
  if (saved.step <= ledger_.replay_next()) return std::nullopt;
  return "CheckpointSaved: step " + std::to_string(saved.step.value) +
         ", which it has not trained to";
}

}  // namespace tandem::actors
