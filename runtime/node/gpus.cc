#include "runtime/node/gpus.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

namespace tandem::runtime {
namespace {

// NVML's interface as far as it is used, from its documented, stable ABI.
using NvmlReturn = int;  // 0: success
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr unsigned kTextMax = 96;

struct Nvml {
  NvmlReturn (*init)();
  NvmlReturn (*shutdown)();
  const char* (*error_text)(NvmlReturn);
  NvmlReturn (*count)(unsigned*);
  NvmlReturn (*handle)(unsigned, NvmlDevice*);
  NvmlReturn (*name)(NvmlDevice, char*, unsigned);
  NvmlReturn (*uuid)(NvmlDevice, char*, unsigned);
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*);
};

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <class Function>
bool find(const Library& library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library.get(), symbol));
  return function != nullptr;
}

bool find_all(const Library& library, Nvml& nvml) {
  return find(library, "nvmlInit_v2", nvml.init) && find(library, "nvmlShutdown", nvml.shutdown) &&
         find(library, "nvmlErrorString", nvml.error_text) &&
         find(library, "nvmlDeviceGetCount_v2", nvml.count) &&
         find(library, "nvmlDeviceGetHandleByIndex_v2", nvml.handle) &&
         find(library, "nvmlDeviceGetName", nvml.name) &&
         find(library, "nvmlDeviceGetUUID", nvml.uuid) &&
         find(library, "nvmlDeviceGetMemoryInfo", nvml.memory);
}

Error none(std::string what) {
  return {.code = ErrorCode::kNotFound, .message = "no GPU: " + std::move(what)};
}

Result<std::vector<Gpu>> list(const Nvml& nvml) {
  NvmlReturn error = 0;
  const auto failed = [&](const char* call) {
    return none(std::string(call) + ": " + nvml.error_text(error));
  };
  unsigned count = 0;
  if ((error = nvml.count(&count)) != 0) return failed("nvmlDeviceGetCount");
  std::vector<Gpu> gpus;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    std::array<char, kTextMax> name{}, uuid{};
    NvmlMemory memory{};
    if ((error = nvml.handle(i, &device)) != 0) return failed("nvmlDeviceGetHandleByIndex");
    if ((error = nvml.name(device, name.data(), kTextMax)) != 0) return failed("nvmlDeviceGetName");
    if ((error = nvml.uuid(device, uuid.data(), kTextMax)) != 0) return failed("nvmlDeviceGetUUID");
    if ((error = nvml.memory(device, &memory)) != 0) return failed("nvmlDeviceGetMemoryInfo");
    gpus.push_back({.name = name.data(),
                    .uuid = uuid.data(),
                    .memory_bytes = static_cast<std::int64_t>(memory.total),
                    .memory_free_bytes = static_cast<std::int64_t>(memory.free)});
  }
  if (gpus.empty()) return none("the NVIDIA driver lists none");
  return gpus;
}

std::optional<std::size_t> position(const std::vector<Gpu>& gpus, std::string_view word) {
  if (word.starts_with("GPU-")) {
    const auto found = std::ranges::find_if(
        gpus, [&](const Gpu& gpu) { return std::string_view(gpu.uuid).starts_with(word); });
    if (found == gpus.end()) return std::nullopt;
    return static_cast<std::size_t>(found - gpus.begin());
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  const bool number = error == std::errc{} && end == word.data() + word.size();
  return number && index < gpus.size() ? std::optional(index) : std::nullopt;
}

// As CUDA reads it: what follows a word that names no device, or one again, is not seen.
Result<std::vector<Gpu>> visible(std::vector<Gpu> gpus) {
  const char* variable = std::getenv("CUDA_VISIBLE_DEVICES");
  if (variable == nullptr) return gpus;
  std::vector<Gpu> seen;
  std::istringstream words(variable);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t begin = std::min(word.find_first_not_of(' '), word.size());
    const auto at = position(gpus, std::string_view(word).substr(begin));
    const auto same = [&](const Gpu& gpu) { return gpu.uuid == gpus[*at].uuid; };
    if (!at || std::ranges::any_of(seen, same)) break;
    seen.push_back(gpus[*at]);
  }
  if (!seen.empty()) return seen;
  return none("CUDA_VISIBLE_DEVICES=" + std::string(variable) + " leaves none of this machine's " +
              std::to_string(gpus.size()));
}

}  // namespace

Result<std::vector<Gpu>> read_gpus(const std::string& library) {
  const Library opened(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!opened) return none("no NVIDIA driver (" + std::string(::dlerror()) + ")");
  Nvml nvml{};
  if (!find_all(opened, nvml)) return none(library + " is too old: " + std::string(::dlerror()));
  if (const NvmlReturn error = nvml.init(); error != 0)
    return none("the NVIDIA driver does not answer: " + std::string(nvml.error_text(error)));
  Result<std::vector<Gpu>> gpus = list(nvml);
  nvml.shutdown();
  return gpus ? visible(*std::move(gpus)) : gpus;
}

}  // namespace tandem::runtime
