// How events are read from a journal in SQLite, whose owner may be writing to it meanwhile: by SQL
// with a bound on the number of rows, and put in order afterwards.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "actors/runs/cluster_event.h"
#include "runtime/base/result.h"
#include "runtime/sqlite/sqlite.h"

namespace tandem::runs {

// Null where there is no such file: a run that never began has no journal. Reads only.
Result<std::unique_ptr<sqlite::Sqlite>> open_if_there(const std::filesystem::path& path);

// The end of a SELECT: rows come newest first, unless the query is for those after a number.
std::string order_and_limit(const char* column, const EventQuery& query);
// Makes the oldest of the events that came in that order the first.
void put_in_order(std::vector<ClusterEvent>& events, const EventQuery& query);

}  // namespace tandem::runs
