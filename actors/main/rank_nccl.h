// NCCL as one rank process has it: the library, the thread that calls it, and the records of its
// operations, which the communicators of the process share. What is under way is on the GPU of the
// process.
#pragma once

#include <memory>

#include "runtime/base/result.h"
#include "runtime/collective/nccl_communicator.h"
#include "runtime/collective/nccl_thread.h"

namespace tandem::cli {

// Outlives the communicators. A call of NCCL that does not come back ends the process (NH-2); the
// controller then starts the rank again.
class RankNccl {
 public:
  // Errors: kNotFound or kInfeasible without a library of NVIDIA's that will do, or without a GPU;
  // they say what was looked for and what to do.
  static Result<std::unique_ptr<RankNccl>> open();

  explicit RankNccl(runtime::NcclProcess process);
  const runtime::NcclProcess& process() const { return process_; }

 private:
  runtime::NcclThread thread_;
  runtime::NcclProcess process_;
};

}  // namespace tandem::cli
