#include "runtime/node/process_usage.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tandem::node {
namespace {

namespace fs = std::filesystem;

struct Reading {
  bool stopped = false;     // by a signal
  std::uint64_t ticks = 0;  // CPU time, user and system
  std::int64_t pages = 0;   // resident
};

// Reads /proc/PID/stat. Its second field, the program's name in brackets, may hold spaces and
// brackets itself: fields are counted from the last ')'. State is field 3, utime 14, stime 15, rss
// 24.
std::optional<Reading> read_process(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string state, skipped;
  fields >> state;
  for (int field = 4; field < 14; ++field) fields >> skipped;
  std::uint64_t user = 0, system = 0;
  fields >> user >> system;
  for (int field = 16; field < 24; ++field) fields >> skipped;
  Reading reading{.stopped = state == "T", .ticks = user + system};
  if (!(fields >> reading.pages)) return std::nullopt;
  return reading;
}

// Adds the children of a process. The kernel lists a child at the thread that started it, so that
// all threads are asked; a kernel without these files lists none.
void append_children(const fs::path& process, std::vector<pid_t>& pids) {
  std::error_code error;
  for (fs::directory_iterator thread(process / "task", error), end; !error && thread != end;
       thread.increment(error)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; pids.size() < kUsageProcessesMax && children >> child;)
      pids.push_back(child);
  }
}

}  // namespace

std::vector<pid_t> family_of(pid_t first, const fs::path& proc) {
  std::vector<pid_t> pids{first};
  // The list grows while it is walked.
  for (std::size_t i = 0; i < pids.size(); ++i)
    append_children(proc / std::to_string(pids[i]), pids);
  return pids;
}

std::optional<ProcessUsage> UsageMeter::sample(Time now) {
  std::map<pid_t, std::uint64_t> ticks;
  std::uint64_t grown = 0;
  std::int64_t pages = 0;
  bool stopped = false;
  for (const pid_t pid : family_of(pid_, proc_)) {
    const auto reading = read_process(proc_ / std::to_string(pid));
    if (!reading) continue;
    if (pid == pid_) stopped = reading->stopped;
    const auto known = ticks_.find(pid);
    const std::uint64_t before = known == ticks_.end() ? 0 : known->second;
    // PU-1: fewer ticks than before mean that a new process has the pid. A process that has ended
    // is simply missing, and takes nothing away from the sum.
    if (reading->ticks > before) grown += reading->ticks - before;
    pages += reading->pages;
    ticks[pid] = reading->ticks;
  }
  const bool gone = ticks.empty();
  const auto last = std::exchange(sampled_, now);
  ticks_ = std::move(ticks);
  const bool stays = std::exchange(was_stopped_, stopped) && stopped;  // PU-2
  stopped_ = stays ? stopped_ + std::min(now - *last, kSampleMax) : Duration{};
  if (gone || !last || now <= *last) return std::nullopt;
  const double cpu_seconds =
      static_cast<double>(grown) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ProcessUsage{.cpu_percent = 100 * cpu_seconds / seconds(now - *last),
                      .memory_bytes = pages * ::sysconf(_SC_PAGESIZE),
                      .stopped = stopped_};
}

}  // namespace tandem::node
