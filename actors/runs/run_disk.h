// The bytes that a run has on the disk, by purpose, and the lines and bytes that were dropped
// because a file had reached its limit. Read from the run's folder; what cannot be read counts
// nothing.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace tandem::runs {

// {"bytes": …, "parts": {"journal": …, "metrics": …, …}, "dropped": {"samples.jsonl": {"lines",
// "bytes"}, "logs/rollout.0.3.log": {"bytes"}, "journal.sqlite": {"archived"}}}. Names without any
// bytes, and files of which nothing has gone, are left out. At most kDiskEntriesMax files are
// counted.
nlohmann::json disk_json(const std::filesystem::path& run_dir);
inline constexpr int kDiskEntriesMax = 100'000;

}  // namespace tandem::runs
