// The emulator's memory, streams and events, by the names and rules of the CUDA runtime.
//
// A device block is mapped between two pages that nobody may touch and ends at the second one, so
// that a step over its end is caught at once; its own pages are opened only while queued work runs.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>

#include "cuda_runtime.h"

using Work = std::deque<std::function<void()>>;

struct tandem_emulated_graph {
  Work work;
};

struct tandem_emulated_graph_exec {
  Work work;
  int launches = 0;  // whose work has not run
};

struct tandem_emulated_stream {
  Work work;
  std::uint64_t run = 0;         // items that have
  std::optional<Work> recorded;  // while it records a graph
  std::thread::id recorder;
};

struct tandem_emulated_event {
  cudaStream_t stream = nullptr;  // where it was last recorded; null: nowhere
  std::uint64_t place = 0;        // how many of its items have run by then
};

namespace tandem::emulator {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{4} << 30;
constexpr std::size_t kSharedBytesDefault = 48 << 10, kSharedBytesMax = 227 << 10;
constexpr int kMultiprocessors = 32;
constexpr unsigned kThreadsMax = 1024, kGridMax = 65535;
constexpr unsigned char kPoison = 0xff;

struct Block {
  void* mapping = nullptr;
  std::size_t mapping_bytes = 0;
  char* pages = nullptr;
  std::size_t pages_bytes = 0;
  std::size_t bytes = 0;  // as asked for; the slack behind it holds poison
  int file = -1;          // what its pages are of, once another process may open it
  bool foreign = false;   // another's: opened by its handle
};

// What a cudaIpcMemHandle_t holds: the file of the block's pages, as its owner has it open.
struct ForeignBlock {
  pid_t owner;
  int file;
  ino_t inode;  // tells the file from a later one of that number
  std::size_t pages_bytes, bytes, offset;
};
static_assert(sizeof(ForeignBlock) <= sizeof(cudaIpcMemHandle_t));

struct Device {
  std::recursive_mutex mutex;
  std::map<void*, Block> blocks;        // by the address that the caller knows
  std::map<void*, std::size_t> pinned;  // sizes in bytes
  std::set<cudaStream_t> streams, recording;
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

// Fills the block with poison. A large one's pages are a file's until they are written to: those
// that nobody touches are not there, and cost little to open and to close.
bool poison(const Block& block) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  static const int file = [] {
    const int made = ::memfd_create("poison of the emulated GPU", MFD_CLOEXEC);
    const std::string poison(kLarge, static_cast<char>(kPoison));
    return made >= 0 && ::write(made, poison.data(), kLarge) == ssize_t{kLarge} ? made : -1;
  }();
  if (block.pages_bytes < kLarge) {
    protect(block, true);
    std::memset(block.pages, kPoison, block.pages_bytes);
    protect(block, false);
    return true;
  }
  for (std::size_t at = 0; at < block.pages_bytes; at += kLarge) {
    if (::mmap(block.pages + at, std::min(kLarge, block.pages_bytes - at), PROT_NONE,
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

void run_one(cudaStream_t stream) {
  const std::function<void()> item = std::move(stream->work.front());
  stream->work.pop_front();
  item();
  check_slack();
  ++stream->run;
}

void set_open(bool open) {
  for (const auto& [address, block] : device().blocks) protect(block, open);
  device().open = open;
}

// Runs `count` of the stream's items. Device memory is open for all of them, and for those of other
// streams that they wait for: to open and to close it takes longer than most items do.
void run(cudaStream_t stream, std::uint64_t count) {
  const bool opens = count > 0 && !device().open;
  if (opens) set_open(true);
  for (; count > 0; --count) run_one(stream);
  if (opens) set_open(false);
}

void run_all(cudaStream_t stream) { run(stream, stream->work.size()); }

void run_up_to(const tandem_emulated_event& event) {
  if (event.stream == nullptr || event.stream->run >= event.place) return;
  run(event.stream, event.place - event.stream->run);
}

void queue(cudaStream_t stream, std::function<void()> item) {
  if (stream == nullptr) broken("work on the default stream, which waits for all others");
  Work& work = stream->recorded ? *stream->recorded : stream->work;
  work.push_back(std::move(item));
}

// Whether this thread records a graph. (Not a thread-local: those are kernels' shared memory.)
bool records() {
  for (cudaStream_t stream : device().recording) {
    if (stream->recorder == std::this_thread::get_id()) return true;
  }
  return false;
}

// Whether a graph may copy from or to there: device memory, or pinned memory of the host.
bool stays(const void* address) {
  void* at = const_cast<void*>(address);
  const auto block = device().blocks.upper_bound(at);
  if (block != device().blocks.begin()) {
    const auto& [begin, found] = *std::prev(block);
    if (at < static_cast<char*>(begin) + found.bytes) return true;
  }
  const auto pinned = device().pinned.upper_bound(at);
  if (pinned == device().pinned.begin()) return false;
  const auto& [begin, bytes] = *std::prev(pinned);
  return at < static_cast<char*>(begin) + bytes;
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
  std::size_t& allowed = device().shared_allowed[kernel];
  if (static_cast<std::size_t>(bytes) < allowed) {
    broken("a kernel's shared memory was cut from %zu to %d bytes, which is so for every thread",
           allowed, bytes);
  }
  allowed = static_cast<std::size_t>(bytes);
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
    case cudaErrorIllegalState:
      return "cudaErrorIllegalState";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureWrongThread:
      return "cudaErrorStreamCaptureWrongThread";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
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
  properties->multiProcessorCount = kMultiprocessors;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(kSharedBytesMax);
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = kMultiprocessors;
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const std::lock_guard lock(device().mutex);
  *free_bytes = kMemoryBytes - device().used;
  *total_bytes = kMemoryBytes;
  // A neighbour that asked at the same time takes these bytes of what both were told is free.
  static std::size_t neighbours = [] {
    const char* bytes = std::getenv("TANDEM_EMULATED_NEIGHBOUR");
    return bytes == nullptr ? 0 : std::strtoull(bytes, nullptr, 10);
  }();
  device().used += std::min(std::exchange(neighbours, 0), kMemoryBytes - device().used);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const std::lock_guard lock(device().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  if (bytes > kMemoryBytes - device().used) return cudaErrorMemoryAllocation;
  catch_faults();
  // The address is a multiple of 16, or of more where the size is: 256 like CUDA's for sizes that
  // are, and a vector access at the end of any other is still caught within 16 bytes.
  std::size_t alignment = 256;
  while (alignment > 16 && bytes % alignment != 0) alignment /= 2;
  alignment = std::max<std::size_t>(alignment, 64);
  Block block{.bytes = bytes};
  if (!reserve(block, rounded(rounded(bytes, alignment), page()))) return cudaErrorMemoryAllocation;
  if (!poison(block)) {
    ::munmap(block.mapping, block.mapping_bytes);
    return cudaErrorMemoryAllocation;
  }
  char* address = block.pages + block.pages_bytes - rounded(bytes, alignment);
  device().used += bytes;
  device().blocks.emplace(address, block);
  *memory = address;
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  const std::lock_guard lock(device().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  if (memory == nullptr) return cudaSuccess;
  const auto found = device().blocks.find(memory);
  if (found == device().blocks.end() || found->second.foreign) return cudaErrorInvalidValue;
  device().used -= found->second.bytes;
  if (found->second.file >= 0) ::close(found->second.file);
  ::munmap(found->second.mapping, found->second.mapping_bytes);
  device().blocks.erase(found);
  return cudaSuccess;
}

// The block's pages become those of a file, which another process opens by way of /proc. Unlike
// CUDA the owner may open its own, so that one test can be both sides.
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  const std::lock_guard lock(device().mutex);
  const auto found = device().blocks.find(memory);
  if (found == device().blocks.end() || found->second.foreign) return cudaErrorInvalidValue;
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
  const std::lock_guard lock(device().mutex);
  ForeignBlock name{};
  std::memcpy(&name, &handle, sizeof name);
  const std::string path =
      "/proc/" + std::to_string(name.owner) + "/fd/" + std::to_string(name.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return cudaErrorInvalidResourceHandle;
  struct stat facts {};
  ::fstat(file, &facts);
  catch_faults();
  Block block{.bytes = name.bytes, .foreign = true};
  const bool same =
      facts.st_ino == name.inode && static_cast<std::size_t>(facts.st_size) == name.pages_bytes;
  const bool mapped = same && reserve(block, name.pages_bytes) && map_file(block, file);
  ::close(file);
  if (!mapped) return cudaErrorInvalidResourceHandle;
  *memory = block.pages + name.offset;
  device().blocks.emplace(*memory, block);
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* memory) {
  const std::lock_guard lock(device().mutex);
  const auto found = device().blocks.find(memory);
  if (found == device().blocks.end() || !found->second.foreign) return cudaErrorInvalidValue;
  ::munmap(found->second.mapping, found->second.mapping_bytes);
  device().blocks.erase(found);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const std::lock_guard lock(device().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  *memory = std::aligned_alloc(64, rounded(bytes, 64));
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  device().pinned[*memory] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  const std::lock_guard lock(device().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  device().pinned.erase(memory);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  if (stream != nullptr && stream->recorded && !(stays(to) && stays(from))) {
    return cudaErrorStreamCaptureUnsupported;
  }
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
  const std::lock_guard lock(device().mutex);
  device().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  if (stream->recorded) broken("a stream was destroyed that records a graph");
  run_all(stream);
  device().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  if (!device().streams.contains(stream)) broken("a stream is waited for that was destroyed");
  if (stream->recorded || records()) return cudaErrorStreamCaptureUnsupported;
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

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  if (stream->recorded) return cudaErrorStreamCaptureUnsupported;
  event->stream = stream;
  event->place = stream->run + stream->work.size();
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(device().mutex);
  if (stream->recorded) return cudaErrorStreamCaptureUnsupported;
  stream->work.push_back([at = *event] { run_up_to(at); });
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(device().mutex);
  if (records()) return cudaErrorStreamCaptureUnsupported;
  run_up_to(*event);
  if (event->stream != nullptr && toss()) run_all(event->stream);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(device().mutex);
  if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  if (stream->recorded) return cudaErrorIllegalState;
  stream->recorded.emplace();
  stream->recorder = std::this_thread::get_id();
  device().recording.insert(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(device().mutex);
  if (!stream->recorded) return cudaErrorIllegalState;
  if (stream->recorder != std::this_thread::get_id()) return cudaErrorStreamCaptureWrongThread;
  *graph = new tandem_emulated_graph{.work = *std::move(stream->recorded)};
  stream->recorded.reset();
  device().recording.erase(stream);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new tandem_emulated_graph_exec{.work = graph->work};
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  if (stream->recorded) return cudaErrorStreamCaptureUnsupported;
  ++executable->launches;
  for (const auto& item : executable->work) stream->work.push_back(item);
  stream->work.push_back([executable] { --executable->launches; });
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const std::lock_guard lock(device().mutex);
  if (executable->launches != 0) broken("a graph was destroyed before its work had run");
  delete executable;
  return cudaSuccess;
}
