// The list of system calls that a sandboxed program is refused, as a program for the kernel's
// filter. Calls that are younger than the list are refused with ENOSYS, as by an older kernel, so
// that libraries fall back to those that they know.
//
// The filter decides by numbers and plain arguments alone: it cannot follow a pointer. Paths and
// addresses are the business of the other layers.
//
//   XB-7  A sandboxed program makes no socket but a connected pair of streams, in any layer's
//         absence: Landlock does not stop a connection to a Unix socket by its path. With `sockets`
//         it may also connect streams to the Unix sockets in its view, and listens at none.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::sandbox {

struct FilterWishes {
  bool forks = true;  // false: new threads alone
  // Limits and priorities of other processes; false: each process sets its own alone. They are
  // dangerous where processes of the same uid are in reach that are not the sandbox's.
  bool settings = true;
  // Signals to other processes; false: to itself alone, by the number that filter_own_pid() sets.
  bool signals = true;
  bool sockets = false;  // connections to Unix sockets
};

std::vector<sock_filter> seccomp_filter(const FilterWishes& wishes);

// Sets the number of the process that a filter without `signals` lets be signalled. Safe after a
// fork: it allocates nothing.
void filter_own_pid(sock_filter* filter, std::size_t size, std::uint32_t pid);

// Puts the filter on the calling thread, which has set no_new_privs. False: errno says why. Safe
// after a fork.
bool install(sock_filter* filter, std::size_t size);

}  // namespace tandem::sandbox
