// The events of a `tandem run`'s controller, for the time after the command: the state folder of
// that controller is removed at its end, so the events about a run are also kept in the run's
// directory, in a journal as a state folder has one (RUN_DIR/controller.sqlite). announced_events()
// of the run directory reads them (cluster_journal.h), and the same limits hold for them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "actors/runs/cluster_event.h"
#include "actors/runs/cluster_journal.h"
#include "actors/runs/lost_events.h"
#include "runtime/base/result.h"

namespace tandem::runs {

// One thread at a time may use it.
class KeptEvents {
 public:
  // From now on the events about the job and its actors are kept in its run directory.
  void keep_in(const std::string& job, const std::filesystem::path& run_dir);
  // Keeps the event where it is about such a job. One that the directory does not take is lost
  // (lost_events.h), and the next one tries again.
  void append(const ClusterEvent& event);

 private:
  struct Kept {
    std::filesystem::path run_dir;
    std::optional<ClusterJournal> journal;  // from the first event on
    LostEvents lost;
  };
  static Result<void> append(Kept& kept, const ClusterEvent& event);
  std::map<std::string, Kept> kept_;  // by job
};

// The number of the newest event about the run that the journal of the state folder or of the run's
// directory has; 0 where there is none.
std::int64_t last_event_of(const std::filesystem::path& home, const std::filesystem::path& run_dir);

}  // namespace tandem::runs
