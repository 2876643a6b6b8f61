#include "runtime/weights/read_back.h"

#include <algorithm>

namespace tandem::weights {
namespace {

constexpr std::size_t kReadBackBytes = std::size_t{8} << 20;

}  // namespace

Result<std::unique_ptr<ReadBack>> ReadBack::make(device::DeviceKind device,
                                                 std::size_t arena_bytes) {
  device::Buffer pinned;
  if (device == device::DeviceKind::kCuda) {
    auto allocated =
        device::Buffer::allocate(std::min(arena_bytes, kReadBackBytes),
                                 "weights that are read back", device::MemoryKind::kPinned);
    if (!allocated) return allocated.error();
    pinned = *std::move(allocated);
  }
  return std::make_unique<ReadBack>(device, std::move(pinned));
}

std::span<const std::byte> ReadBack::copy_part(const std::byte* from, std::span<std::byte> part) {
  const device::Stream& stream = queue_.stream();
  if (stream.device == device::DeviceKind::kCuda)
    part = part.first(std::min(part.size(), pinned_.size()));
  copy(stream, part.data(), from, part.size());
  if (stream.device == device::DeviceKind::kCpu) return part;
  // The bytes are read back from `part` and not from `from`: the checksum is to cover the bytes
  // that arrived.
  copy(stream, pinned_.data(), part.data(), part.size());
  synchronize(stream);
  return pinned_.bytes().first(part.size());
}

}  // namespace tandem::weights
