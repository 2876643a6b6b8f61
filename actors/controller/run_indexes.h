// The indexes of the runs that people look at, shared by all threads that answer them. Those of a
// run are used by one thread at a time; runs that nobody has asked for longest go first.
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

#include "actors/controller/metrics_index.h"
#include "actors/controller/sample_index.h"
#include "runtime/base/guarded.h"

namespace tandem::actors {

inline constexpr std::size_t kRunsIndexedMax = 32;
inline constexpr std::size_t kCellsOfAllRunsMax = 2 * kCellsMax;

struct IndexedRun {
  std::filesystem::path run_dir;
  bool live = false;
};

class RunIndexes {
 public:
  explicit RunIndexes(std::size_t runs_max = kRunsIndexedMax,
                      std::size_t cells_max = kCellsOfAllRunsMax)
      : runs_max_(runs_max), cells_max_(cells_max) {}

  // Calls `use` with the run's index, brought up to date. Any thread.
  Result<nlohmann::json> metrics(const IndexedRun& run,
                                 const std::function<nlohmann::json(const MetricsIndex&)>& use);
  Result<nlohmann::json> samples(const IndexedRun& run, const SampleQuery& query);
  void forget(const std::filesystem::path& run_dir);
  std::size_t runs_held();

 private:
  struct Entry {
    Guarded<MetricsIndex> metrics;
    Guarded<SampleIndex> samples;
    std::atomic<std::size_t> cells = 0;
    std::uint64_t used = 0;  // guarded by the table's lock
  };
  struct Table {
    std::map<std::filesystem::path, std::shared_ptr<Entry>> entries;
    std::uint64_t uses = 0;
  };

  std::shared_ptr<Entry> entry(const std::filesystem::path& run_dir);
  void make_room();

  const std::size_t runs_max_, cells_max_;
  Guarded<Table> table_;
};

}  // namespace tandem::actors
