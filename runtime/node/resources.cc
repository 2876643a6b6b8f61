#include "runtime/node/resources.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string_view>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/node/cgroups.h"

namespace tandem::runtime {
namespace {

// The numbers of a one-line file such as "150000 100000"; words ("max") and a missing file give
// none.
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

struct Limits {
  double cpus = std::numeric_limits<double>::infinity();
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();
};

void apply_cpu(Limits& limits, std::int64_t quota_us, std::int64_t period_us) {
  if (quota_us <= 0 || period_us <= 0) return;  // version 1 says -1 for "no limit"
  limits.cpus =
      std::min(limits.cpus, static_cast<double>(quota_us) / static_cast<double>(period_us));
}

void apply_memory(Limits& limits, const std::vector<std::int64_t>& bytes) {
  if (bytes.size() != 1 || bytes[0] <= 0) return;
  limits.memory_bytes = std::min(limits.memory_bytes, static_cast<std::uint64_t>(bytes[0]));
}

void apply_version_2(Limits& limits, const std::filesystem::path& folder) {
  const auto cpu = numbers(folder / "cpu.max");
  if (cpu.size() == 2) apply_cpu(limits, cpu[0], cpu[1]);
  apply_memory(limits, numbers(folder / "memory.max"));
}

void apply_version_1(Limits& limits, const std::filesystem::path& folder) {
  const auto quota = numbers(folder / "cpu.cfs_quota_us");
  const auto period = numbers(folder / "cpu.cfs_period_us");
  if (quota.size() == 1 && period.size() == 1) apply_cpu(limits, quota[0], period[0]);
  apply_memory(limits, numbers(folder / "memory.limit_in_bytes"));
}

Limits cgroup_limits(const ResourceSources& sources) {
  Limits limits;
  for (const Cgroup& cgroup : read_cgroups(sources.own_cgroups, sources.cgroup_mount))
    for (const auto& folder : cgroup.levels)
      cgroup.controllers.empty() ? apply_version_2(limits, folder)
                                 : apply_version_1(limits, folder);
  return limits;
}

Result<std::uint64_t> physical_memory(const std::filesystem::path& memory_info) {
  const Result<std::string> text = read_file(memory_info);
  if (!text) return text.error();
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kKey = "MemTotal:";
    if (!line.starts_with(kKey)) continue;
    std::istringstream rest(line.substr(kKey.size()));
    std::uint64_t kib = 0;
    if (rest >> kib) return kib * 1024;
  }
  return Error{.message = "cannot find MemTotal", .where = memory_info.string(), .help = {}};
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
  const Result<std::uint64_t> memory = physical_memory(sources.memory_info);
  if (!memory) return memory.error();
  const Limits limits = cgroup_limits(sources);
  return MachineResources{.cpus = std::min<double>(affinity_cpus(), limits.cpus),
                          .memory_bytes = std::min(*memory, limits.memory_bytes),
                          .hostname = hostname()};
}

Result<NodeUp> describe_node(Incarnation incarnation) {
  const Result<MachineResources> machine = read_machine_resources();
  if (!machine) return machine.error();
  NodeUp node{.node = machine->hostname,
              .incarnation = incarnation,
              .cpus = machine->cpus,
              .memory_bytes = static_cast<std::int64_t>(machine->memory_bytes),
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

Result<std::uint64_t> free_disk_bytes(const std::filesystem::path& path) {
  struct statvfs facts;
  if (::statvfs(path.c_str(), &facts) != 0) return file_error("read the free space", path);
  return std::uint64_t{facts.f_bavail} * facts.f_frsize;
}

}  // namespace tandem::runtime
