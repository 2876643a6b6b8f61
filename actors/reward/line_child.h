// A child process that reads and writes lines, as CommandVerifier sees it, and the real one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/reward/child_program.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/base/result.h"
#include "runtime/net/io_thread.h"

namespace tandem::actors {

inline constexpr std::size_t kChildLineBytesMax = std::size_t{1} << 20;  // of what it writes

class LineChild {
 public:
  virtual ~LineChild() = default;  // kills the process, which is gone when this returns
  virtual void write_line(std::string line) = 0;  // without its end; never blocks
  virtual std::int64_t pid() const = 0;
  // The last lines that it wrote to stderr (last_lines.h), also after its end.
  virtual std::vector<std::string> stderr_tail() = 0;
};

struct ChildEnd {
  std::string why;     // "exited with code 3", "wrote a line of more than 1048576 bytes"
  bool clean = false;  // it exited by itself, with code 0
};

// Called from any thread, never from within a call to the child. Nothing comes after `ended`.
struct LineChildEvents {
  std::function<void(std::string line)> line;
  std::function<void(ChildEnd end)> ended;
};
// kOutOfMemory: this machine has no process, memory or descriptor to give. Any other error is the
// program's own: no such file, no permission.
using LineChildSpawner = std::function<Result<std::unique_ptr<LineChild>>(
    const ChildProgram& program, LineChildEvents events)>;

// Spawns real processes, on `io`, which waits until they run, serves their pipes and outlives them.
// A child stays in our process group; its stderr is copied to ours. However we die, it sees the end
// of its input and is killed, unless it runs with another user's rights (sudo), which Linux
// excepts.
LineChildSpawner process_spawner(runtime::IoThread& io);

}  // namespace tandem::actors
