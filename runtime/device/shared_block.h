// A block of a GPU's memory that its owner lets other processes on the same GPU open (CUDA IPC).
// Owner and openers agree by other means on the content and on when it may be read.
//
// CUDA leaves undefined what an opener reads from a block that its owner has freed, and whether the
// memory of an owner that died stays readable is unproved. The code relies on neither: openers ask
// whether the owner is alive before they read, and again before they use the bytes that they read.
#pragma once

#include <array>
#include <cstddef>

#include "runtime/base/result.h"
#include "runtime/device/cuda_module.h"
#include "runtime/device/memory.h"

namespace tandem::device {

// The name under which other processes open a block. Plain bytes: it may be copied into shared
// memory or a message.
struct BlockName {
  alignas(8) std::array<std::byte, kIpcHandleBytes> handle;
};

// Names a block in kDevice (CHECKed). The name is valid until the block is freed. kInfeasible where
// the driver cannot share the block.
Result<BlockName> share(const Buffer& block);

// A block of another process, open in this one until the object is destroyed.
class SharedBlock {
 public:
  // kNotFound where the owner has ended, or where the block is on a GPU that this process does not
  // see. A process cannot open a block of its own.
  static Result<SharedBlock> open(const BlockName& name);
  ~SharedBlock();
  SharedBlock(SharedBlock&& other) noexcept;
  SharedBlock& operator=(SharedBlock&& other) noexcept;

  std::byte* data() const { return data_; }  // device memory: the host cannot read it

 private:
  explicit SharedBlock(std::byte* data) : data_(data) {}

  std::byte* data_;
};

}  // namespace tandem::device
