// The door of ranks that broadcast weights, at an exchange.

#include "actors/doors/message_checks.h"
#include "runtime/collective/nccl_api.h"

namespace tandem::doors {

namespace {

constexpr std::size_t kEpochWordsBytesMax = 16384;  // an error or a label

Result<void> check(const messages::BroadcastUp& up) {
  if (up.nccl_version < 1)
    return wrong("BroadcastUp: version " + std::to_string(up.nccl_version) + " of NCCL");
  return {};
}

// The id and the layout are passed on to all members.
Result<void> check(const messages::EpochOpened& opened) {
  if (opened.unique_id.size() != collective::kNcclUniqueIdBytes)
    return wrong("EpochOpened: a unique id of " + std::to_string(opened.unique_id.size()) +
                 " bytes");
  if (opened.layout.size() > messages::kLayoutBytesMax)
    return wrong("EpochOpened: a layout of " + std::to_string(opened.layout.size()) + " bytes");
  return {};
}

Result<void> check(const messages::EpochJoined&) { return {}; }
Result<void> check(const messages::EpochInUse&) { return {}; }
Result<void> check(const messages::EpochLeft&) { return {}; }

Result<void> check(const messages::EpochFailed& failed) {
  if (failed.message.size() > kEpochWordsBytesMax)
    return wrong("EpochFailed: a message of " + std::to_string(failed.message.size()) + " bytes");
  return {};
}

// Milliseconds become doubles in views, so they stay below kCountMax.
Result<void> check(const messages::EpochProgress& progress) {
  if (progress.operations.size() > messages::kEpochOperationsMax)
    return wrong("EpochProgress: " + std::to_string(progress.operations.size()) + " operations");
  for (const messages::EpochOperation& operation : progress.operations)
    if (operation.label.size() > kEpochWordsBytesMax || operation.since_ms < 0 ||
        operation.since_ms > static_cast<std::int64_t>(kCountMax))
      return wrong("EpochProgress: an operation since " + std::to_string(operation.since_ms) +
                   " ms, or a label of " + std::to_string(operation.label.size()) + " bytes");
  return {};
}

}  // namespace

template <>
struct Checks<messages::BroadcastPeer> {
  Result<void> operator()(const auto& message) const { return check(message); }
};
template link::Door<messages::BroadcastPeer::Events> exchange_door<messages::BroadcastPeer>(
    const std::string&);

}  // namespace tandem::doors
