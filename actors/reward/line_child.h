// A child process that reads and writes lines, as CommandVerifier sees it, and the real one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

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
};

// Called from any thread, never from within a call to the child. Nothing comes after `ended`, which
// says why: "exited with code 3", "wrote a line of more than 1048576 bytes".
struct LineChildEvents {
  std::function<void(std::string line)> line;
  std::function<void(std::string why)> ended;
};
using LineChildSpawner = std::function<Result<std::unique_ptr<LineChild>>(
    const std::vector<std::string>& argv, LineChildEvents events)>;

// Spawns real processes, on `io`, which waits until they run, serves their pipes and outlives them.
// A child stays in our process group and inherits our stderr. However we die, it sees the end of
// its input and is killed, unless it runs with another user's rights (sudo), which Linux excepts.
LineChildSpawner process_spawner(runtime::IoThread& io);

}  // namespace tandem::actors
