#include "runtime/device/shared_block.h"

#include <string>
#include <utility>

namespace tandem::device {

Result<BlockName> share(const Buffer& block) {
  CHECK(block.kind() == MemoryKind::kDevice);
  BlockName name{};
  if (const char* why = cuda_module().value()->ipc_export(block.data(), name.handle.data()))
    return Error{.code = ErrorCode::kInfeasible,
                 .message = "cannot share a block of the GPU's memory: " + std::string(why)};
  return name;
}

Result<SharedBlock> SharedBlock::open(const BlockName& name) {
  void* memory = nullptr;
  if (const char* why = cuda_module().value()->ipc_open(name.handle.data(), &memory))
    return Error{
        .code = ErrorCode::kNotFound,
        .message = "cannot open another process's block of the GPU's memory: " + std::string(why)};
  return SharedBlock(static_cast<std::byte*>(memory));
}

SharedBlock::~SharedBlock() {
  if (data_ != nullptr) cuda_module().value()->ipc_close(data_);
}

SharedBlock::SharedBlock(SharedBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)) {}

SharedBlock& SharedBlock::operator=(SharedBlock&& other) noexcept {
  // `other` closes the block that this one had.
  std::swap(data_, other.data_);
  return *this;
}

}  // namespace tandem::device
