// The emulator's memory, streams and events, by the names and rules of the CUDA runtime.
//
// A device block is mapped between two pages that nobody may touch and ends at the second one, so
// that a step over its end is caught at once; its own pages are opened only while queued work runs.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "cuda_runtime.h"

struct tandem_emulated_stream {
  std::deque<std::function<void()>> work;
};

struct tandem_emulated_event {
  cudaStream_t stream = nullptr;  // where it was last recorded; null: nowhere, or it has passed
};

namespace tandem::emulator {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{4} << 30;
constexpr std::size_t kSharedBytesDefault = 48 << 10, kSharedBytesMax = 227 << 10;
constexpr unsigned kThreadsMax = 1024, kGridMax = 65535;
constexpr unsigned char kPoison = 0xff;

struct Block {
  void* mapping = nullptr;
  std::size_t mapping_bytes = 0;
  char* pages = nullptr;
  std::size_t pages_bytes = 0;
  std::size_t bytes = 0;  // as asked for; the slack behind it holds poison
};

struct Device {
  std::recursive_mutex mutex;
  std::map<void*, Block> blocks;  // by the address that the caller knows
  std::unordered_map<const void*, std::size_t> shared_allowed;
  std::size_t used = 0;
  bool open = false;  // device memory may be touched
};

Device& device() {
  static Device* only = new Device;
  return *only;
}

std::size_t page() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

void protect(const Block& block, bool open) {
  ::mprotect(block.pages, block.pages_bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void on_fault(int signal, siginfo_t* info, void*) {
  const char* who = device().open ? "a kernel touched memory that is not in a block of the device"
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

// What lies between a block's end and its last page's must still be poison.
void check_slack() {
  for (const auto& [address, block] : device().blocks) {
    const char* end = static_cast<char*>(address) + block.bytes;
    for (const char* at = end; at < block.pages + block.pages_bytes; ++at) {
      if (static_cast<unsigned char>(*at) != kPoison) {
        broken("a kernel wrote %td bytes past the end of a block of %zu bytes", at - end,
               block.bytes);
      }
    }
  }
}

void run_item(const std::function<void()>& item) {
  Device& d = device();
  for (const auto& [address, block] : d.blocks) protect(block, true);
  d.open = true;
  item();
  check_slack();
  d.open = false;
  for (const auto& [address, block] : d.blocks) protect(block, false);
}

void run_all(cudaStream_t stream) {
  while (!stream->work.empty()) {
    const std::function<void()> item = std::move(stream->work.front());
    stream->work.pop_front();
    item();
  }
}

void queue(cudaStream_t stream, std::function<void()> item) {
  if (stream == nullptr) broken("work on the default stream, which waits for all others");
  stream->work.push_back([item = std::move(item)] { run_item(item); });
}

bool valid(const cudaLaunchConfig_t& config, const void* kernel) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  const auto allowed = device().shared_allowed.find(kernel);
  const std::size_t shared =
      allowed == device().shared_allowed.end() ? kSharedBytesDefault : allowed->second;
  return grid.x >= 1 && grid.x <= 0x7fffffffu && grid.y >= 1 && grid.y <= kGridMax && grid.z >= 1 &&
         grid.z <= kGridMax && block.x >= 1 && block.y >= 1 && block.z >= 1 && block.z <= 64 &&
         std::uint64_t{block.x} * block.y * block.z <= kThreadsMax &&
         config.dynamicSmemBytes <= shared;
}

}  // namespace

cudaError_t allow_shared(const void* kernel, int bytes) {
  const std::lock_guard lock(device().mutex);
  if (bytes < 0 || static_cast<std::size_t>(bytes) > kSharedBytesMax) return cudaErrorInvalidValue;
  device().shared_allowed[kernel] = static_cast<std::size_t>(bytes);
  return cudaSuccess;
}

cudaError_t enqueue(const cudaLaunchConfig_t& config, const void* kernel,
                    std::function<void()> thread) {
  const std::lock_guard lock(device().mutex);
  if (!valid(config, kernel)) return cudaErrorInvalidConfiguration;
  queue(config.stream, [config, thread = std::move(thread)] {
    blockDim = config.blockDim;
    gridDim = config.gridDim;
    run_grid(config.dynamicSmemBytes, thread);
  });
  return cudaSuccess;
}

void enqueue_work(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(device().mutex);
  queue(stream, std::move(work));
}

}  // namespace tandem::emulator

using namespace tandem::emulator;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t) { return "as emulated"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

// None where a test says so.
cudaError_t cudaDriverGetVersion(int* version) {
  *version = std::getenv("TANDEM_EMULATED_WITHOUT_DRIVER") == nullptr ? 13000 : 0;
  return cudaSuccess;
}

// No device where CUDA_VISIBLE_DEVICES says so, as with CUDA.
cudaError_t cudaGetDeviceCount(int* count) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  *count = visible != nullptr && *visible == '\0' ? 0 : 1;
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::snprintf(properties->name, sizeof properties->name, "emulated");
  properties->multiProcessorCount = 4;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const std::lock_guard lock(device().mutex);
  *free_bytes = kMemoryBytes - device().used;
  *total_bytes = kMemoryBytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  if (bytes > kMemoryBytes - device().used) return cudaErrorMemoryAllocation;
  catch_faults();
  // The address is a multiple of 16, or of more where the size is: 256 like CUDA's for sizes that
  // are, and a vector access at the end of any other is still caught within 16 bytes.
  std::size_t alignment = 256;
  while (alignment > 16 && bytes % alignment != 0) alignment /= 2;
  alignment = std::max<std::size_t>(alignment, 64);
  Block block{.pages_bytes = rounded(rounded(bytes, alignment), page()), .bytes = bytes};
  block.mapping_bytes = block.pages_bytes + 2 * page();
  block.mapping = ::mmap(nullptr, block.mapping_bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block.mapping == MAP_FAILED) return cudaErrorMemoryAllocation;
  block.pages = static_cast<char*>(block.mapping) + page();
  char* address = block.pages + block.pages_bytes - rounded(bytes, alignment);
  protect(block, true);
  std::memset(block.pages, kPoison, block.pages_bytes);
  protect(block, false);
  device().used += bytes;
  device().blocks.emplace(address, block);
  *memory = address;
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  const std::lock_guard lock(device().mutex);
  if (memory == nullptr) return cudaSuccess;
  const auto found = device().blocks.find(memory);
  if (found == device().blocks.end()) return cudaErrorInvalidValue;
  device().used -= found->second.bytes;
  ::munmap(found->second.mapping, found->second.mapping_bytes);
  device().blocks.erase(found);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = std::aligned_alloc(64, rounded(bytes, 64));
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  queue(stream, [=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  queue(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new tandem_emulated_stream;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  run_all(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  run_all(stream);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new tandem_emulated_event;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

// The event has passed once the stream's work up to here has run; whoever waits runs all of the
// stream, which is later than CUDA promises but in no other order.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  event->stream = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(device().mutex);
  if (cudaStream_t other = event->stream; other != nullptr && other != stream) {
    stream->work.push_back([other] { run_all(other); });
  }
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(device().mutex);
  if (event->stream != nullptr) run_all(event->stream);
  return cudaSuccess;
}
