// Runs a short program in a sandbox to its end: its input goes in, its bounded output comes back.
//
//   XB-6  A run ends at its deadline, or when there is more output than allowed, whatever the
//         program does, and leaves no process.
//   XB-8  Where no cgroup counts memory, a run ends when its processes together hold more than the
//         profile's, looked at ten times a second. Each alone can never have more address space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/enum_names.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/sandbox/layers.h"

namespace tandem::sandbox {

struct Run {
  std::vector<std::string> argv;         // the first is an absolute path
  std::vector<std::string> environment;  // "NAME=value"
  std::string input;
  Duration deadline{};
  std::size_t output_bytes_max = 1u << 20;  // of stdout, and as much of stderr
  int stop = -1;        // a descriptor whose readability ends the run early; -1: none
  int executable = -1;  // an open program that is executed in place of argv[0]; -1: none
};

enum class RunEnd : std::uint8_t { kExited, kSignal, kDeadline, kOutput, kMemory, kStopped };
constexpr auto enum_names(RunEnd) {
  using enum RunEnd;
  return enum_name_rows<RunEnd>({{kExited, "exited"},
                                 {kSignal, "killed by a signal"},
                                 {kDeadline, "out of time"},
                                 {kOutput, "too much output"},
                                 {kMemory, "too much memory"},
                                 {kStopped, "stopped"}});
}

struct Outcome {
  RunEnd end = RunEnd::kExited;
  int code = 0;  // the exit code, or the signal of kSignal
  std::string output, errors;
  double seconds = 0, cpu_seconds = 0;
  std::uint64_t memory_bytes_peak = 0;  // resident, of the largest process
};

// A program without a path, for Run::executable: it is in memory, and cannot be changed any more.
Result<OwnedFd> executable_of(std::string_view bytes);

// Blocks the calling thread. An Error is the machine's: the program was not started, or its sandbox
// was ended from outside.
Result<Outcome> run(const Plan& plan, const Profile& profile, const Run& what);

}  // namespace tandem::sandbox
