#include "runtime/device/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tandem::runtime {

namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

void release(std::byte* data, std::size_t size) {
  if (data == nullptr) return;
  if (size >= kMappedBytesMin) {
    ::munmap(data, size);
  } else {
    std::free(data);
  }
}

}  // namespace

Result<HostBuffer> HostBuffer::allocate(std::size_t bytes, const char* purpose) {
  HostBuffer buffer;
  if (bytes == 0) return buffer;
  const auto refuse = [&](int error_number) {
    return Error{.code = ErrorCode::kFailed,
                 .message = "cannot allocate " + std::to_string(bytes) + " bytes of memory for " +
                            purpose + ": " + errno_text(error_number)};
  };
  if (bytes >= kMappedBytesMin) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return refuse(errno);
    // Advice only: a kernel without huge pages serves small ones.
    if (bytes >= kHugePageBytes) ::madvise(memory, bytes, MADV_HUGEPAGE);
    buffer.data_ = static_cast<std::byte*>(memory);
  } else {
    void* memory = std::aligned_alloc(kAlignmentBytes, align_up(bytes));
    if (memory == nullptr) return refuse(ENOMEM);
    std::memset(memory, 0, align_up(bytes));
    buffer.data_ = static_cast<std::byte*>(memory);
  }
  buffer.size_ = bytes;
  return buffer;
}

HostBuffer::~HostBuffer() { release(data_, size_); }

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  if (this != &other) {
    release(data_, size_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

}  // namespace tandem::runtime
