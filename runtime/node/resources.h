// What this machine gives to Tandem. Limits of the process count, not only the hardware: the CPU
// affinity mask and the cgroup's CPU quota and memory limits (version 2, version 1, and both
// mixed), at every level from the process's own group up to the root that it can see. Shared memory
// counts as memory of the cgroup whose process writes it first. Swap is never counted: an actor
// that is swapped out is as good as dead.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/base/result.h"
#include "runtime/node/agent_messages.h"

namespace tandem::runtime {

struct MachineResources {
  double cpus = 0;                 // usable cores; a fraction where a quota says so
  std::uint64_t memory_bytes = 0;  // the least of MemTotal, memory.max and memory.high
  // Less what others hold: the least, over the same, of what can still be had. File pages that the
  // kernel can drop are not held.
  std::uint64_t memory_free_bytes = 0;
  std::string hostname;
};

// Where the kernel says so; a test points them at files of its own.
struct ResourceSources {
  std::filesystem::path memory_info = "/proc/meminfo";
  std::filesystem::path own_cgroups = "/proc/self/cgroup";
  std::filesystem::path cgroup_mount = "/sys/fs/cgroup";
};

// Fails only where /proc cannot be read. Cgroup files that are missing limit nothing.
Result<MachineResources> read_machine_resources(const ResourceSources& sources = {});

// SLURMD_NODENAME where it is set: several Slurm nodes share a hostname.
std::string hostname();

// What an agent here says of its node when it starts, GPUs included. Its memory is what is free.
Result<NodeUp> describe_node(Incarnation incarnation);

// Bytes that this user can still write below `path`, which must exist.
Result<std::uint64_t> free_disk_bytes(const std::filesystem::path& path);

}  // namespace tandem::runtime
