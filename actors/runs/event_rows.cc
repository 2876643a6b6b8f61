#include "actors/runs/event_rows.h"

#include <algorithm>
#include <system_error>

namespace tandem::runs {

namespace fs = std::filesystem;

Result<std::unique_ptr<sqlite::Sqlite>> open_if_there(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(fs::symlink_status(path, ignored)))
    return std::unique_ptr<sqlite::Sqlite>();
  return sqlite::Sqlite::open_to_read(path.string());
}

std::string order_and_limit(const char* column, const EventQuery& query) {
  return std::string(" ORDER BY ") + column + (query.since ? " ASC" : " DESC") + " LIMIT " +
         std::to_string(std::min(query.limit, kEventsMax));
}

void put_in_order(std::vector<ClusterEvent>& events, const EventQuery& query) {
  if (!query.since) std::reverse(events.begin(), events.end());
}

}  // namespace tandem::runs
