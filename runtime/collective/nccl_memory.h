// GPU memory that NCCL allocates, because only such memory can be registered with a communicator:
// other GPUs and network cards then read and write it directly, where NCCL else copies through
// buffers of its own (ncclMemAlloc and ncclCommRegister, NCCL's user guide, "User Buffer
// Registration"). All ranks of a communicator register the memory of an operation, or none does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/collective/nccl_process.h"

namespace tandem::collective {

// Any thread may call. The process's NcclThread must outlive it.
class NcclMemory {
 public:
  // Memory with unspecified content. `purpose` names its owner in the error: "the staging buckets".
  // Errors: kInvalid for no bytes; kTimedOut; kFailed with NCCL's own words, such as no room.
  static Result<std::shared_ptr<NcclMemory>> allocate(const NcclProcess& process, std::size_t bytes,
                                                      const char* purpose, Duration timeout);
  // Has the memory freed on NCCL's thread, behind the work that was posted there before. No work of
  // a GPU that uses the memory may be left.
  ~NcclMemory();
  NcclMemory(const NcclMemory&) = delete;
  NcclMemory& operator=(const NcclMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  NcclMemory(const NcclProcess& process, std::byte* data, std::size_t size);

  const NcclProcess process_;
  std::byte* const data_;
  const std::size_t size_;
};

// How much of the GPU a block of so many bytes takes at most. NCCL rounds up to what CUDA
// recommends for memory that several GPUs share: 512 MiB where the GPU can multicast (NVLink
// switches), else 2 MiB. 0 for no bytes.
std::uint64_t nccl_memory_taken(std::uint64_t bytes);

}  // namespace tandem::collective
