#include "actors/runs/run_disk.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "actors/runs/bounded_lines.h"
#include "actors/runs/event_rows.h"
#include "runtime/node/log_files.h"
#include "runtime/node/log_rotation.h"

namespace tandem::runs {

namespace fs = std::filesystem;

namespace {

// The part of a run that a file or folder belongs to, by the name that it has in the run's folder.
std::string_view part_of(std::string_view name) {
  for (const std::string_view folder :
       {"checkpoints", "logs", "payload", "replay", "tensorboard", "wandb"})
    if (name == folder) return folder;
  // The indexes and the write-ahead log are parts of what they belong to.
  for (const auto& [prefix, part] :
       {std::pair<std::string_view, std::string_view>("journal.", "journal"),
        {"metrics.", "metrics"},
        {"samples.", "samples"}})
    if (name.starts_with(prefix)) return part;
  return "other";
}

// The rows of the journal that others have been packed into, and up to which row these are summed
// up; null where there is neither.
nlohmann::json dropped_rows(const fs::path& run_dir) {
  nlohmann::json dropped;
  const auto journal = open_if_there(run_dir / "journal.sqlite");
  if (!journal || !*journal) return dropped;
  // A journal of an earlier version has no table `histories`.
  for (const auto& [name, query] :
       {std::pair{"archived", "SELECT count(*) FROM events WHERE kind = 'archived'"},
        {"summed_to", "SELECT coalesce(max(seq), 0) FROM histories"}})
    (void)(*journal)->query(query, [&](const sqlite::Sqlite::Row& row) {
      if (const std::int64_t number = sqlite::number_of(row.front()); number > 0)
        dropped[name] = number;
    });
  return dropped;
}

}  // namespace

nlohmann::json disk_json(const fs::path& run_dir) {
  std::map<std::string, std::uintmax_t, std::less<>> parts;
  std::uintmax_t bytes = 0;
  std::error_code error;
  int entries = 0;
  for (fs::recursive_directory_iterator entry(run_dir, error), end;
       !error && entry != end && entries < kDiskEntriesMax; entry.increment(error), ++entries) {
    std::error_code ignored;
    if (!fs::is_regular_file(entry->symlink_status(ignored))) continue;
    const std::uintmax_t size = entry->file_size(ignored);
    if (ignored) continue;
    const fs::path within = entry->path().lexically_relative(run_dir);
    parts[std::string(part_of(within.begin()->string()))] += size;
    bytes += size;
  }
  nlohmann::json dropped = nlohmann::json::object();
  for (const char* const file : {"samples.jsonl", "metrics.jsonl"})
    if (const Dropped gone = dropped_of(run_dir, file); gone.lines > 0)
      dropped[file] = {{"lines", gone.lines}, {"bytes", gone.bytes}};
  for (const node::ActorLogs& logs : node::logs_in(run_dir / "logs"))
    for (const Incarnation incarnation : logs.incarnations) {
      const fs::path log = node::log_path(run_dir / "logs", logs.actor, incarnation);
      if (const std::uint64_t gone = node::dropped_bytes_of(log); gone > 0)
        dropped["logs/" + log.filename().string()] = {{"bytes", gone}};
    }
  if (nlohmann::json rows = dropped_rows(run_dir); !rows.is_null())
    dropped["journal.sqlite"] = std::move(rows);
  return {{"bytes", bytes}, {"parts", parts}, {"dropped", dropped}};
}

}  // namespace tandem::runs
