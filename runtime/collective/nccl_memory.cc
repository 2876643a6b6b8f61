#include "runtime/collective/nccl_memory.h"

#include <dlfcn.h>

#include <string>

#include "runtime/collective/nccl_operation.h"
#include "runtime/collective/nccl_question.h"

namespace tandem::collective {
namespace {

const std::string kOwner = "this process";

// Asks libcuda, which is installed wherever a GPU is. The answer is false without libcuda, as with
// the emulator.
bool gpu_can_multicast() {
  constexpr int kMulticastSupported = 132;  // CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
  using GetAttribute = int (*)(int* value, int attribute, int device);
  static const auto get = [] {
    void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
    return driver == nullptr
               ? GetAttribute{}
               : reinterpret_cast<GetAttribute>(::dlsym(driver, "cuDeviceGetAttribute"));
  }();
  int value = 0;
  return get != nullptr && get(&value, kMulticastSupported, 0) == 0 && value != 0;
}

}  // namespace

Result<std::shared_ptr<NcclMemory>> NcclMemory::allocate(const NcclProcess& process,
                                                         std::size_t bytes, const char* purpose,
                                                         Duration timeout) {
  using Made = std::shared_ptr<NcclMemory>;
  const std::string attempt = "cannot allocate " + std::to_string(bytes) + " bytes for " + purpose;
  if (bytes == 0) return refusal(attempt, "there must be some");
  return ask_nccl<Made>(
      process, "ncclMemAlloc", timeout,
      [process, bytes, attempt](NcclCalls& calls, Time deadline) -> Result<Made> {
        // A question that is begun late still gets the time that one call takes: it cannot be
        // stopped halfway.
        void* memory = nullptr;
        const NcclResult result = calls("ncclMemAlloc", kOwner, std::max(deadline, calls.soon()),
                                        [&] { return process.api.mem_alloc(&memory, bytes); });
        if (result != NcclResult::kSuccess)
          return nccl_failure(process.api, "ncclMemAlloc", result, nullptr, attempt);
        return Made(new NcclMemory(process, static_cast<std::byte*>(memory), bytes));
      });
}

NcclMemory::NcclMemory(const NcclProcess& process, std::byte* data, std::size_t size)
    : process_(process), data_(data), size_(size) {}

NcclMemory::~NcclMemory() {
  process_.thread->post([api = process_.api, data = data_](NcclCalls& calls) {
    calls("ncclMemFree", kOwner, calls.soon(), [&] { return api.mem_free(data); });
  });
}

std::uint64_t nccl_memory_taken(std::uint64_t bytes) {
  const std::uint64_t step = std::uint64_t{gpu_can_multicast() ? 512u : 2u} << 20;
  return (bytes + step - 1) / step * step;
}

}  // namespace tandem::collective
