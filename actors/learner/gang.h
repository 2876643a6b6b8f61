// The ranks of one learner as a rank's trainer sees them: rank 0 gives commands, the others follow,
// and all ranks add up their sums. A gang of one rank needs no collective: every call then returns
// at once.
//
// All ranks must make the same calls in the same order; only command() and await_command() differ.
// A call blocks until the other ranks have come to it or the timeout has passed. Errors have the
// code kFailed, because a broken gang is started again as a whole. Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/collective/collective.h"

namespace tandem::learner {

// The next task of a rank other than 0: to repeat one call of rank 0's Trainer, or to end (kStop).
enum class GangCommand : std::uint32_t { kRestore, kWarmStart, kTrain, kSave, kStop };

// The content of a kTrain command is an encoded batch of tokens.
inline constexpr std::uint64_t kCommandBytesMax = 1ull << 31;

// Turns the Error of a collective operation into one of the whole gang, with the code kFailed.
Error broken_gang(const Error& error);

class Gang {
 public:
  // `collective` is null for a gang of one rank. `timeout` limits every call except the wait for a
  // command.
  Gang(std::unique_ptr<collective::Collective> collective, Duration timeout);

  int rank() const { return collective_ ? collective_->rank() : 0; }
  int ranks() const { return collective_ ? collective_->size() : 1; }

  // Rank 0 only: sends a command to all other ranks.
  Result<void> command(GangCommand command, std::string_view content);
  struct Received {
    GangCommand command;
    std::string content;
  };
  // The other ranks only: waits for the next command, without a deadline, because rank 0 may be
  // idle for as long as rollouts need. The death of rank 0 ends the wait at once (CO-3), and a rank
  // 0 that hangs ends it when the hang is found (CO-5).
  Result<Received> await_command();

  // Replaces `values` on every rank by their sums over all ranks, added in rank order.
  Result<void> sum(std::span<float> values);
  // Adds up every rank's `sums` in rank order, and finds the greatest `maximum` (a NaN counts as
  // the greatest). All ranks get the same bits.
  Result<void> reduce(std::span<double> sums, double& maximum);
  // Waits until all ranks have called it.
  Result<void> barrier();
  // Returns an Error unless all ranks have the same `value`. `what` describes the value in the
  // error
  // ("the restored checkpoint").
  Result<void> agree(std::string_view value, std::string_view what);

 private:
  Result<std::vector<std::string>> gather(std::string_view blob);

  std::unique_ptr<collective::Collective> collective_;
  Duration timeout_;
};

}  // namespace tandem::learner
