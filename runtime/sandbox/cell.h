// A sandboxed program that runs: started, seen to its end, and taken away with all that it started.
//
//   XB-5  After a cell's end no process of it is left, and nothing that it wrote to its scratch.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/sandbox/keeper.h"
#include "runtime/sandbox/limit_group.h"

namespace tandem::sandbox {

// `argv` names the program by an absolute path. HOME and TMPDIR of the environment ("NAME=value")
// are replaced by the scratch folder, which is the working folder as well. The program gets the
// three descriptors as its standard ones, and no other.
struct Command {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  int input = -1, output = -1, errors = -1;
  int executable = -1;  // an open program that is executed in place of argv[0]; -1: none
};

class Cell {
 public:
  // Returns when the program runs. The thread must outlive the cell, since the kernel takes its end
  // for the end of this process, with which the cell ends. The Error is kOutOfMemory where the
  // machine has no process, memory or descriptor to give.
  static Result<std::unique_ptr<Cell>> start(const Plan& plan, const Profile& profile,
                                             const Command& command);
  ~Cell();

  // Of the keeper, which exits when the program has ended and all its processes are gone.
  pid_t keeper() const { return keeper_; }
  // Of the program itself; nullopt: it has ended, or this kernel does not tell.
  std::optional<pid_t> program() const;
  // Resident memory of all processes of the program together, the scratch folder's files aside;
  // pages that several share count for each. 0 where this kernel does not tell.
  std::uint64_t resident_bytes() const;
  // Whether a cgroup bounds that sum by Profile::memory_bytes; without one each process is bounded
  // by it, and their sum is for the cell's owner to watch.
  bool counts_memory() const { return group_.counts_memory(); }
  // Kills what runs, waits for its end and returns what became of the program. A program that was
  // ending by itself keeps its own status. Later calls return the same.
  const Record& end();

 private:
  struct Unmap {
    void operator()(Record* record) const;
  };
  using SharedRecord = std::unique_ptr<Record, Unmap>;
  Cell(LimitGroup group, std::filesystem::path scratch, SharedRecord record);

  LimitGroup group_;
  std::filesystem::path scratch_;  // empty: it is in the cell's own file system
  SharedRecord record_;
  pid_t keeper_ = 0;
  bool reaped_ = false;
};

}  // namespace tandem::sandbox
