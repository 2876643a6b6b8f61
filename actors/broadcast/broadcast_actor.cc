// Orders go straight through to the BroadcastRank, whose calls do not block (BA-2). An event there
// wakes this actor by a turn, which takes all events that have come by then; before this actor
// answers an order itself, it tells the events that came earlier (BA-1).
//
// The fields of an order come from another process, so each is checked before the BroadcastRank
// sees it; ranks with different layouts would read each other's bytes as other parameters. An epoch
// stays in epochs_ until kLeft: a second order to open or join the same epoch is refused.
#include "actors/broadcast/broadcast_actor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/collective/collective.h"

namespace tandem::broadcast {

using collective::NcclRecord;
using collective::NcclState;
using weights::BroadcastEvent;

namespace {

messages::EpochOperationState state_of(NcclState state) {
  switch (state) {
    case NcclState::kQueued:
      return messages::EpochOperationState::kQueued;
    case NcclState::kEntered:
      return messages::EpochOperationState::kEntered;
    case NcclState::kStarted:
      return messages::EpochOperationState::kStarted;
    case NcclState::kDone:
      return messages::EpochOperationState::kDone;
    case NcclState::kFailed:
    case NcclState::kAborted:
      return messages::EpochOperationState::kFailed;
  }
  CHECK(false);
}

bool under_way(messages::EpochOperationState state) {
  return state != messages::EpochOperationState::kDone &&
         state != messages::EpochOperationState::kFailed;
}

messages::EpochOperation operation_of(const NcclRecord& record, Time now) {
  const Duration passed = record.ended_at.value_or(now) - record.enqueued_at;
  return {.sequence = record.sequence,
          .label = record.label.empty() ? name(record.kind) : record.label,
          .bytes = record.bytes,
          .state = state_of(record.state),
          .since_ms = std::chrono::duration_cast<std::chrono::milliseconds>(passed).count()};
}

bool is_group_size(std::int32_t size) { return size >= 2 && size <= collective::kRanksMax; }

std::string out_of_range(const char* what, std::int32_t value) {
  return std::string(what) + " " + std::to_string(value) + " is out of range";
}

}  // namespace

BroadcastActor::BroadcastActor(BroadcastActorConfig config,
                               std::shared_ptr<weights::BroadcastRank> rank,
                               std::shared_ptr<const collective::NcclRecords> records,
                               actor::Ref<messages::BroadcastEvents> exchange)
    : config_(std::move(config)),
      rank_(std::move(rank)),
      records_(std::move(records)),
      outbox_(std::move(exchange), config_.retry_interval) {}

// The callback may run on any thread, also after this actor's end: a turn that is posted to an
// ended actor is dropped.
void BroadcastActor::handle(actor::Context& cx, StartBroadcast) {
  up_is_due_ = true;
  say_up(cx);
  rank_->on_event([this, post = cx.turn_poster()] {
    post([this](actor::Context& then) { tell_events(then); });
  });
  cx.after(config_.progress_interval, [this](actor::Context& then) { watch(then); });
}

// The current exchange does not know these epochs, so it cannot wait until their ranks have left.
// The rank therefore says that it is up only once NCCL is out of them (BG-2).
void BroadcastActor::handle(actor::Context& cx, MeetAgain) {
  tell_events(cx);
  for (auto& [number, epoch] : epochs_) {
    epoch.of_former = true;
    rank_->leave(number, "another exchange follows the one of this epoch");
  }
  up_is_due_ = true;
  say_up(cx);
}

void BroadcastActor::say_up(actor::Context& cx) {
  const auto lasts = [](const auto& epoch) { return epoch.second.of_former; };
  if (!up_is_due_ || std::ranges::any_of(epochs_, lasts)) return;
  up_is_due_ = false;
  outbox_.send(cx,
               messages::BroadcastUp{.from = config_.self, .nccl_version = config_.nccl_version});
}

void BroadcastActor::handle(actor::Context& cx, messages::OpenEpoch order) {
  if (!config_.leads)
    return refuse(cx, order.epoch, "only the learner opens an epoch, and this is a rollout");
  if (!is_group_size(order.size))
    return refuse(cx, order.epoch, out_of_range("a group of size", order.size));
  if (!epochs_.try_emplace(order.epoch).second)
    return refuse(cx, order.epoch, "it was asked to open an epoch that is open");
  rank_->open(order.epoch, order.size);
}

void BroadcastActor::handle(actor::Context& cx, messages::JoinEpoch order) {
  if (config_.leads) return refuse(cx, order.epoch, "the learner opens epochs and joins none");
  if (!is_group_size(order.size))
    return refuse(cx, order.epoch, out_of_range("a group of size", order.size));
  if (order.rank < 1 || order.rank >= order.size)
    return refuse(cx, order.epoch, out_of_range("rank", order.rank));
  if (order.unique_id.size() != collective::kNcclUniqueIdBytes)
    return refuse(cx, order.epoch,
                  "a unique id has " + std::to_string(collective::kNcclUniqueIdBytes) +
                      " bytes, and the one that came has " +
                      std::to_string(order.unique_id.size()));
  if (order.layout_hash != config_.layout.hash)
    return refuse(cx, order.epoch,
                  "the learner's weights have another layout: " +
                      weights::layout_difference(config_.layout.manifest_json, order.layout));
  if (!epochs_.try_emplace(order.epoch).second)
    return refuse(cx, order.epoch, "it was asked into an epoch that it is in");
  collective::NcclRendezvous rendezvous{
      .epoch = order.epoch, .unique_id = {}, .size = order.size, .layout_hash = order.layout_hash};
  std::memcpy(rendezvous.unique_id.internal, order.unique_id.data(), order.unique_id.size());
  rank_->join(rendezvous, order.rank);
}

void BroadcastActor::handle(actor::Context& cx, messages::UseEpoch order) {
  if (!config_.leads || !epochs_.contains(order.epoch))
    return refuse(cx, order.epoch, "it was asked to use an epoch that it has not opened");
  rank_->use(order.epoch);
}

void BroadcastActor::handle(actor::Context&, messages::LeaveEpoch order) {
  log::info("event=leave_epoch actor={} epoch={} why=\"{}\"", config_.self.name, order.epoch,
            order.why);
  if (const auto epoch = epochs_.find(order.epoch); epoch != epochs_.end())
    epoch->second.answer_owed = true;
  // The epoch is erased when the event kLeft says that this rank is out.
  rank_->leave(order.epoch, order.why);
}

void BroadcastActor::refuse(actor::Context& cx, std::uint64_t epoch, const std::string& why) {
  tell_events(cx);
  log::warn("event=epoch_refused actor={} epoch={} why=\"{}\"", config_.self.name, epoch, why);
  outbox_.send(cx, messages::EpochFailed{.from = config_.self, .epoch = epoch, .message = why});
}

void BroadcastActor::tell_events(actor::Context& cx) {
  for (BroadcastEvent& event : rank_->take_events()) tell(cx, std::move(event));
}

void BroadcastActor::tell(actor::Context& cx, BroadcastEvent event) {
  const ActorId& from = config_.self;
  const std::uint64_t epoch = event.epoch;
  if (const auto known = epochs_.find(epoch); known != epochs_.end() && known->second.of_former) {
    if (event.kind != BroadcastEvent::Kind::kLeft) return;
    if (known->second.answer_owed) outbox_.send(cx, messages::EpochLeft{from, epoch});
    epochs_.erase(known);
    return say_up(cx);
  }
  switch (event.kind) {
    case BroadcastEvent::Kind::kOpened:
      return outbox_.send(cx, messages::EpochOpened{.from = from,
                                                    .epoch = epoch,
                                                    .unique_id = {event.unique_id.internal,
                                                                  collective::kNcclUniqueIdBytes},
                                                    .layout_hash = config_.layout.hash,
                                                    .layout = config_.layout.manifest_json});
    case BroadcastEvent::Kind::kJoined:
      log::info("event=epoch_joined actor={} epoch={}", from.name, epoch);
      return outbox_.send(cx, messages::EpochJoined{.from = from, .epoch = epoch});
    case BroadcastEvent::Kind::kInUse:
      return outbox_.send(cx, messages::EpochInUse{.from = from, .epoch = epoch});
    case BroadcastEvent::Kind::kFailed:
      log::warn("event=epoch_failed actor={} epoch={} why=\"{}\"", from.name, epoch, event.message);
      return outbox_.send(
          cx,
          messages::EpochFailed{.from = from, .epoch = epoch, .message = std::move(event.message)});
    case BroadcastEvent::Kind::kLeft:
      epochs_.erase(epoch);
      return outbox_.send(cx, messages::EpochLeft{.from = from, .epoch = epoch});
  }
}

// A late operation is reported once per interval for as long as it is late, but not while earlier
// messages still wait for room on the link.
void BroadcastActor::watch(actor::Context& cx) {
  if (outbox_.empty())
    for (auto& [number, epoch] : epochs_)
      if (!epoch.of_former) tell_progress(cx, number, epoch);
  cx.after(config_.progress_interval, [this](actor::Context& then) { watch(then); });
}

void BroadcastActor::tell_progress(actor::Context& cx, std::uint64_t number, Epoch& epoch) {
  std::vector<messages::EpochOperation> operations = operations_of(number, cx.now());
  const auto interval =
      std::chrono::duration_cast<std::chrono::milliseconds>(config_.progress_interval).count();
  const bool late = std::any_of(operations.begin(), operations.end(), [&](const auto& operation) {
    return under_way(operation.state) && operation.since_ms > interval;
  });
  const bool tells = late || epoch.told_progress;
  epoch.told_progress = late;
  if (!tells) return;
  if (!late) operations.clear();  // an operation that has just begun would look late afterwards
  // The newest operations are kept, since these are the ones that are late.
  if (operations.size() > messages::kEpochOperationsMax)
    operations.erase(operations.begin(), operations.end() - messages::kEpochOperationsMax);
  outbox_.send(cx, messages::EpochProgress{
                       .from = config_.self, .epoch = number, .operations = std::move(operations)});
}

std::vector<messages::EpochOperation> BroadcastActor::operations_of(std::uint64_t epoch,
                                                                    Time now) const {
  std::vector<messages::EpochOperation> operations;
  for (const NcclRecord& record : records_->snapshot())
    // The records are those of the whole process, and a learner also sums gradients by NCCL.
    if (record.epoch == epoch && record.communicator == config_.communicator)
      operations.push_back(operation_of(record, now));
  return operations;
}

}  // namespace tandem::broadcast
