// The journal of a cluster, TANDEM_HOME/controller.sqlite: the epochs of its controllers, the
// events that they announced, also about runs of earlier controllers, and what the next controller
// must know to take their jobs up, a row for each change. The state folder of a `tandem run` goes
// with it; the events about its run stay in the run's directory (kept_events.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/runs/cluster_event.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/sqlite/sqlite.h"

namespace tandem::runs {

// One change of what the next controller must know (actors/controller/durable.h). The body is the
// event, encoded; the other columns are for people.
struct StateRow {
  std::string kind;     // "job_taken"
  std::string subject;  // a job or a node; may be empty
  std::string body;
};

// The journal as the one controller of a state folder writes it. One thread at a time may use it.
class ClusterJournal {
 public:
  // Makes the journal if there is none, gives one of an earlier version the columns that it lacks,
  // and begins an epoch. The caller holds the lock of the folder.
  static Result<ClusterJournal> begin(const std::filesystem::path& home, std::int64_t time_ms);

  Epoch epoch() const { return epoch_; }  // greater than all earlier ones
  std::int64_t events_before() const {
    return events_before_;
  }  // the highest event number of earlier ones
  // Of the events the newest kClusterEventsKept stay, and some more until the next clearing.
  Result<void> append(const ClusterEvent& event);

  // The rows of this `schema`, in order. What rows of another one mean is not known: they are left
  // out, and left where they are.
  struct KeptState {
    std::vector<StateRow> rows;
    bool other_schema = false;
  };
  Result<KeptState> state(std::int64_t schema);
  // Appends all of these rows or none; they survive a power cut.
  Result<void> append(const std::vector<StateRow>& rows, std::int64_t schema, std::int64_t time_ms);
  // Replaces all rows of this schema: they would grow with each change.
  Result<void> replace_state(const std::vector<StateRow>& rows, std::int64_t schema,
                             std::int64_t time_ms);

 private:
  explicit ClusterJournal(std::unique_ptr<sqlite::Sqlite> database)
      : database_(std::move(database)) {}

  // Removes what is older than the newest rows that are kept.
  Result<void> drop_old();
  std::vector<sqlite::Sqlite::Row> values_of(const std::vector<StateRow>& rows, std::int64_t schema,
                                             std::int64_t time_ms) const;

  std::unique_ptr<sqlite::Sqlite> database_;
  Epoch epoch_{1};
  std::int64_t events_before_ = 0;
  std::int64_t appended_ = 0;  // events since drop_old()
  bool dropped_ = false;       // some, and the log says so
};
inline constexpr std::int64_t kClusterEventsKept = 100'000;  // some 20 MB
inline constexpr std::int64_t kEpochsKept = 10'000;

// The events about a job that all controllers of this state folder have announced, oldest first, or
// of a run directory those of its `tandem run`s; none where the folder has no journal. The journal
// is opened for reading only.
Result<std::vector<ClusterEvent>> announced_events(const std::filesystem::path& home,
                                                   const std::string& job, const EventQuery& query);

}  // namespace tandem::runs
