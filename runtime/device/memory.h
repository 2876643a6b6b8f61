// An owned block of host memory: zeroed, aligned to kAlignmentBytes, movable, freed at the end.
//
// From kMappedBytesMin on it is mapped on its own (transparent huge pages where the system has
// them), so that untouched pages cost nothing and freeing gives them back at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/result.h"

namespace tandem::runtime {

inline constexpr std::size_t kAlignmentBytes = 64;
inline constexpr std::size_t kMappedBytesMin = std::size_t{1} << 20;

constexpr std::size_t align_up(std::size_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

class HostBuffer {
 public:
  HostBuffer() = default;
  // `purpose` names the owner in the error: "the weights", "KV pages".
  static Result<HostBuffer> allocate(std::size_t bytes, const char* purpose);
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }
  // The block as elements of T, as many as fit.
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tandem::runtime
