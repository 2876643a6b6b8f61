#include "runtime/node/memory_kills.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>

#include "runtime/base/cgroups.h"
#include "runtime/base/file.h"

namespace tandem::node {
namespace {

// The number of kept rises that explain no end yet. The count of the machine may rise for processes
// of others without end; more are dropped.
constexpr std::size_t kRisesMax = 4096;

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

void die_first_for_memory() {
  // The scale is -1000 … 1000: 500 counts as if the process used half of all memory on top. A
  // process may raise its own score without any right, and a higher score that it has is kept.
  constexpr int kScore = 500;
  const char* const file = "/proc/self/oom_score_adj";
  int current = 0;
  if (std::ifstream(file) >> current && current < kScore) std::ofstream(file) << kScore;
}

// A process that is ending, or a zombie, still has a file but no pages.
std::optional<std::uint64_t> resident_bytes(pid_t pid) {
  const Result<std::string> text = read_file("/proc/" + std::to_string(pid) + "/statm");
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  std::uint64_t size = 0, resident = 0;  // in pages
  if (!(words >> size >> resident) || resident == 0) return std::nullopt;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool kill_may_be_pending(pid_t pid) {
  constexpr std::uint64_t kSigkillBit = std::uint64_t{1} << (SIGKILL - 1);
  const Result<std::string> text = read_file("/proc/" + std::to_string(pid) + "/status");
  if (!text) return true;
  std::istringstream lines(*text);
  // Two lines: signals pending for the first thread (SigPnd), and for the whole process (ShdPnd).
  int masks = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t pending = 0;
    if (!(words >> key) || (key != "SigPnd:" && key != "ShdPnd:")) continue;
    if (!(words >> std::hex >> pending) || (pending & kSigkillBit) != 0) return true;
    ++masks;
  }
  return masks != 2;
}

MemoryKillWatch::MemoryKillWatch(const MemoryKillCounts& before)
    : own_{before.own, {}}, machine_{before.machine, {}} {}

void MemoryKillWatch::note(const MemoryKillCounts& counted, Time now) {
  note(own_, counted.own, now);
  note(machine_, counted.machine, now);
}

MemoryKill MemoryKillWatch::claim(Time now, Time lived_on) {
  // Both are taken: the count of the machine rises for a kill in our own cgroup as well, and must
  // not explain another end later (MK-1).
  const bool own = take(own_, now, lived_on);
  const bool machine = take(machine_, now, lived_on);
  if (own) return MemoryKill::kProven;
  return machine && !own_.seen ? MemoryKill::kHinted : MemoryKill::kNone;
}

void MemoryKillWatch::note(Counter& counter, std::optional<std::uint64_t> counted, Time now) {
  if (!counted) return;
  // The first count that can be read is a start and no rise.
  for (std::uint64_t n = counter.seen.value_or(*counted);
       n < *counted && counter.unexplained.size() < kRisesMax; ++n)
    counter.unexplained.push_back(now);
  counter.seen = counted;
}

// MK-1: rises that are too old are dropped, and one that explains an end is used up. MK-2: only a
// rise that was seen after `lived_on` counts, the oldest of them.
bool MemoryKillWatch::take(Counter& counter, Time now, Time lived_on) {
  auto& rises = counter.unexplained;
  while (!rises.empty() && now - rises.front() > kMemoryKillWindow) rises.pop_front();
  const auto rise = std::ranges::upper_bound(rises, lived_on);
  if (rise == rises.end()) return false;
  rises.erase(rise);
  return true;
}

}  // namespace tandem::node
