// NCCL in one rank process: the library, the thread that calls it, and the records of its
// operations, all shared by the communicators of the process. Operations that are under way run on
// the GPU of the process.
#pragma once

#include <memory>

#include "runtime/base/result.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/collective/nccl_thread.h"

namespace tandem::app {

// Outlives the communicators of the process. A call of NCCL that does not come back ends the
// process (NH-2), and the controller starts the rank again.
class RankNccl {
 public:
  // Errors: kNotFound or kInfeasible without a GPU or without a suitable library of NVIDIA; the
  // message says what was looked for and what to do.
  static Result<std::unique_ptr<RankNccl>> open();

  explicit RankNccl(collective::NcclProcess process);
  const collective::NcclProcess& process() const { return process_; }

 private:
  collective::NcclThread thread_;
  collective::NcclProcess process_;
};

}  // namespace tandem::app
