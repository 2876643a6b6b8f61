// The emulator's memory, by the names and rules of the CUDA runtime.
//
// A device block is mapped between two pages without access and ends at the second one, so that a
// step over its end is caught at once; its own pages are opened only while queued work runs.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "cuda_runtime.h"
#include "tests/kernels/cuda_emulator/driver.h"

namespace tandem::emulator {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{4} << 30;  // what each device has
constexpr unsigned char kPoison = 0xff;

// The content of a cudaIpcMemHandle_t: the file of the block's pages, as its owner has it open.
struct ForeignBlock {
  pid_t owner;
  int file;
  ino_t inode;  // tells the file from a later one of that number
  std::size_t pages_bytes, bytes, offset;
};
static_assert(sizeof(ForeignBlock) <= sizeof(cudaIpcMemHandle_t));

std::size_t page() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// A block of no memory yet, between its two pages.
bool reserve(Block& block, std::size_t pages_bytes) {
  block.pages_bytes = pages_bytes;
  block.mapping_bytes = pages_bytes + 2 * page();
  block.mapping = ::mmap(nullptr, block.mapping_bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block.mapping == MAP_FAILED) return false;
  block.pages = static_cast<char*>(block.mapping) + page();
  return true;
}

void protect(const Block& block, bool open) {
  ::mprotect(block.pages, block.pages_bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// Fills the block with poison. The pages of a large block belong to a file until they are written
// to: untouched pages do not exist, and cost little to open and to close.
bool poison(const Block& block) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  // Each piece costs time whenever the block is opened or closed.
  constexpr std::size_t kPiece = std::size_t{32} << 20;
  static const int file = [] {
    const int made = ::memfd_create("poison of the emulated GPU", MFD_CLOEXEC);
    const std::string poison(kPiece, static_cast<char>(kPoison));
    return made >= 0 && ::write(made, poison.data(), kPiece) == ssize_t{kPiece} ? made : -1;
  }();
  if (block.pages_bytes < kLarge) {
    protect(block, true);
    std::memset(block.pages, kPoison, block.pages_bytes);
    protect(block, false);
    return true;
  }
  for (std::size_t at = 0; at < block.pages_bytes; at += kPiece) {
    if (::mmap(block.pages + at, std::min(kPiece, block.pages_bytes - at), PROT_NONE,
               MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED) {
      return false;
    }
  }
  return true;
}

bool map_file(const Block& block, int file) {
  return ::mmap(block.pages, block.pages_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0) !=
         MAP_FAILED;
}

// A block that is whole becomes known. Work may be running, for which all blocks are open.
void add(void* address, const Block& block) {
  if (driver().open) protect(block, true);
  driver().blocks.emplace(address, block);
}

void on_fault(int signal, siginfo_t* info, void*) {
  const char* who = driver().open ? "a kernel touched memory that is not in a block of the device"
                                  : "the host touched device memory, or memory of nobody";
  std::array<char, 320> text;
  const int length = std::snprintf(
      text.data(), text.size(), "emulated GPU: %s, at %p; block (%u, %u, %u) thread (%u, %u, %u)\n",
      who, info->si_addr, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
      threadIdx.z);
  static_cast<void>(!::write(2, text.data(), static_cast<std::size_t>(length)));
  ::signal(signal, SIG_DFL);  // and the access is tried again, which ends the process
}

void catch_faults() {
  static const bool once = [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, nullptr);
    return true;
  }();
  static_cast<void>(once);
}

bool is_in(const void* at, const void* begin, std::size_t bytes) {
  return at >= begin && at < static_cast<const char*>(begin) + bytes;
}

using KnownBlock = std::pair<void* const, Block>;

// The block that `at` is in: in its memory, or in the pages without access on either side.
const KnownBlock* block_at(const void* at) {
  const auto next = driver().blocks.upper_bound(const_cast<void*>(at));
  const auto has = [&](const KnownBlock& known) {
    return is_in(at, known.second.mapping, known.second.mapping_bytes);
  };
  if (next != driver().blocks.end() && has(*next)) return &*next;
  if (next == driver().blocks.begin() || !has(*std::prev(next))) return nullptr;
  return &*std::prev(next);
}

// Calls `copy` where `bytes` from `there` on lie in one block or are all the host's.
int with_memory(const void* there, std::size_t bytes, const std::function<void()>& copy) {
  if (bytes == 0) return 0;
  const Lock lock(driver().mutex);
  const void* last = static_cast<const char*>(there) + bytes - 1;
  const KnownBlock* known = block_at(there);
  if (block_at(last) != known) return 1;
  if (known == nullptr) {
    const auto next = driver().blocks.upper_bound(const_cast<void*>(there));
    if (next != driver().blocks.end() && next->first <= last) return 1;
    copy();
    return 0;
  }
  const auto& [address, block] = *known;
  if (!is_in(there, address, block.bytes) || !is_in(last, address, block.bytes)) return 1;
  const bool closed = !driver().open;
  if (closed) protect(block, true);
  copy();
  if (closed) protect(block, false);
  return 0;
}

}  // namespace

void check_slack() {
  for (const auto& [address, block] : driver().blocks) {
    const char* end = static_cast<char*>(address) + block.bytes;
    for (const char* at = end; at < block.pages + block.pages_bytes; ++at) {
      if (static_cast<unsigned char>(*at) != kPoison) {
        broken("a kernel wrote %td bytes past the end of a block of %zu bytes", at - end,
               block.bytes);
      }
    }
  }
}

void set_open(bool open) {
  for (const auto& [address, block] : driver().blocks) protect(block, open);
  driver().open = open;
}

bool stays(const void* address) {
  void* at = const_cast<void*>(address);
  const auto block = driver().blocks.upper_bound(at);
  if (block != driver().blocks.begin()) {
    const auto& [begin, found] = *std::prev(block);
    if (is_in(at, begin, found.bytes)) return true;
  }
  const auto pinned = driver().pinned.upper_bound(at);
  if (pinned == driver().pinned.begin()) return false;
  const auto& [begin, bytes] = *std::prev(pinned);
  return is_in(at, begin, bytes);
}

}  // namespace tandem::emulator

