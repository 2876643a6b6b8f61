// A child process that reads and writes lines, as CommandVerifier sees it: the interface, and the
// spawner of real processes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/base/result.h"
#include "runtime/link/io_thread.h"
#include "runtime/node/child_program.h"

namespace tandem::node {

// The longest line that a child may write.
inline constexpr std::size_t kChildLineBytesMax = std::size_t{1} << 20;

// A running program. Lines are given without their end of line.
class LineChild {
 public:
  virtual ~LineChild() = default;                 // kills the process and waits for its end
  virtual void write_line(std::string line) = 0;  // never blocks
  virtual std::int64_t pid() const = 0;           // in a sandbox, of the keeper
  // The last lines that the child wrote to stderr (last_lines.h), also after its end.
  virtual std::vector<std::string> stderr_tail() = 0;
};

struct ChildEnd {
  std::string why;     // "exited with code 3", "wrote a line of more than 1048576 bytes"
  bool clean = false;  // it exited by itself, with code 0
};

// Called from any thread, never from within a call to the child. No event comes after `ended`.
struct LineChildEvents {
  std::function<void(std::string line)> line;
  std::function<void(ChildEnd end)> ended;
};
// Starts a program. The Error is kOutOfMemory if this machine has no process, memory or descriptor
// to give; any other code is the program's own fault: no such file, no permission.
using LineChildSpawner = std::function<Result<std::unique_ptr<LineChild>>(
    const ChildProgram& program, LineChildEvents events)>;

// Spawns real processes on the thread of `io`, which serves their pipes and must outlive them; a
// call waits until the program runs or has failed to start. A child stays in our process group, and
// its stderr is copied to ours. When our process ends in any way, the child sees the end of its
// input and is killed, unless it runs with another user's rights (sudo): for such a child Linux
// drops the request to be killed. A sandboxed program is looked for in the PATH of its environment,
// is in a session of its own, and ends with all the processes that it started.
LineChildSpawner process_spawner(link::IoThread& io);

}  // namespace tandem::node
