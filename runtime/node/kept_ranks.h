// The rank processes that an agent has started, written down: the agent that comes after one which
// died finds them. A process is written down before the controller hears of it, until its end.
// KeptRankFiles writes a file for each into a folder of the node; a simulation keeps them in
// memory.
//
//   KR-1  A process is known by its pid, the time of its start and the boot of the machine. A pid
//         alone may be another process's by now.
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
  virtual ~KeptRanks() = default;
  // The ranks that an earlier agent has left, those that have ended since as well.
  virtual std::vector<KeptRank> found() = 0;
  virtual void add(const RankId& id, pid_t pid) = 0;
  virtual void remove(const RankId& id) = 0;
};

// While a KeptRankFiles exists it holds the folder's lock: no two agents own the same processes.
class KeptRankFiles final : public KeptRanks {
 public:
  // Makes the folder. Errors: it cannot be made, or an agent that lives has it (kFailed).
  static Result<KeptRankFiles> open(std::filesystem::path folder);

  // A file that cannot be read is removed, and a line in the log says so.
  std::vector<KeptRank> found() override;
  // Where the file cannot be written, as on a full disk, or the time of the rank's start cannot be
  // read, as without descriptors, a line in the log says so: the rank works as ever, and the next
  // agent does not find it.
  void add(const RankId& id, pid_t pid) override;
  void remove(const RankId& id) override;

 private:
  KeptRankFiles(std::filesystem::path folder, FileLock lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}

  std::filesystem::path folder_;
  FileLock lock_;
  std::map<RankId, std::filesystem::path> files_;
};

}  // namespace tandem::node
