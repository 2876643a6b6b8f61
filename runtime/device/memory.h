// An owned block of memory on a device: zeroed, aligned to kAlignmentBytes, movable, freed by the
// destructor. The kind of a block is a value of the object; only access from the host needs host
// memory.
//
// On a CPU, blocks of kMappedBytesMin bytes or more are mapped one by one (with transparent huge
// pages where the system has them), so that untouched pages cost nothing and freeing gives pages
// back at once. On a GPU the CUDA module must have been found (cuda_module.h). Work that uses a
// block must have ended before the block is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/result.h"
#include "runtime/device/cuda_module.h"
#include "runtime/device/stream.h"

namespace tandem::device {

inline constexpr std::size_t kAlignmentBytes = 64;
inline constexpr std::size_t kMappedBytesMin = std::size_t{1} << 20;

// Rounds up to a multiple of kAlignmentBytes.
constexpr std::size_t align_up(std::size_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

// Bytes of a GPU that plans leave unused, for the memory that CUDA and its libraries take when
// kernels are first launched: whoever plans to fill a GPU stays below the free memory by this much.
inline constexpr std::size_t kGpuReserveBytes = std::size_t{1} << 30;

// The memory in which a block lies.
enum class MemoryKind : std::uint8_t {
  kHost,
  kPinned,  // host memory that a GPU copies from and to while the host goes on
  kDevice,  // a GPU's
};

// The memory of a device's operands, and of the host's side of copies to and from the device.
constexpr MemoryKind operand_memory(DeviceKind device) {
  return device == DeviceKind::kCpu ? MemoryKind::kHost : MemoryKind::kDevice;
}
constexpr MemoryKind staging_memory(DeviceKind device) {
  return device == DeviceKind::kCpu ? MemoryKind::kHost : MemoryKind::kPinned;
}

class Buffer {
 public:
  Buffer() = default;
  // `purpose` names the owner in the error: "the weights", "KV pages". No room on a GPU, or no more
  // pinned memory, is kOutOfMemory with the bytes that were asked and that were free; a failed
  // allocation of plain host memory is kFailed. A block of 0 bytes has no address.
  static Result<Buffer> allocate(std::size_t bytes, const char* purpose,
                                 MemoryKind kind = MemoryKind::kHost);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  MemoryKind kind() const { return kind_; }
  // The block as the host reads and writes it. A kDevice block has no such view (CHECKed).
  std::span<std::byte> bytes() const {
    CHECK(kind_ != MemoryKind::kDevice);
    return {data_, size_};
  }
  // The block as elements of T, as many as fit. A kDevice block is refused as well (CHECKed).
  template <class T>
  std::span<T> as() const {
    CHECK(kind_ != MemoryKind::kDevice);
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  MemoryKind kind_ = MemoryKind::kHost;
};

// Bytes of host memory (kHost, kPinned) that this process holds in blocks at present, and the most
// that it has held at a time since reset_host_blocks_peak(). For tests, and for the comparison of a
// memory plan with the memory that was allocated; no decision depends on the counts.
struct HostBlocks {
  std::size_t bytes_now = 0;
  std::size_t bytes_peak = 0;
};
HostBlocks host_blocks();
void reset_host_blocks_peak();

// The memory of a device, in all and free. For a CPU these are the machine's memory and the part of
// it that is available.
MemoryInfo memory_info(DeviceKind device);

}  // namespace tandem::device
