// Processes that this process did not start, and that nobody waits for any more: their parent has
// died. The kernel tells when they end, and on newer kernels also how.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem::node {

// The boot of the machine, and the time since then at which a process started, in clock ticks.
struct ProcessBirth {
  std::string boot;
  std::uint64_t ticks = 0;
  bool operator==(const ProcessBirth&) const = default;
};
// nullopt: there is no such process, or only its zombie, of which no thread runs any more.
std::optional<ProcessBirth> birth_of(pid_t pid);

// A descriptor of the very process. Errors: kNotFound where it has ended; another code where that
// cannot be told, as for want of descriptors.
Result<OwnedFd> open_process(pid_t pid, const ProcessBirth& born);

// Sends a signal to each process of the group, none of which is our child. A number that is used
// again hits nobody (PH-4): each process is opened, and then looked at, before it gets the signal.
void signal_adopted_group(pid_t group, int signal_number);

// How the process ended, whose pidfd says that it has, as waitpid() tells it. nullopt: Linux before
// 6.15 does not tell.
std::optional<int> status_of_adopted(const OwnedFd& pidfd);

}  // namespace tandem::node
