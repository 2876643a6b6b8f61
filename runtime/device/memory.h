// An owned block of memory on a device: zeroed, aligned to kAlignmentBytes, movable, freed at the
// end. Which device is a value; only looking into the block needs a CPU's.
//
// On a CPU, from kMappedBytesMin on, it is mapped on its own (transparent huge pages where the
// system has them), so that untouched pages cost nothing and freeing gives them back at once.
// On a GPU the CUDA module must have been found (cuda_module.h). Work that uses a block must have
// ended before the block does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/result.h"
#include "runtime/device/cuda_module.h"
#include "runtime/device/stream.h"

namespace tandem::runtime {

inline constexpr std::size_t kAlignmentBytes = 64;
inline constexpr std::size_t kMappedBytesMin = std::size_t{1} << 20;

constexpr std::size_t align_up(std::size_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

// Left alone on a GPU, for what CUDA and its libraries take when kernels are first launched:
// whoever plans to fill one stays below what is free by this much.
inline constexpr std::size_t kGpuReserveBytes = std::size_t{1} << 30;

// Where a block lies.
enum class Place : std::uint8_t {
  kHost,
  kPinned,  // host memory that a GPU copies from and to while the host goes on
  kDevice,  // a GPU's
};

// Of a device's operands, and of the host's side of copies from and to it.
constexpr Place operand_place(DeviceKind device) {
  return device == DeviceKind::kCpu ? Place::kHost : Place::kDevice;
}
constexpr Place staging_place(DeviceKind device) {
  return device == DeviceKind::kCpu ? Place::kHost : Place::kPinned;
}

class Buffer {
 public:
  Buffer() = default;
  // `purpose` names the owner in the error: "the weights", "KV pages". No room on a GPU is the
  // error kOutOfMemory, which says what was asked and what was free.
  static Result<Buffer> allocate(std::size_t bytes, const char* purpose,
                                 Place place = Place::kHost);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  Place place() const { return place_; }
  // The block itself, for a host's eyes: of a kDevice block it is a bug.
  std::span<std::byte> bytes() const {
    CHECK(place_ != Place::kDevice);
    return {data_, size_};
  }
  // The block as elements of T, as many as fit; likewise.
  template <class T>
  std::span<T> as() const {
    CHECK(place_ != Place::kDevice);
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Place place_ = Place::kHost;
};

// Bytes of host memory (kHost, kPinned) that this process holds in blocks now, and the most that it
// has held at a time since reset_host_blocks_peak(). For tests, and for the comparison of a memory
// plan with what was allocated; nothing depends on them.
struct HostBlocks {
  std::size_t bytes_now = 0;
  std::size_t bytes_peak = 0;
};
HostBlocks host_blocks();
void reset_host_blocks_peak();

// What a device has. Of a CPU: the machine's memory, and what is available of it.
MemoryInfo memory_info(DeviceKind device);

}  // namespace tandem::runtime
