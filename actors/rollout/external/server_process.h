// The server of an engine, as a child of the rollout's process: its lines go to the rollout's log,
// and its end is told with its last words. It stays in the process group of the rollout, whose end
// by any cause ends it and what it has started (PH-3 in runtime/node/process_host.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/node/line_child.h"

namespace tandem::rollout {

// The variables of this process that a server inherits, and those that it is given besides. Left
// out are Tandem's own, and those by which launchers of jobs tell programs that they are ranks of
// one (SLURM, PMI, MPI): engines that start ranks of their own would take them for theirs.
std::map<std::string, std::string> server_environment(
    const char* const* ours, const std::map<std::string, std::string>& added);

class ServerProcess {
 public:
  static Result<std::unique_ptr<ServerProcess>> start(const node::ChildProgram& program,
                                                      const node::LineChildSpawner& spawn);
  // Why it has ended, as the end of a sentence: "exited with code 1; its last lines: …".
  std::optional<std::string> ended() const;

 private:
  struct State;
  explicit ServerProcess(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const std::shared_ptr<State> state_;
  std::unique_ptr<node::LineChild> child_;
};

}  // namespace tandem::rollout
