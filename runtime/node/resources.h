// The CPUs, the memory and the disk that this machine gives to Tandem. The limits of this process
// count and not only the hardware: the CPU affinity mask, and the CPU quota and memory limits of
// its cgroup (version 2, version 1, and both mixed) at every level from its own group up to the
// root that it can see. The kernel counts shared memory as memory of the cgroup whose process
// writes it first. Swap is never counted: an actor that is swapped out is too slow to be of use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/base/result.h"
#include "runtime/node/agent_messages.h"

namespace tandem::node {

struct MachineResources {
  double cpus = 0;  // usable cores; a fraction where a quota says so
  // The least of MemTotal and all limits.
  std::uint64_t memory_bytes = 0;
  // The least of MemAvailable and, for each limit, the limit less the memory that its group holds.
  // File pages that the kernel can drop do not count as held.
  std::uint64_t memory_free_bytes = 0;
  std::string hostname;
};

// The files in which the kernel tells it; a test names files of its own.
struct ResourceSources {
  std::filesystem::path memory_info = "/proc/meminfo";
  std::filesystem::path own_cgroups = "/proc/self/cgroup";
  std::filesystem::path cgroup_mount = "/sys/fs/cgroup";
};

// An error only where `memory_info` cannot be read or lacks MemTotal. A cgroup file that is missing
// sets no limit.
Result<MachineResources> read_machine_resources(const ResourceSources& sources = {});

// The name by which this node is known: SLURMD_NODENAME where it is set, since several Slurm nodes
// may share a hostname; else the hostname.
std::string hostname();

// The introduction of an agent on this machine, GPUs included and NCCL left out. Its memory is the
// memory that is free at this moment.
Result<NodeUp> describe_node(Incarnation incarnation);

struct DiskSpace {
  std::uint64_t size_bytes = 0, free_bytes = 0;  // free: what this user can still write
};
// Of the file system of `path`, which must exist.
Result<DiskSpace> disk_space(const std::filesystem::path& path);

}  // namespace tandem::node
