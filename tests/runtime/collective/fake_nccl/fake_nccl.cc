// A libnccl.so.2 for machines without a GPU: NCCL's C functions over Unix sockets between processes
// of one machine, as far as runtime/collective calls them, with the faults that are asked for
// (faults.h). Further settings, from the environment:
//   TANDEM_FAKE_NCCL_VERSION  as ncclGetVersion gives it; 22809 without
//   TANDEM_FAKE_NCCL_DEVICE   which GPU this process has; without it the first one of
//                             CUDA_VISIBLE_DEVICES, or 0
//   TANDEM_FAKE_NCCL_POLLS    how often ncclCommGetAsyncError says "in progress"; 2 without
//   TANDEM_FAKE_NCCL_SILENT   1: a peer that dies is not reported, its operations never end
// Two ranks on one GPU (and of one NCCL_HOSTID) are refused, unless the version is 23003 or later
// and NCCL_MULTI_RANK_GPU_ENABLE is 1.
#include <cstdlib>
#include <cstring>
#include <optional>

#include "tests/runtime/collective/fake_nccl/communicator.h"
#include "tests/runtime/collective/fake_nccl/device.h"
#include "tests/runtime/collective/fake_nccl/meeting.h"

namespace {

using fake_nccl::begin_call;
using fake_nccl::Call;
using fake_nccl::Communicator;
using fake_nccl::Mischief;
using fake_nccl::NcclConfig;
using fake_nccl::NcclResult;
using fake_nccl::NcclUniqueId;
using fake_nccl::Request;

struct Registry {
  std::mutex mutex;
  std::map<void*, std::shared_ptr<Communicator>> all;
  std::map<void*, std::size_t> allocated;  // by ncclMemAlloc
};

Registry& registry() {
  static Registry& only = *new Registry;
  return only;
}

std::shared_ptr<Communicator> find(void* comm) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().all.find(comm);
  return found == registry().all.end() ? nullptr : found->second;
}

void forget(void* comm) {
  const std::lock_guard lock(registry().mutex);
  registry().all.erase(comm);
}

// The calls of a group, which its end issues.
struct Group {
  int depth = 0;
  std::map<std::shared_ptr<Communicator>, std::vector<Request>> requests;
  std::map<std::shared_ptr<Communicator>, Mischief> mischief;
  NcclResult result = NcclResult::kSuccess;
};
// The group of the calling thread. It is not thread_local, because TSan takes the loader's clean-up
// of that for a race.
Group& group_of_thread() {
  static std::mutex& mutex = *new std::mutex;
  static auto& groups = *new std::map<std::thread::id, Group>;
  const std::lock_guard lock(mutex);
  return groups[std::this_thread::get_id()];
}

void add(Mischief& all, const Mischief& one) {
  all.hang |= one.hang;
  all.stubborn |= one.stubborn;
  all.corrupt |= one.corrupt;
  all.die_in |= one.die_in;
  all.die_after |= one.die_after;
  all.late_ms += one.late_ms;
  all.slow_ms += one.slow_ms;
  if (one.error_code != 0) all.error_code = one.error_code, all.error_polls = one.error_polls;
}

NcclResult transfer(void* comm, const Request& request) {
  const auto communicator = find(comm);
  if (!communicator) return NcclResult::kInvalidArgument;
  Mischief mischief;
  const NcclResult result = communicator->request(request, mischief);
  Group& group = group_of_thread();
  if (group.depth == 0)
    return result == NcclResult::kSuccess ? communicator->issue({request}, mischief) : result;
  if (result != NcclResult::kSuccess) group.result = result;
  group.requests[communicator].push_back(request);
  add(group.mischief[communicator], mischief);
  return result;
}

}  // namespace

