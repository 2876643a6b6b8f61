// Asks NVML for each device of the machine, then chooses as CUDA_VISIBLE_DEVICES says.
//
// Easy to get wrong:
//   - A device that has failed must neither hide the others nor shift their numbers. Each call to
//     it is checked on its own, and the device stays in the list with its trouble.
//   - CUDA reads the variable in its own way: the first word that names no device ends the list.
//   - A driver may be older than a function. All of NVML is looked up by name; functions that only
//     describe (topology, affinity) may be missing, and the description then stays empty.
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

namespace tandem::node {
namespace {

// The part of NVML's interface that is used, written down from its documented, stable ABI: NVML's
// own header is not needed to build.
using NvmlReturn = int;  // 0: success
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr unsigned kTextMax = 96;  // bytes of a name or uuid
// An argument of nvmlDeviceGetP2PStatus, which sets the status 0 where the two have NVLink.
constexpr int kNvlinkCapability = 2;
// An argument of nvmlDeviceGetMemoryAffinity: NUMA nodes, not sockets.
constexpr unsigned kNodeScope = 0;
using Mask = std::array<unsigned long, 64>;  // a bit for each of 4,096 CPUs or NUMA nodes

// The functions by their symbols in the library (find_all).
struct Nvml {
  NvmlReturn (*init)();
  NvmlReturn (*shutdown)();
  const char* (*error_text)(NvmlReturn);
  NvmlReturn (*count)(unsigned*);
  NvmlReturn (*handle)(unsigned, NvmlDevice*);
  NvmlReturn (*name)(NvmlDevice, char*, unsigned);
  NvmlReturn (*uuid)(NvmlDevice, char*, unsigned);
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*);
  // These are null where the driver is too old to have them.
  NvmlReturn (*mig_mode)(NvmlDevice, unsigned* current, unsigned* pending);
  NvmlReturn (*common_ancestor)(NvmlDevice, NvmlDevice, int* level);
  NvmlReturn (*peer_status)(NvmlDevice, NvmlDevice, int capability, int* status);
  NvmlReturn (*cpu_affinity)(NvmlDevice, unsigned words, unsigned long* cpus);
  NvmlReturn (*memory_affinity)(NvmlDevice, unsigned words, unsigned long* nodes, unsigned scope);
};

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

// Sets `function` to the symbol, or to null and returns false.
template <class Function>
bool find(const Library& library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library.get(), symbol));
  return function != nullptr;
}

