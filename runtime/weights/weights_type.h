// How versions of the weights reach subscribers. The order is that of the spellings of
// weight_broadcast.type in actors/job/job_values.cc.
#pragma once

#include <cstdint>

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

}  // namespace tandem::weights
