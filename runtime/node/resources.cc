// Every limit is a minimum over all places where it can be set: the hardware, the affinity mask,
// and each level of each cgroup hierarchy. A place that cannot be read, or that says "no limit" in
// its own way ("max", -1, a huge number), takes no part in the minimum.
//
// Free memory takes more care. A group's usage includes pages of files, which the kernel drops when
// memory is wanted; counted as held, they would make a machine that has read large files look
// full. So they are taken off, by memory.stat. Shared memory stays: the kernel cannot drop it.
#include "runtime/node/resources.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/cgroups.h"
#include "runtime/base/file.h"

namespace tandem::node {
namespace {

// The numbers in a file of one line such as "150000 100000". A word ("max") is left out, and a file
// that cannot be read has no numbers.
std::vector<std::int64_t> numbers(const std::filesystem::path& path) {
  std::vector<std::int64_t> values;
  const Result<std::string> text = read_file(path);
  if (!text) return values;
  std::istringstream words(*text);
  for (std::string word; words >> word;) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc{} && end == word.data() + word.size()) values.push_back(value);
  }
  return values;
}

// The least of all limits so far; the initial values are no limit.
struct Limits {
  double cpus = std::numeric_limits<double>::infinity();
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t memory_free_bytes = std::numeric_limits<std::uint64_t>::max();
};

void apply_cpu(Limits& limits, std::int64_t quota_us, std::int64_t period_us) {
  if (quota_us <= 0 || period_us <= 0) return;  // version 1 says -1 for "no limit"
  limits.cpus =
      std::min(limits.cpus, static_cast<double>(quota_us) / static_cast<double>(period_us));
}

// The values of `keys` in a file of lines "key value", added up; a key that is missing counts 0.
std::uint64_t sum_of_keys(const std::filesystem::path& path,
                          std::initializer_list<std::string_view> keys) {
  std::uint64_t sum = 0;
  const Result<std::string> text = read_file(path);
  if (!text) return sum;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t value = 0;
    if (words >> key >> value && std::ranges::find(keys, key) != keys.end()) sum += value;
  }
  return sum;
}

// The names that a version of cgroups uses: of the files with limits of memory, of the file with
// the memory that a group holds, and of the lines of memory.stat with memory that the kernel can
// drop. In neither version do these lines include shared memory.
struct MemoryFiles {
  std::vector<const char*> limits;
  const char* held;
  std::initializer_list<std::string_view> droppable;
};

// Applies the limits of one level. A group may hold more than a limit: then nothing is free.

void apply_memory(Limits& limits, const std::filesystem::path& folder, const MemoryFiles& files) {
  const auto held = numbers(folder / files.held);
  std::uint64_t kept = 0;
  if (held.size() == 1 && held[0] > 0) {
    const std::uint64_t dropped = sum_of_keys(folder / "memory.stat", files.droppable);
    kept = static_cast<std::uint64_t>(held[0]) -
           std::min(static_cast<std::uint64_t>(held[0]), dropped);
  }
  for (const char* const name : files.limits) {
    const auto bytes = numbers(folder / name);
    if (bytes.size() != 1 || bytes[0] <= 0) continue;
    const auto limit = static_cast<std::uint64_t>(bytes[0]);
    limits.memory_bytes = std::min(limits.memory_bytes, limit);
    limits.memory_free_bytes = std::min(limits.memory_free_bytes, limit - std::min(limit, kept));
  }
}

void apply_version_2(Limits& limits, const std::filesystem::path& folder) {
  const auto cpu = numbers(folder / "cpu.max");
  if (cpu.size() == 2) apply_cpu(limits, cpu[0], cpu[1]);
  apply_memory(limits, folder,
               {.limits = {"memory.max", "memory.high"},
                .held = "memory.current",
                .droppable = {"inactive_file", "active_file", "slab_reclaimable"}});
}

void apply_version_1(Limits& limits, const std::filesystem::path& folder) {
  const auto quota = numbers(folder / "cpu.cfs_quota_us");
  const auto period = numbers(folder / "cpu.cfs_period_us");
  if (quota.size() == 1 && period.size() == 1) apply_cpu(limits, quota[0], period[0]);
  apply_memory(limits, folder,
               {.limits = {"memory.limit_in_bytes"},
                .held = "memory.usage_in_bytes",
                .droppable = {"total_inactive_file", "total_active_file"}});
}

Limits cgroup_limits(const ResourceSources& sources) {
  Limits limits;
  for (const Cgroup& cgroup : read_cgroups(sources.own_cgroups, sources.cgroup_mount))
    for (const auto& folder : cgroup.levels)
      cgroup.controllers.empty() ? apply_version_2(limits, folder)
                                 : apply_version_1(limits, folder);
  return limits;
}

struct MachineMemory {
  std::uint64_t total, available;  // bytes
};

// A kernel before 3.14 has no MemAvailable: then all memory counts as available.
Result<MachineMemory> machine_memory(const std::filesystem::path& memory_info) {
  const Result<std::string> text = read_file(memory_info);
  if (!text) return text.error();
  const std::uint64_t total = sum_of_keys(memory_info, {"MemTotal:"}) * 1024;
  const std::uint64_t available = sum_of_keys(memory_info, {"MemAvailable:"}) * 1024;
  if (total == 0)
    return Error{.message = "cannot find MemTotal", .where = memory_info.string(), .help = {}};
  return MachineMemory{total, available == 0 ? total : std::min(total, available)};
}

int affinity_cpus() {
  // A mask larger than cpu_set_t's 1024 bits makes the call fail; then all online CPUs count.
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

std::string hostname() {
  if (const char* slurm = std::getenv("SLURMD_NODENAME"); slurm != nullptr && *slurm != '\0') {
    return slurm;
  }
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

Result<MachineResources> read_machine_resources(const ResourceSources& sources) {
  const Result<MachineMemory> memory = machine_memory(sources.memory_info);
  if (!memory) return memory.error();
  const Limits limits = cgroup_limits(sources);
  return MachineResources{
      .cpus = std::min<double>(affinity_cpus(), limits.cpus),
      .memory_bytes = std::min(memory->total, limits.memory_bytes),
      .memory_free_bytes = std::min(memory->available, limits.memory_free_bytes),
      .hostname = hostname()};
}

Result<NodeUp> describe_node(Incarnation incarnation) {
  const Result<MachineResources> machine = read_machine_resources();
  if (!machine) return machine.error();
  NodeUp node{.node = machine->hostname,
              .incarnation = incarnation,
              .cpus = machine->cpus,
              .memory_bytes =
                  std::max<std::int64_t>(1, static_cast<std::int64_t>(machine->memory_free_bytes)),
              .pid = ::getpid()};
  if (Result<GpuListing> gpus = read_gpus()) {
    node.gpus_absent = absence_of(*gpus);
    node.gpus = std::move(gpus->usable);
    node.gpus_unusable = std::move(gpus->unusable);
  } else {
    node.gpus_absent = gpus.error().message;
  }
  return node;
}

Result<DiskSpace> disk_space(const std::filesystem::path& path) {
  struct statvfs facts;
  if (::statvfs(path.c_str(), &facts) != 0) return file_error("read the free space", path);
  return DiskSpace{.size_bytes = std::uint64_t{facts.f_blocks} * facts.f_frsize,
                   .free_bytes = std::uint64_t{facts.f_bavail} * facts.f_frsize};
}

}  // namespace tandem::node
