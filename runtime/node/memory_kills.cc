#include "runtime/node/memory_kills.h"

#include <unistd.h>

#include <sstream>
#include <string>

#include "runtime/base/file.h"
#include "runtime/node/cgroups.h"

namespace tandem::runtime {
namespace {

constexpr std::size_t kRisesMax = 4096;  // that wait for an explanation

// The number on the line "oom_kill N"; older kernels lack it.
std::optional<std::uint64_t> oom_kill_of(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t value = 0;
    if (words >> key >> value && key == "oom_kill") return value;
  }
  return std::nullopt;
}

}  // namespace

MemoryKillCounts read_memory_kills(const MemoryKillSources& sources) {
  MemoryKillCounts counts{.own = std::nullopt, .machine = oom_kill_of(sources.machine)};
  for (const Cgroup& cgroup : read_cgroups(sources.own_cgroups, sources.cgroup_mount)) {
    const bool version_2 = cgroup.controllers.empty();
    if (!version_2 && cgroup.controllers != "memory") continue;
    for (const auto& folder : cgroup.levels) {
      counts.own = oom_kill_of(folder / (version_2 ? "memory.events" : "memory.oom_control"));
      if (counts.own) return counts;
    }
  }
  return counts;
}

std::optional<std::uint64_t> resident_bytes(pid_t pid) {
  const Result<std::string> text = read_file("/proc/" + std::to_string(pid) + "/statm");
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  std::uint64_t size = 0, resident = 0;  // in pages
  if (!(words >> size >> resident) || resident == 0) return std::nullopt;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

MemoryKillWatch::MemoryKillWatch(const MemoryKillCounts& before)
    : own_{before.own, {}}, machine_{before.machine, {}} {}

void MemoryKillWatch::note(const MemoryKillCounts& counted, Time now) {
  note(own_, counted.own, now);
  note(machine_, counted.machine, now);
}

MemoryKill MemoryKillWatch::claim(Time now) {
  const bool own = take(own_, now);
  const bool machine = take(machine_, now);  // the machine counts ours as well
  if (own) return MemoryKill::kProven;
  return machine && !own_.seen ? MemoryKill::kHinted : MemoryKill::kNone;
}

void MemoryKillWatch::note(Counter& counter, std::optional<std::uint64_t> counted, Time now) {
  if (!counted) return;
  for (std::uint64_t n = counter.seen.value_or(*counted);
       n < *counted && counter.unexplained.size() < kRisesMax; ++n)
    counter.unexplained.push_back(now);
  counter.seen = counted;
}

bool MemoryKillWatch::take(Counter& counter, Time now) {  // MK-1
  auto& rises = counter.unexplained;
  while (!rises.empty() && now - rises.front() > kMemoryKillWindow) rises.pop_front();
  if (rises.empty()) return false;
  rises.pop_front();
  return true;
}

}  // namespace tandem::runtime
