// A block of a GPU's memory that its owner lets other processes on that GPU open (CUDA IPC). What
// it holds and when it may be read is for owner and openers to agree on. CUDA leaves undefined what
// an opener reads that has it open still when the owner frees it; whether the memory of an owner
// that died lives on so long is unproved. So nobody relies on either: openers ask whether the owner
// is there before they read, and again before they use what they read.
#pragma once

#include <array>
#include <cstddef>

#include "runtime/base/result.h"
#include "runtime/device/cuda_module.h"
#include "runtime/device/memory.h"

namespace tandem::runtime {

// Plain bytes, which may travel as such.
struct BlockName {
  alignas(8) std::array<std::byte, kIpcHandleBytes> handle;
};

// Of a block in kDevice, for as long as it lives. kInfeasible where the driver cannot share it.
Result<BlockName> share(const Buffer& block);

// Another process's block, open until the end of this.
class SharedBlock {
 public:
  // kNotFound where the owner has gone or the block is on a GPU that this process does not see.
  static Result<SharedBlock> open(const BlockName& name);
  ~SharedBlock();
  SharedBlock(SharedBlock&& other) noexcept;
  SharedBlock& operator=(SharedBlock&& other) noexcept;

  std::byte* data() const { return data_; }

 private:
  explicit SharedBlock(std::byte* data) : data_(data) {}

  std::byte* data_;
};

}  // namespace tandem::runtime
