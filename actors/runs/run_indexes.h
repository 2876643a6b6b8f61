// The indexes of the runs that users look at, shared by all threads that answer requests. The
// indexes of one run are used by one thread at a time. When there are too many, those of the run
// that was asked for longest ago are dropped: they can be read again from the run's directory.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "actors/runs/metrics_index.h"
#include "actors/runs/sample_index.h"
#include "runtime/base/guarded.h"

namespace tandem::runs {

inline constexpr std::size_t kRunsIndexedMax = 32;
inline constexpr std::size_t kCellsOfAllRunsMax = 2 * kCellsMax;

// `live`: some process works on the run, so its files may grow.
struct IndexedRun {
  std::filesystem::path run_dir;
  bool live = false;
};

// At most `runs_max` runs with `cells_max` values of metrics in all, but always the last used one.
class RunIndexes {
 public:
  explicit RunIndexes(std::size_t runs_max = kRunsIndexedMax,
                      std::size_t cells_max = kCellsOfAllRunsMax)
      : runs_max_(runs_max), cells_max_(cells_max) {}

  // Brings the run's index up to date and calls `use` with it, under the index's lock. Any thread.
  Result<nlohmann::json> metrics(const IndexedRun& run,
                                 const std::function<nlohmann::json(const MetricsIndex&)>& use);
  // A page of samples, by an index that is up to date. Any thread.
  Result<nlohmann::json> samples(const IndexedRun& run, const SampleQuery& query);
  // SampleIndex::steps, by an index that is up to date. Any thread.
  Result<nlohmann::json> sample_steps(const IndexedRun& run, const SampleQuery& query);
  // Drops the indexes of a run that was deleted.
  void forget(const std::filesystem::path& run_dir);
  // How many runs have indexes in memory. Any thread.
  std::size_t runs_held();

 private:
  // The indexes of one run, each under its own lock.
  struct Entry {
    Guarded<MetricsIndex> metrics;
    Guarded<SampleIndex> samples;
    std::atomic<std::size_t> cells = 0;
    std::uint64_t used = 0;  // the number of its last use; guarded by the table's lock
  };
  // `uses` numbers the lookups, so that the entry with the lowest `used` is the oldest.
  struct Table {
    std::map<std::filesystem::path, std::shared_ptr<Entry>> entries;
    std::uint64_t uses = 0;
  };

  // Shared: a thread may still use an entry that make_room() has dropped.
  std::shared_ptr<Entry> entry(const std::filesystem::path& run_dir);
  // Brings the index of samples up to date and calls `use` with it, under the index's lock.
  Result<nlohmann::json> with_samples(
      const IndexedRun& run, const std::function<Result<nlohmann::json>(SampleIndex&)>& use);
  // Called after an answer, when the sizes of the indexes are known.
  void make_room();

  // Limits on all entries together; only metrics count as cells.
  const std::size_t runs_max_, cells_max_;
  Guarded<Table> table_;
};

}  // namespace tandem::runs