extern "C" {

NcclResult ncclGetVersion(int* version) {
  *version = fake_nccl::version();
  return NcclResult::kSuccess;
}

NcclResult ncclGetUniqueId(NcclUniqueId* id) {
  const std::string place = fake_nccl::open_place();
  if (place.empty()) return NcclResult::kSystemError;
  *id = {};
  place.copy(id->internal, sizeof id->internal - 1);
  return NcclResult::kSuccess;
}

NcclResult ncclCommInitRankConfig(void** comm, int size, NcclUniqueId id, int rank,
                                  NcclConfig* config) {
  *comm = nullptr;
  if (config->magic != 0xcafebeef || config->size < sizeof(NcclConfig) || rank < 0 || rank >= size)
    return NcclResult::kInvalidArgument;
  auto made = std::make_shared<Communicator>(rank, size, config->blocking != 0);
  {
    const std::lock_guard lock(registry().mutex);
    registry().all[made.get()] = made;
  }
  const NcclResult result = made->start(id);
  if (result != NcclResult::kSuccess && result != NcclResult::kInProgress) {
    forget(made.get());
    return result;
  }
  *comm = made.get();
  return result;
}

NcclResult ncclCommGetAsyncError(void* comm, NcclResult* error) {
  const auto communicator = find(comm);
  return communicator ? communicator->state(error) : NcclResult::kInvalidArgument;
}

NcclResult ncclCommFinalize(void* comm) {
  const auto communicator = find(comm);
  return communicator ? communicator->finalize() : NcclResult::kInvalidArgument;
}

NcclResult ncclCommDestroy(void* comm) {
  const auto communicator = find(comm);
  if (!communicator) return NcclResult::kInvalidArgument;
  forget(comm);
  return communicator->destroy();
}

NcclResult ncclCommAbort(void* comm) {
  const auto communicator = find(comm);
  if (!communicator) return NcclResult::kInvalidArgument;
  forget(comm);
  return communicator->abort();
}

NcclResult ncclGroupStart() {
  ++group_of_thread().depth;
  return NcclResult::kSuccess;
}

NcclResult ncclGroupEnd() {
  Group& group = group_of_thread();
  if (group.depth == 0) return NcclResult::kInvalidUsage;
  if (--group.depth > 0) return NcclResult::kSuccess;
  Group ended = std::exchange(group, {});
  NcclResult result = ended.result;
  if (result != NcclResult::kSuccess) return result;
  for (auto& [communicator, requests] : ended.requests)
    result = communicator->issue(requests, ended.mischief[communicator]);
  return result;
}

NcclResult ncclBroadcast(const void* from, void* to, std::size_t count, int, int root, void* comm,
                         void* stream) {
  if (from != to) return NcclResult::kInvalidArgument;  // in place is all that is called for
  return transfer(
      comm, {.op = "broadcast", .memory = to, .bytes = count, .peer = root, .stream = stream});
}

NcclResult ncclAllReduce(const void* from, void* to, std::size_t count, int type, int sum,
                         void* comm, void* stream) {
  // A sum of f32, in place, is all that is called for.
  if (from != to || type != 7 || sum != 0) return NcclResult::kInvalidArgument;
  return transfer(
      comm, {.op = "allreduce", .memory = to, .bytes = count * sizeof(float), .stream = stream});
}

NcclResult ncclSend(const void* from, std::size_t count, int, int peer, void* comm, void* stream) {
  return transfer(comm, {.op = "send",
                         .memory = const_cast<void*>(from),
                         .bytes = count,
                         .peer = peer,
                         .stream = stream});
}

NcclResult ncclRecv(void* to, std::size_t count, int, int peer, void* comm, void* stream) {
  return transfer(comm,
                  {.op = "recv", .memory = to, .bytes = count, .peer = peer, .stream = stream});
}

NcclResult ncclCommCount(void* comm, int* count) {
  const auto communicator = find(comm);
  if (!communicator) return NcclResult::kInvalidArgument;
  *count = communicator->size();
  return NcclResult::kSuccess;
}

NcclResult ncclCommUserRank(void* comm, int* rank) {
  const auto communicator = find(comm);
  if (!communicator) return NcclResult::kInvalidArgument;
  *rank = communicator->rank();
  return NcclResult::kSuccess;
}

NcclResult ncclCommCuDevice(void* comm, int* device) {
  *device = 0;
  return find(comm) ? NcclResult::kSuccess : NcclResult::kInvalidArgument;
}

const char* ncclGetErrorString(NcclResult result) {
  switch (result) {
    case NcclResult::kSuccess:
      return "no error";
    case NcclResult::kUnhandledCudaError:
      return "unhandled cuda error";
    case NcclResult::kSystemError:
      return "unhandled system error";
    case NcclResult::kInternalError:
      return "internal error";
    case NcclResult::kInvalidArgument:
      return "invalid argument";
    case NcclResult::kInvalidUsage:
      return "invalid usage";
    case NcclResult::kRemoteError:
      return "remote process exited or there was a network error";
    case NcclResult::kInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(void* comm) {
  const auto communicator = find(comm);
  return communicator ? communicator->last_error() : "";
}

NcclResult ncclMemAlloc(void** memory, std::size_t bytes) {
  Mischief mischief;
  const Call call{.rank = -1, .comm = 0, .op = "memalloc", .nth = 0, .nth_any = 0};
  if (const int code = begin_call(call, mischief); code != 0) return static_cast<NcclResult>(code);
  *memory = fake_nccl::allocate_device(bytes);
  if (*memory == nullptr) return NcclResult::kUnhandledCudaError;
  const std::lock_guard lock(registry().mutex);
  registry().allocated[*memory] = bytes;
  return NcclResult::kSuccess;
}

// Memory that a communicator may still use is not freed: that is the caller's bug.
NcclResult ncclMemFree(void* memory) {
  {
    const std::lock_guard lock(registry().mutex);
    for (const auto& [comm, communicator] : registry().all)
      if (communicator->holds(memory)) std::abort();
    if (registry().allocated.erase(memory) == 0) return NcclResult::kInvalidArgument;
  }
  fake_nccl::free_device(memory);
  return NcclResult::kSuccess;
}

NcclResult ncclCommRegister(void* comm, void* memory, std::size_t bytes, void** handle) {
  const auto communicator = find(comm);
  if (!communicator) return NcclResult::kInvalidArgument;
  {
    const std::lock_guard lock(registry().mutex);
    const auto found = registry().allocated.find(memory);
    if (found == registry().allocated.end() || bytes > found->second)
      return NcclResult::kInvalidArgument;
  }
  return communicator->register_memory(memory, bytes, handle);
}

NcclResult ncclCommDeregister(void* comm, void* handle) {
  const auto communicator = find(comm);
  return communicator ? communicator->deregister_memory(handle) : NcclResult::kInvalidArgument;
}

// Functions that NCCL does not have, for tests in this process.
void tandem_fake_nccl_set_faults(const char* text) { fake_nccl::set_faults(text); }
void* tandem_fake_event_create() { return fake_nccl::create_event(); }
void tandem_fake_event_record(void* event, void* stream) { fake_nccl::record_event(event, stream); }
bool tandem_fake_event_done(void* event) { return fake_nccl::event_done(event); }
void tandem_fake_event_destroy(void* event) { fake_nccl::destroy_event(event); }
}