// False: a function is missing without which GPUs cannot be listed. The last lookup is then the one
// that failed, so that dlerror() names the function.
bool find_all(const Library& library, Nvml& nvml) {
  (void)find(library, "nvmlDeviceGetMigMode", nvml.mig_mode);
  (void)find(library, "nvmlDeviceGetTopologyCommonAncestor", nvml.common_ancestor);
  (void)find(library, "nvmlDeviceGetP2PStatus", nvml.peer_status);
  (void)find(library, "nvmlDeviceGetCpuAffinity", nvml.cpu_affinity);
  (void)find(library, "nvmlDeviceGetMemoryAffinity", nvml.memory_affinity);
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

// One device of NVML's list.
struct Listed {
  NvmlDevice device = nullptr;
  Gpu gpu;
  std::string label;  // "GPU 1 (NVIDIA H200, GPU-6f2a…)", without the parts that it did not tell
  std::string trouble;  // why the device cannot be used; empty: it can
};

bool in_mig_mode(const Nvml& nvml, NvmlDevice device) {
  unsigned current = 0, pending = 0;
  return nvml.mig_mode != nullptr && nvml.mig_mode(device, &current, &pending) == 0 && current == 1;
}

// Reads one device. A device that has fallen off the bus may fail in any of these calls; the first
// failure becomes its trouble, and calls that still work add to its label.
Listed look_at(const Nvml& nvml, unsigned index) {
  Listed found;
  NvmlDevice& device = found.device;
  std::array<char, kTextMax> name{}, uuid{};
  NvmlMemory memory{};
  const auto works = [&](const char* call, NvmlReturn error) {
    if (error != 0 && found.trouble.empty())
      found.trouble = std::string(nvml.error_text(error)) + " (" + call + ")";
    return error == 0;
  };
  if (works("nvmlDeviceGetHandleByIndex", nvml.handle(index, &device))) {
    if (works("nvmlDeviceGetName", nvml.name(device, name.data(), kTextMax)))
      found.gpu.name = name.data();
    if (works("nvmlDeviceGetUUID", nvml.uuid(device, uuid.data(), kTextMax)))
      found.gpu.uuid = uuid.data();
    works("nvmlDeviceGetMemoryInfo", nvml.memory(device, &memory));
    if (found.trouble.empty() && in_mig_mode(nvml, device))
      found.trouble = "it is in MIG mode, and parts of a GPU are not in this version";
  }
  found.gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
  found.gpu.memory_free_bytes = static_cast<std::int64_t>(memory.free);
  const std::string comma = found.gpu.name.empty() || found.gpu.uuid.empty() ? "" : ", ";
  const std::string known = found.gpu.name + comma + found.gpu.uuid;
  found.label = "GPU " + std::to_string(index) + (known.empty() ? "" : " (" + known + ")");
  return found;
}

// "0-15,32-47", as Linux writes a list of CPUs.
std::string ranges_of(const Mask& mask) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  const auto set = [&](std::size_t i) {
    return i < mask.size() * kBits && (mask[i / kBits] >> (i % kBits) & 1) != 0;
  };
  std::string all;
  for (std::size_t i = 0; i < mask.size() * kBits; ++i) {
    if (!set(i)) continue;
    std::size_t last = i;
    while (set(last + 1)) ++last;
    all += (all.empty() ? "" : ",") + std::to_string(i);
    if (last > i) all += "-" + std::to_string(last);
    i = last;
  }
  return all;
}

// NVLink first: NVML's levels of topology know only PCIe.
GpuLink link_of(const Nvml& nvml, NvmlDevice one, NvmlDevice other) {
  int status = 1, level = 0;
  if (one == other) return GpuLink::kSelf;
  if (nvml.peer_status != nullptr &&
      nvml.peer_status(one, other, kNvlinkCapability, &status) == 0 && status == 0)
    return GpuLink::kNvlink;
  if (nvml.common_ancestor == nullptr || nvml.common_ancestor(one, other, &level) != 0)
    return GpuLink::kUnknown;
  constexpr std::array kLevels{GpuLink::kBoard,      GpuLink::kSwitch,   GpuLink::kSwitches,
                               GpuLink::kHostBridge, GpuLink::kNumaNode, GpuLink::kSystem};
  const auto at = static_cast<std::size_t>(level / 10);  // NVML counts 0, 10, … 50
  return level >= 0 && at < kLevels.size() ? kLevels[at] : GpuLink::kUnknown;
}

// Fills in where a device is. A call that fails leaves its part empty and makes no trouble.
void locate(const Nvml& nvml, Listed& found, const std::vector<Listed>& listed) {
  Mask cpus{}, nodes{};
  constexpr auto kWords = static_cast<unsigned>(Mask{}.size());
  if (nvml.cpu_affinity != nullptr && nvml.cpu_affinity(found.device, kWords, cpus.data()) == 0)
    found.gpu.cpu_affinity = ranges_of(cpus);
  if (nvml.memory_affinity != nullptr &&
      nvml.memory_affinity(found.device, kWords, nodes.data(), kNodeScope) == 0)
    found.gpu.numa_affinity = ranges_of(nodes);
  for (const Listed& other : listed)
    if (other.trouble.empty()) found.gpu.links.push_back(link_of(nvml, found.device, other.device));
}

bool is_uuid(std::string_view word) { return word.starts_with("GPU-"); }

