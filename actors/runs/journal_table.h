// The rows of the table `events` of journal.sqlite (run_journal.h).
//
// A row of the table is one event, or several of one kind that follow each other in one append and
// are each about one group: 64 groups that are admitted at once are one row to write, not 64, and
// the encoded events are packed together. The columns of the groups are a JSON list in that row, of
// which the view makes rows. An item is the group's number, or a list [group, lease, step, version,
// position, detail, holder] without the nulls at its end; a column that all groups have in common
// stands in the row instead.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "actors/exchange/state/journal_event.h"
#include "runtime/sqlite/sqlite.h"

namespace tandem::runs {

// As many rows as the events need, with the columns of kInsertEvent.
std::vector<sqlite::Sqlite::Row> table_rows(std::span<const exchange::JournalEvent> events,
                                            std::int64_t time_ms);
inline constexpr const char* kInsertEvent =
    "INSERT INTO events(time_ms, kind, group_id, lease, holder, step, version, position, detail, "
    "groups_kind, groups, body) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)";

// About the bytes that a row takes in the file: as SQL, and of a row of table_rows(). What is added
// for a row must be what is taken off when it is archived, or the sum would run away.
inline constexpr const char* kRowBytes =
    "40 + length(body) + coalesce(length(CAST(groups AS BLOB)), 0) + "
    "coalesce(length(CAST(detail AS BLOB)), 0)";
std::uint64_t bytes_of(const sqlite::Sqlite::Row& row);

// The events of a body that is unpacked; empty where it holds anything else.
std::vector<exchange::JournalEvent> events_of(std::string_view body);

}  // namespace tandem::runs
