// The environment is a list of names that are let through, not of names that are kept out: a
// variable that the list does not foresee, such as a token, then stays with us.
#include "runtime/node/child_program.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <sstream>
#include <string_view>

#include "runtime/base/file.h"

namespace tandem::node {
namespace {

constexpr std::array<std::string_view, 5> kVisible{"PATH", "HOME", "LANG", "TZ", "TMPDIR"};

bool passed_on(std::string_view name) {
  for (const std::string_view one : kVisible)
    if (name == one) return true;
  return name.starts_with("LC_");
}

std::string whole(double value) { return std::to_string(std::llround(value)); }

}  // namespace

std::vector<std::string> child_environment(const char* const* ours,
                                           const std::map<std::string, std::string>& added) {
  std::vector<std::string> environment;
  for (; ours && *ours; ++ours) {
    const std::string_view variable(*ours);
    const std::string_view name = variable.substr(0, variable.find('='));
    if (passed_on(name) && !added.contains(std::string(name))) environment.emplace_back(variable);
  }
  for (const auto& [name, value] : added) environment.push_back(name + "=" + value);
  return environment;
}

// proc(5): after the name, which may hold anything and ends with the last ')', come the state and
// numbers; utime and stime are the 14th and 15th field of all, rss the 24th.
std::optional<ChildUsage> usage_of(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  const std::size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text->substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  std::uint64_t user = 0, system = 0, resident_pages = 0;
  fields >> user >> system;
  for (int field = 16; field < 24; ++field) fields >> skipped;
  fields >> resident_pages;
  if (!fields) return std::nullopt;
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ChildUsage{static_cast<double>(user + system) / ticks_per_second,
                    resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))};
}

std::optional<std::string> UsageWatch::judge(const ChildUsage& usage) {
  constexpr double kMebibyte = 1 << 20;
  if (limits_.memory_bytes && usage.resident_bytes > *limits_.memory_bytes)
    return "took " + whole(static_cast<double>(usage.resident_bytes) / kMebibyte) +
           " MiB of memory, more than reward.limits.memory_megabytes: " +
           whole(static_cast<double>(*limits_.memory_bytes) / kMebibyte);
  if (line_passed_) cpu_seconds_before_ = usage.cpu_seconds;
  line_passed_ = false;
  const double spent = usage.cpu_seconds - cpu_seconds_before_;
  if (limits_.cpu_seconds_per_line && spent > *limits_.cpu_seconds_per_line)
    return "used " + whole(spent) +
           " s of CPU for one line, more than reward.limits.cpu_seconds_per_line: " +
           whole(*limits_.cpu_seconds_per_line);
  return std::nullopt;
}

}  // namespace tandem::node
