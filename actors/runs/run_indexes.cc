// The table's lock is held to look an entry up, never while a file is read: a large first read of
// one run must not keep readers of other runs waiting. Each index has a lock of its own. `cells` is
// atomic because make_room() reads it under the table's lock alone.
#include "actors/runs/run_indexes.h"

#include <algorithm>

#include "runtime/base/json.h"

namespace tandem::runs {

std::shared_ptr<RunIndexes::Entry> RunIndexes::entry(const std::filesystem::path& run_dir) {
  return table_.with([&](Table& table) {
    std::shared_ptr<Entry>& entry = table.entries[run_dir];
    if (!entry) entry = std::make_shared<Entry>();
    entry->used = ++table.uses;
    return entry;
  });
}

// Drops runs until both limits hold. The run that was used last always stays.
void RunIndexes::make_room() {
  table_.with([this](Table& table) {
    for (;;) {
      std::size_t cells = 0;
      for (const auto& [path, entry] : table.entries) cells += entry->cells;
      if (table.entries.size() <= 1 || (table.entries.size() <= runs_max_ && cells <= cells_max_))
        return;
      table.entries.erase(std::min_element(
          table.entries.begin(), table.entries.end(),
          [](const auto& a, const auto& b) { return a.second->used < b.second->used; }));
    }
  });
}

Result<nlohmann::json> RunIndexes::metrics(
    const IndexedRun& run, const std::function<nlohmann::json(const MetricsIndex&)>& use) {
  const auto held = entry(run.run_dir);
  auto answer = held->metrics.with([&](MetricsIndex& index) -> Result<nlohmann::json> {
    if (const auto read = index.refresh(run.run_dir); !read) return read.error();
    index.keep(run.run_dir, !run.live);
    held->cells = index.cells();
    return use(index);
  });
  make_room();
  return answer;
}

Result<nlohmann::json> RunIndexes::samples(const IndexedRun& run, const SampleQuery& query) {
  return with_samples(run, [&](SampleIndex& index) { return index.page(run.run_dir, query); });
}

Result<nlohmann::json> RunIndexes::sample_steps(const IndexedRun& run, const SampleQuery& query) {
  return with_samples(run, [&](SampleIndex& index) -> Result<nlohmann::json> {
    return nlohmann::json(index.steps(query));
  });
}

Result<nlohmann::json> RunIndexes::with_samples(
    const IndexedRun& run, const std::function<Result<nlohmann::json>(SampleIndex&)>& use) {
  const auto held = entry(run.run_dir);
  auto answer = held->samples.with([&](SampleIndex& index) -> Result<nlohmann::json> {
    if (const auto read = index.refresh(run.run_dir); !read) return read.error();
    index.keep(run.run_dir, !run.live);
    return use(index);
  });
  make_room();
  return answer;
}

void RunIndexes::forget(const std::filesystem::path& run_dir) {
  table_.with([&](Table& table) { table.entries.erase(run_dir); });
}

std::size_t RunIndexes::runs_held() {
  return table_.with([](Table& table) { return table.entries.size(); });
}

}  // namespace tandem::runs
