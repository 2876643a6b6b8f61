#include "runtime/device/staged.h"

#include <utility>

#include "runtime/device/queue.h"

namespace tandem::runtime {

Result<Staged> Staged::allocate(std::size_t bytes, const char* purpose, DeviceKind device) {
  Result<Buffer> host = Buffer::allocate(bytes, purpose, staging_place(device));
  if (!host) return host.error();
  Staged staged;
  staged.host_ = *std::move(host);
  if (device == DeviceKind::kCpu) return staged;
  Result<Buffer> there = Buffer::allocate(bytes, purpose, operand_place(device));
  if (!there) return there.error();
  staged.device_ = *std::move(there);
  return staged;
}

void Staged::upload(const Stream& stream, std::size_t bytes) const {
  CHECK(bytes <= size());
  if (device_.data() != nullptr) copy(stream, device_.data(), host_.data(), bytes);
}

void Staged::download(const Stream& stream, std::size_t bytes) const {
  CHECK(bytes <= size());
  if (device_.data() != nullptr) copy(stream, host_.data(), device_.data(), bytes);
}

}  // namespace tandem::runtime
