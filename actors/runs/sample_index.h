// Where each sample of a run's samples.jsonl lies in the file, and of which step and kind it is, so
// that a page of samples is read directly. Like MetricsIndex it reads only the new lines, and
// leaves `samples.index` in the run directory for later readers.
//
//   SX-1  A page reads the lines that it shows and no others.
//   SX-2  A sample's number (from 1, in the file's order) stays its own while the file only grows.
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "actors/runs/index_progress.h"
#include "runtime/base/result.h"

namespace tandem::runs {

inline constexpr std::size_t kSamplesIndexedMax = std::size_t{1} << 20;
inline constexpr std::size_t kSamplePageDefault = 64, kSamplePageMax = 1000;
inline constexpr std::size_t kSampleStepsMax = 100'000;
inline constexpr std::uint64_t kSamplePageBytesMax = std::uint64_t{16} << 20;

struct SampleQuery {
  std::optional<std::int64_t> step;
  std::optional<bool> evaluation;      // none: both kinds
  bool failed = false;                 // only those that could not be scored
  std::optional<std::int64_t> before;  // only those with a lower number than this
  std::size_t limit = kSamplePageDefault;
};

// Holds at most kSamplesIndexedMax samples: later ones are not found.
class SampleIndex {
 public:
  // Both do what MetricsIndex::refresh() and keep() do.
  Result<void> refresh(const std::filesystem::path& run_dir);
  void keep(const std::filesystem::path& run_dir, bool over);
  // The newest samples that match, newest first, each with its number as `seq`; at most query.limit
  // of them and about kSamplePageBytesMax bytes.
  Result<nlohmann::json> page(const std::filesystem::path& run_dir, const SampleQuery& query);

  // The steps of the samples that match, ascending and each once; the newest kSampleStepsMax.
  std::vector<std::int64_t> steps(const SampleQuery& query) const;

  std::size_t size() const { return offsets_.size(); }
  // How many bytes of samples.jsonl have been read in all.
  std::uint64_t bytes_read() const { return progress_.bytes_read() + page_bytes_read_; }

 private:
  void take(std::uint64_t offset, std::string_view line);
  void clear();
  std::optional<LineMark> load(const std::filesystem::path& path);
  bool matches(std::size_t index, const SampleQuery& query) const;

  IndexProgress progress_{"samples.jsonl", "samples.index"};
  std::uint64_t page_bytes_read_ = 0;
  // One entry per sample.
  std::vector<std::uint64_t> offsets_, bytes_;
  std::vector<std::int64_t> steps_;  // kNoStep for a sample without a step
  std::vector<std::uint8_t> flags_;
};

}  // namespace tandem::runs