// The index of the device that a word of CUDA_VISIBLE_DEVICES names: by number, or by a uuid that
// may be cut short.
std::optional<std::size_t> position(const std::vector<Listed>& all, std::string_view word) {
  if (is_uuid(word)) {
    const auto found = std::ranges::find_if(
        all, [&](const Listed& one) { return std::string_view(one.gpu.uuid).starts_with(word); });
    if (found == all.end()) return std::nullopt;
    return static_cast<std::size_t>(found - all.begin());
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  const bool number = error == std::errc{} && end == word.data() + word.size();
  return number && index < all.size() ? std::optional(index) : std::nullopt;
}

// The devices that CUDA_VISIBLE_DEVICES leaves, in its order, as CUDA reads the variable: a word
// that names no device, or one that was named before, ends the list. One exception: a uuid that no
// device has may belong to a lost device that does not tell its uuid any more. Such a uuid ends
// nothing, and the devices without a uuid are appended, so that they are reported as unusable.
std::vector<Listed> visible(const std::vector<Listed>& all, const std::string& variable) {
  std::vector<Listed> seen;
  std::vector<bool> taken(all.size());
  const auto take = [&](std::size_t i) {
    taken[i] = true;
    seen.push_back(all[i]);
  };
  const auto nameless = [&](std::size_t i) { return !taken[i] && all[i].gpu.uuid.empty(); };
  bool one_unknown = false;
  std::istringstream words(variable);
  for (std::string word; std::getline(words, word, ',');) {
    word.erase(0, std::min(word.find_first_not_of(' '), word.size()));
    if (word.starts_with("MIG-")) {
      seen.push_back({.device = nullptr,
                      .gpu = {},
                      .label = word,
                      .trouble = "parts of a GPU are not in this version"});
      continue;
    }
    const auto at = position(all, word);
    const bool unknown = !at && is_uuid(word);
    one_unknown = one_unknown || unknown;
    if (unknown && std::ranges::any_of(all, [](const Listed& l) { return l.gpu.uuid.empty(); }))
      continue;
    if (!at || taken[*at]) break;
    take(*at);
  }
  for (std::size_t i = 0; one_unknown && i < all.size(); ++i)
    if (nameless(i)) take(i);
  return seen;
}

Result<GpuListing> list(const Nvml& nvml) {
  unsigned count = 0;
  if (const NvmlReturn error = nvml.count(&count); error != 0)
    return none(std::string("nvmlDeviceGetCount: ") + nvml.error_text(error));
  std::vector<Listed> devices;
  for (unsigned i = 0; i < count; ++i) devices.push_back(look_at(nvml, i));
  if (devices.empty()) return none("the NVIDIA driver lists none");
  if (const char* variable = std::getenv("CUDA_VISIBLE_DEVICES")) {
    devices = visible(devices, variable);
    if (devices.empty())
      return none("CUDA_VISIBLE_DEVICES=" + std::string(variable) +
                  " leaves none of this machine's " + std::to_string(count));
  }
  GpuListing listing;
  for (Listed& device : devices) {
    if (device.trouble.empty()) {
      locate(nvml, device, devices);
      listing.usable.push_back(device.gpu);
      continue;
    }
    listing.unusable.push_back(device.label + ": " + device.trouble);
  }
  return listing;
}

}  // namespace

const char* name(GpuLink link) {
  constexpr std::array kNames{"X", "NV", "PSB", "PIX", "PXB", "PHB", "NODE", "SYS", "unknown"};
  return kNames[static_cast<std::size_t>(link)];
}

Result<GpuListing> read_gpus(const std::string& library) {
  const Library opened(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!opened) return none("no NVIDIA driver (" + std::string(::dlerror()) + ")");
  Nvml nvml{};
  if (!find_all(opened, nvml)) return none(library + " is too old: " + std::string(::dlerror()));
  if (const NvmlReturn error = nvml.init(); error != 0)
    return none("the NVIDIA driver does not answer: " + std::string(nvml.error_text(error)));
  // The listing holds copies: nothing of it refers to the library, which is closed on return.
  Result<GpuListing> gpus = list(nvml);
  nvml.shutdown();
  return gpus;
}

std::string absence_of(const GpuListing& gpus) {
  if (!gpus.usable.empty()) return "";
  std::string all;
  for (const std::string& gpu : gpus.unusable) all += (all.empty() ? "" : "; ") + gpu;
  return "no usable GPU: " + all;
}

}  // namespace tandem::node