using namespace tandem::emulator;

int tandem_emulated_read(const void* device_memory, void* host, std::size_t bytes) {
  return with_memory(device_memory, bytes, [=] { std::memcpy(host, device_memory, bytes); });
}

int tandem_emulated_write(void* device_memory, const void* host, std::size_t bytes) {
  return with_memory(device_memory, bytes, [=] { std::memcpy(device_memory, host, bytes); });
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const Lock lock(driver().mutex);
  std::size_t& used = driver().used[current_device()];
  *free_bytes = kMemoryBytes - used;
  *total_bytes = kMemoryBytes;
  // A neighbour that asked at the same time takes these bytes; both were told that they are free.
  static std::size_t neighbours = [] {
    const char* bytes = std::getenv("TANDEM_EMULATED_NEIGHBOUR");
    return bytes == nullptr ? 0 : std::strtoull(bytes, nullptr, 10);
  }();
  used += std::min(std::exchange(neighbours, 0), kMemoryBytes - used);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Lock lock(driver().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  Block block{.bytes = bytes, .device = current_device()};
  std::size_t& used = driver().used[block.device];
  if (bytes > kMemoryBytes - used) return cudaErrorMemoryAllocation;
  catch_faults();
  // The address is a multiple of 16, or of more where the size is: 256 like CUDA's for sizes that
  // are, and a vector access at the end of any other is still caught within 16 bytes.
  std::size_t alignment = 256;
  while (alignment > 16 && bytes % alignment != 0) alignment /= 2;
  alignment = std::max<std::size_t>(alignment, 64);
  if (!reserve(block, rounded(rounded(bytes, alignment), page()))) return cudaErrorMemoryAllocation;
  if (!poison(block)) {
    ::munmap(block.mapping, block.mapping_bytes);
    return cudaErrorMemoryAllocation;
  }
  *memory = block.pages + block.pages_bytes - rounded(bytes, alignment);
  used += bytes;
  add(*memory, block);
  return cudaSuccess;
}

int tandem_emulated_allocate(void** device_memory, std::size_t bytes) {
  return cudaMalloc(device_memory, bytes);
}

int tandem_emulated_free(void* device_memory) { return cudaFree(device_memory); }

cudaError_t cudaFree(void* memory) {
  const Lock lock(driver().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  if (memory == nullptr) return cudaSuccess;
  const auto found = driver().blocks.find(memory);
  if (found == driver().blocks.end() || found->second.foreign) return cudaErrorInvalidValue;
  driver().used[found->second.device] -= found->second.bytes;
  if (found->second.file >= 0) ::close(found->second.file);
  ::munmap(found->second.mapping, found->second.mapping_bytes);
  driver().blocks.erase(found);
  return cudaSuccess;
}

// The block's pages become those of a file, which another process opens by way of /proc, whatever
// device it uses. Unlike CUDA the owner may open its own, so that one test can be both sides.
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  Lock lock(driver().mutex);
  await_turn(lock);  // work that touches the block finds it in its place
  const auto found = driver().blocks.find(memory);
  if (found == driver().blocks.end() || found->second.foreign) return cudaErrorInvalidValue;
  Block& block = found->second;
  if (block.file < 0) {
    const int file = ::memfd_create("emulated GPU", MFD_CLOEXEC);
    if (file < 0) return cudaErrorMemoryAllocation;
    protect(block, true);
    std::size_t done = 0;
    for (ssize_t n = 1; n > 0 && done < block.pages_bytes; done += static_cast<std::size_t>(n))
      n = std::max<ssize_t>(0, ::write(file, block.pages + done, block.pages_bytes - done));
    protect(block, false);
    if (done < block.pages_bytes || !map_file(block, file)) {
      ::close(file);
      return cudaErrorMemoryAllocation;
    }
    block.file = file;
  }
  struct stat facts {};
  ::fstat(block.file, &facts);
  const auto offset = static_cast<std::size_t>(static_cast<char*>(memory) - block.pages);
  const ForeignBlock name{::getpid(),        block.file,  facts.st_ino,
                          block.pages_bytes, block.bytes, offset};
  std::memcpy(handle, &name, sizeof name);
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned) {
  const Lock lock(driver().mutex);
  ForeignBlock name{};
  std::memcpy(&name, &handle, sizeof name);
  const std::string path =
      "/proc/" + std::to_string(name.owner) + "/fd/" + std::to_string(name.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return cudaErrorInvalidResourceHandle;
  struct stat facts {};
  ::fstat(file, &facts);
  catch_faults();
  Block block{.bytes = name.bytes, .device = current_device(), .foreign = true};
  const bool same =
      facts.st_ino == name.inode && static_cast<std::size_t>(facts.st_size) == name.pages_bytes;
  const bool mapped = same && reserve(block, name.pages_bytes) && map_file(block, file);
  ::close(file);
  if (!mapped) return cudaErrorInvalidResourceHandle;
  *memory = block.pages + name.offset;
  add(*memory, block);
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* memory) {
  const Lock lock(driver().mutex);
  const auto found = driver().blocks.find(memory);
  if (found == driver().blocks.end() || !found->second.foreign) return cudaErrorInvalidValue;
  ::munmap(found->second.mapping, found->second.mapping_bytes);
  driver().blocks.erase(found);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const Lock lock(driver().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  *memory = std::aligned_alloc(64, rounded(bytes, 64));
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  driver().pinned[*memory] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  const Lock lock(driver().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  driver().pinned.erase(memory);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  Lock lock(driver().mutex);
  if (find(stream)->recorded && !(stays(to) && stays(from))) {
    return cudaErrorStreamCaptureUnsupported;
  }
  queue(lock, stream, {.work = [=] { std::memmove(to, from, bytes); }});
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  Lock lock(driver().mutex);
  queue(lock, stream, {.work = [=] { std::memset(to, value, bytes); }});
  return cudaSuccess;
}
