// The rank processes that an agent has started, written down in a folder of its node, a file each:
// the agent that comes after one which died finds them there. A file is written before the
// controller hears of the process, and goes with the process's end.
//
//   KR-1  A process is known by its pid, the time of its start and the boot of the machine. A pid
//         alone may be another process's by now.
//
// While a KeptRanks exists it holds the folder's lock: no two agents own the same processes.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/node/adopted_process.h"
#include "runtime/node/agent_messages.h"

namespace tandem::node {

struct KeptRank {
  RankId id;
  pid_t pid = 0;
  ProcessBirth born;
};

class KeptRanks {
 public:
  // Makes the folder. Errors: it cannot be made, or an agent that lives has it (kFailed).
  static Result<KeptRanks> open(std::filesystem::path folder);

  // The ranks that an earlier agent has left, those that have ended since as well. A file that
  // cannot be read is removed, and a line in the log says so.
  std::vector<KeptRank> found();
  // Where the file cannot be written, as on a full disk, a line in the log says so: the rank works
  // as ever, and the next agent does not find it.
  void add(const RankId& id, pid_t pid);
  void remove(const RankId& id);

 private:
  KeptRanks(std::filesystem::path folder, FileLock lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}

  std::filesystem::path folder_;
  FileLock lock_;
  std::map<RankId, std::filesystem::path> files_;
};

}  // namespace tandem::node
