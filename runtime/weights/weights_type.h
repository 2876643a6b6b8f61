// How versions of the weights reach subscribers, and what the rest of the system has to know of
// each way: one row of kWeightsTypes. A new way adds its value and its row here, its ends to
// weight_family.cc, and a sentence to the key weight_broadcast.type (actors/job/job_keys.cc).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/base/enum_names.h"

namespace tandem::weights {

enum class WeightsType : std::uint8_t {
  kAuto,  // shm where `slots` arenas fit into half of the file system of /dev/shm, else disk
  kShm,   // POSIX shared memory: publisher and subscribers on one host
  kDisk,  // a directory that all of them see
  // GPU memory of the publisher, by CUDA IPC. Publisher and subscribers are processes of their own
  // on one GPU. A subscriber's buffer may be in host or GPU memory.
  kCudaIpc,
  // Versions lie in shared memory, as of kShm, and every subscriber fetches them over TCP. (With
  // kAuto and `serving`, subscribers on the publisher's host read the shared memory instead.) A
  // subscriber's buffer must be in host memory.
  kTcp,
  // Versions lie in shared memory and are served, as of kTcp, and are broadcast by NCCL as well
  // (broadcast.h); `broadcasting` must be set. A subscriber's buffer may be in the memory of
  // Broadcasting::device. A subscriber on the publisher's host that fetches reads the shared
  // memory.
  kNccl,
};

enum class VersionMemory : std::uint8_t { kSharedMemory, kFiles, kGpuMemory };
// Whether a subscriber that computes on a CPU reads a version where the publisher left it, and so
// keeps no place for a whole version.
enum class ReadInPlace : std::uint8_t { kNever, kOnThePublishersHost, kAlways };
// Whether the publisher serves its versions over TCP. kToOtherHosts: where nodes of other hosts may
// join.
enum class ServedOverTcp : std::uint8_t { kNever, kToOtherHosts, kAlways };

// The traits of a type as it is configured; resolve() may make kAuto another one.
struct WeightsTraits {
  WeightsType type;
  std::string_view name;  // the value of weight_broadcast.type
  VersionMemory versions = VersionMemory::kSharedMemory;
  ReadInPlace read_in_place = ReadInPlace::kNever;
  ServedOverTcp served = ServedOverTcp::kNever;
  bool arrives_on_gpu = false;  // a subscriber's buffer may be in the memory of its GPU
  bool one_gpu = false;         // the publisher and all subscribers have shares of one GPU
  bool nccl = false;            // each end is a rank of NCCL, with a GPU; needs `broadcasting`
};

inline constexpr auto kWeightsTypes = std::to_array<WeightsTraits>({
    {.type = WeightsType::kAuto,
     .name = "auto",
     .read_in_place = ReadInPlace::kOnThePublishersHost,
     .served = ServedOverTcp::kToOtherHosts},
    {.type = WeightsType::kShm, .name = "shm", .read_in_place = ReadInPlace::kAlways},
    {.type = WeightsType::kDisk,
     .name = "disk",
     .versions = VersionMemory::kFiles,
     .read_in_place = ReadInPlace::kOnThePublishersHost},
    {.type = WeightsType::kCudaIpc,
     .name = "cuda_ipc",
     .versions = VersionMemory::kGpuMemory,
     .arrives_on_gpu = true,
     .one_gpu = true},
    {.type = WeightsType::kTcp, .name = "tcp", .served = ServedOverTcp::kAlways},
    {.type = WeightsType::kNccl,
     .name = "nccl",
     .served = ServedOverTcp::kAlways,
     .arrives_on_gpu = true,
     .nccl = true},
});

constexpr auto enum_names(WeightsType) {
  std::array<EnumName<WeightsType>, kWeightsTypes.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i] = {kWeightsTypes[i].type, kWeightsTypes[i].name};
  return names;
}

// Whether subscribers over TCP get what has changed since the version that they have (delta.h).
enum class DeltaUse : std::uint8_t {
  kAuto,    // where it is less than half of a version
  kNever,   // versions travel whole
  kAlways,  // whatever the size; for tests and measurements
};
constexpr auto enum_names(DeltaUse) {
  return std::to_array<EnumName<DeltaUse>>(
      {{DeltaUse::kAuto, "auto"}, {DeltaUse::kNever, "never"}, {DeltaUse::kAlways, "always"}});
}

static_assert([] {
  for (std::size_t i = 0; i < kWeightsTypes.size(); ++i)
    if (static_cast<std::size_t>(kWeightsTypes[i].type) != i) return false;
  return true;
}());

constexpr const WeightsTraits& traits_of(WeightsType type) {
  CHECK(static_cast<std::size_t>(type) < kWeightsTypes.size());
  return kWeightsTypes[static_cast<std::size_t>(type)];
}

}  // namespace tandem::weights
