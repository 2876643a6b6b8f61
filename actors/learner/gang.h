// The ranks of one learner as a rank's trainer sees them: rank 0 gives commands, the others follow;
// all sum what they have. A gang of one needs no collective, and every call is then free.
//
// Errors have the code kFailed: a broken gang is started again as a whole.
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

namespace tandem::actors {

enum class GangCommand : std::uint32_t { kRestore, kWarmStart, kTrain, kSave, kStop };

inline constexpr std::uint64_t kCommandBytesMax = 1ull << 31;

// The Error of a collective operation, told as one of the whole gang: its code is kFailed.
Error broken_gang(const Error& error);

class Gang {
 public:
  // `collective` may be null: one rank. `timeout` is that of each call but the wait for a command.
  Gang(std::unique_ptr<runtime::Collective> collective, Duration timeout);

  int rank() const { return collective_ ? collective_->rank() : 0; }
  int ranks() const { return collective_ ? collective_->size() : 1; }

  Result<void> command(GangCommand command, std::string_view content);  // rank 0
  struct Received {
    GangCommand command;
    std::string content;
  };
  // The others. Rank 0 may be idle for as long as rollouts need; its death ends the wait at once
  // (CO-3), and so does its hanging when that is found (CO-5).
  Result<Received> await_command();

  Result<void> sum(std::span<float> values);
  // Every rank's sums, added in rank order, and the greatest of their maxima (a NaN is greatest);
  // the same bits on all ranks.
  Result<void> reduce(std::span<double> sums, double& maximum);
  // Until all ranks have come to it.
  Result<void> barrier();
  // An Error unless all ranks have the same `value`, which is `what` ("the restored checkpoint").
  Result<void> agree(std::string_view value, std::string_view what);

 private:
  Result<std::vector<std::string>> gather(std::string_view blob);

  std::unique_ptr<runtime::Collective> collective_;
  Duration timeout_;
};

}  // namespace tandem::actors
