#include "runtime/collective/nccl_communicator.h"

#include <utility>

#include "runtime/collective/collective.h"
#include "runtime/collective/nccl_operation.h"
#include "runtime/collective/nccl_question.h"
#include "runtime/collective/nccl_state.h"

namespace tandem::collective {

std::uint64_t NcclTicket::sequence() const { return submitted_->sequence; }

std::optional<Result<void>> NcclTicket::outcome() const {
  return submitted_->communicator->outcome_of(*submitted_);
}

Result<void> NcclTicket::wait() const { return submitted_->communicator->wait_for(*submitted_); }

Result<std::unique_ptr<NcclCommunicator>> NcclCommunicator::start(const NcclProcess& process,
                                                                  const NcclEpoch& epoch,
                                                                  Duration timeout) {
  // NC-5: refused before NCCL sees it.
  if (epoch.size < 1 || epoch.size > kRanksMax || epoch.rank < 0 || epoch.rank >= epoch.size)
    return refusal("cannot start " + epoch.name, "there is no rank " + std::to_string(epoch.rank) +
                                                     " of " + std::to_string(epoch.size));
  auto state = std::make_shared<CommunicatorState>(process, epoch, steady_now() + timeout);
  // The thread holds the state until the communicator is closed, also if this object ends before.
  process.thread->poll([state](NcclCalls& calls) { return state->poll(calls); });
  return std::unique_ptr<NcclCommunicator>(new NcclCommunicator(std::move(state)));
}

NcclCommunicator::~NcclCommunicator() {
  abort("its owner left it");
  state_->closes_by(steady_now() + state_->thread().grace());
}

std::optional<Result<void>> NcclCommunicator::started() const { return state_->started(); }

Result<void> NcclCommunicator::wait_started() const { return state_->wait_started(); }

Result<NcclTicket> NcclCommunicator::submit(NcclOperation operation) {
  auto submitted = state_->submit(std::move(operation));
  if (!submitted) return submitted.error();
  return NcclTicket(*std::move(submitted));
}

void NcclCommunicator::abort(const std::string& why) {
  state_->fail({.code = ErrorCode::kFailed,
                .message = state_->label() + " was aborted: " + why,
                .where = {},
                .help = {}});
  state_->thread().post([](NcclCalls&) {});
}

Result<void> NcclCommunicator::finish(Duration timeout) {
  const Time deadline = steady_now() + timeout;
  state_->ask_to_finish(deadline);
  state_->thread().post([](NcclCalls&) {});
  return state_->wait_closed(deadline + state_->thread().grace());
}

std::optional<Error> NcclCommunicator::failure() const { return state_->failure(); }

Result<NcclUniqueId> make_nccl_unique_id(const NcclProcess& process, Duration timeout) {
  return ask_nccl<NcclUniqueId>(
      process, "ncclGetUniqueId", timeout,
      [api = process.api](NcclCalls& calls, Time deadline) -> Result<NcclUniqueId> {
        NcclUniqueId id;
        const std::string owner = "this process";
        const NcclResult result =
            calls("ncclGetUniqueId", owner, deadline, [&] { return api.get_unique_id(&id); });
        if (result == NcclResult::kSuccess) return id;
        return nccl_failure(api, "ncclGetUniqueId", result, nullptr, "cannot make a meeting place");
      });
}

}  // namespace tandem::collective
