// Who ends a wait that has no deadline. `tandem why`, the API and the page show the words in place
// of a deadline, so that no wait is without either. Pure values.
//
//   WE-1  Each reason has a deadline (deadline_of) or names who ends it: one that has neither does
//         not compile.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/fleet/lifecycle.h"

namespace tandem::scheduler {

enum class EndedBy : std::uint8_t {
  kBehind,      // what is waited for has a wait of its own, and that one has the deadline
  kHang,        // the end of a start, or the watchdog, which has not seen the work yet
  kWork,        // nobody: the actor or the job is at work
  kRoom,        // others that end, or a user who adds nodes
  kQueue,       // the jobs before it
  kController,  // the next turn of the controller
  kProcess,     // the end of a process that is told to end
  kNode,        // the node's return, where it is not known when the node is given up
  kDisk,        // a user who makes room on the disk
  kFree,        // an actor of the role that takes it next
  kMended,      // a user who mends the program, where trying again does not
  kSteps,       // a limit that counts steps, not seconds
  kNotHeld,     // nobody: it holds nothing up
  kOver,        // nobody: it is the reason of an end
};

const char* words(EndedBy ended_by);  // "until there is room"; at most 22 characters

// nullopt: the reason has a deadline.
std::optional<EndedBy> ended_by(const Reason& reason);

}  // namespace tandem::scheduler
