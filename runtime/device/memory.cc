// One allocator per kind of memory, chosen by block(). Every allocator returns zeroed memory: mmap
// does so by itself, the others clear. release() must undo exactly the allocation that was made, so
// it repeats the choice between mmap and malloc by the same size, kMappedBytesMin.
#include "runtime/device/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/device/queue.h"

namespace tandem::device {

namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// These are statistics (host_blocks()); no decision depends on them. A peak that another thread
// raises at the same moment is kept: the exchange loop only ever raises it.
std::atomic<std::size_t> host_bytes_now = 0, host_bytes_peak = 0;

void count_allocated(MemoryKind kind, std::size_t bytes) {
  if (kind == MemoryKind::kDevice) return;
  const std::size_t now = host_bytes_now.fetch_add(bytes) + bytes;
  std::size_t peak = host_bytes_peak.load();
  while (peak < now && !host_bytes_peak.compare_exchange_weak(peak, now)) continue;
}

Error no_memory(ErrorCode code, std::size_t bytes, const char* purpose, const std::string& why) {
  return {.code = code,
          .message = "cannot allocate " + std::to_string(bytes) + " bytes of memory for " +
                     purpose + ": " + why};
}

Result<std::byte*> host_block(std::size_t bytes, const char* purpose) {
  if (bytes >= kMappedBytesMin) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return no_memory(ErrorCode::kFailed, bytes, purpose, errno_text(errno));
    }
    // Advice only: a kernel without huge pages serves small ones.
    if (bytes >= kHugePageBytes) ::madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<std::byte*>(memory);
  }
  void* memory = std::aligned_alloc(kAlignmentBytes, align_up(bytes));
  if (memory == nullptr) {
    return no_memory(ErrorCode::kFailed, bytes, purpose, errno_text(ENOMEM));
  }
  std::memset(memory, 0, align_up(bytes));
  return static_cast<std::byte*>(memory);
}

Result<std::byte*> pinned_block(std::size_t bytes, const char* purpose) {
  void* memory = cuda_module().value()->allocate_pinned(bytes);
  if (memory == nullptr) {
    return no_memory(ErrorCode::kOutOfMemory, bytes, purpose, "the host can pin no more");
  }
  std::memset(memory, 0, bytes);
  return static_cast<std::byte*>(memory);
}

Result<std::byte*> device_block(std::size_t bytes, const char* purpose) {
  const CudaModule& module = *cuda_module().value();
  void* memory = module.allocate(bytes);
  if (memory == nullptr) {
    const MemoryInfo info = module.memory_info();
    return no_memory(ErrorCode::kOutOfMemory, bytes, purpose,
                     "of the GPU's " + std::to_string(info.total_bytes) + " bytes " +
                         std::to_string(info.free_bytes) + " are free");
  }
  // cudaMalloc does not clear memory. The work runs on a queue of its own, since no stream of the
  // caller is known here.
  const Queue queue(DeviceKind::kCuda);
  zero(queue.stream(), memory, bytes);
  synchronize(queue.stream());
  return static_cast<std::byte*>(memory);
}

Result<std::byte*> block(MemoryKind kind, std::size_t bytes, const char* purpose) {
  switch (kind) {
    case MemoryKind::kHost:
      return host_block(bytes, purpose);
    case MemoryKind::kPinned:
      return pinned_block(bytes, purpose);
    case MemoryKind::kDevice:
      return device_block(bytes, purpose);
  }
  CHECK(false);
}

void release(MemoryKind kind, std::byte* data, std::size_t size) {
  if (data == nullptr) return;
  if (kind != MemoryKind::kDevice) host_bytes_now.fetch_sub(size);
  switch (kind) {
    case MemoryKind::kHost:
      if (size >= kMappedBytesMin) {
        ::munmap(data, size);
      } else {
        std::free(data);
      }
      return;
    case MemoryKind::kPinned:
      return cuda_module().value()->release_pinned(data);
    case MemoryKind::kDevice:
      return cuda_module().value()->release(data);
  }
}

}  // namespace

Result<Buffer> Buffer::allocate(std::size_t bytes, const char* purpose, MemoryKind kind) {
  Buffer buffer;
  buffer.kind_ = kind;
  if (bytes == 0) return buffer;
  const Result<std::byte*> memory = block(kind, bytes, purpose);
  if (!memory) return memory.error();
  buffer.data_ = *memory;
  buffer.size_ = bytes;
  count_allocated(kind, bytes);
  return buffer;
}

Buffer::~Buffer() { release(kind_, data_, size_); }

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      kind_(other.kind_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release(kind_, data_, size_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    kind_ = other.kind_;
  }
  return *this;
}

HostBlocks host_blocks() {
  return {.bytes_now = host_bytes_now.load(), .bytes_peak = host_bytes_peak.load()};
}

void reset_host_blocks_peak() { host_bytes_peak = host_bytes_now.load(); }

MemoryInfo memory_info(DeviceKind device) {
  if (device == DeviceKind::kCuda) return cuda_module().value()->memory_info();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return {.free_bytes = static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * page,
          .total_bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page};
}

}  // namespace tandem::device
