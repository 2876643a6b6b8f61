// Events are gathered first, those of one kind that follow each other and are about one group each,
// and then each gathering becomes a row.
#include "actors/runs/journal_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "actors/exchange/journal_rows.h"
#include "actors/runs/packed.h"
#include "runtime/base/json.h"
#include "runtime/wire/codec.h"

namespace tandem::runs {
namespace {

constexpr std::size_t kGroupsPerRow = 1024;

sqlite::Sqlite::Value value_of(const std::optional<std::int64_t>& number) {
  return number ? sqlite::Sqlite::Value{*number} : sqlite::Sqlite::Value{};
}

sqlite::Sqlite::Value value_of(const std::string& text) {
  return text.empty() ? sqlite::Sqlite::Value{} : sqlite::Sqlite::Value{text};
}

nlohmann::json json_of(const std::optional<std::int64_t>& number) {
  return number ? nlohmann::json(*number) : nlohmann::json();
}

nlohmann::json json_of(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

// The value that all rows have in one of the columns; an empty value where they differ.
template <class Column>
Column in_common(const std::vector<exchange::JournalRow>& rows,
                 Column exchange::JournalRow::*column) {
  const bool equal = std::ranges::all_of(
      rows, [&](const exchange::JournalRow& row) { return row.*column == rows.front().*column; });
  return equal ? rows.front().*column : Column{};
}

exchange::JournalRow in_common(const std::vector<exchange::JournalRow>& rows) {
  return {.kind = {},
          .group = {},
          .lease = in_common(rows, &exchange::JournalRow::lease),
          .holder = in_common(rows, &exchange::JournalRow::holder),
          .step = in_common(rows, &exchange::JournalRow::step),
          .version = in_common(rows, &exchange::JournalRow::version),
          .position = in_common(rows, &exchange::JournalRow::position),
          .detail = in_common(rows, &exchange::JournalRow::detail)};
}

// The list of the groups, without the columns that stand in their row already.
std::string list_of(const std::vector<exchange::JournalRow>& groups,
                    const exchange::JournalRow& common) {
  nlohmann::json list = nlohmann::json::array();
  for (const exchange::JournalRow& row : groups) {
    nlohmann::json item{json_of(row.group),
                        common.lease ? nlohmann::json() : json_of(row.lease),
                        common.step ? nlohmann::json() : json_of(row.step),
                        common.version ? nlohmann::json() : json_of(row.version),
                        common.position ? nlohmann::json() : json_of(row.position),
                        common.detail.empty() ? json_of(row.detail) : nlohmann::json(),
                        common.holder.empty() ? json_of(row.holder) : nlohmann::json()};
    while (item.size() > 1 && item.back().is_null()) item.erase(item.size() - 1);
    list.push_back(item.size() > 1 ? std::move(item) : std::move(item.front()));
  }
  return dump_json(list);
}

// A row of the table while events are gathered for it.
struct Gathered {
  exchange::JournalRow own;  // the event's row; without a kind it has its groups' columns
  std::vector<exchange::JournalRow> groups;  // rows of one kind
  std::string body;
};

// Events stand in a body one behind the other, each after its length as four bytes, the lowest
// first.
void add_to_body(std::string& body, const exchange::JournalEvent& event) {
  const std::string bytes = wire::encode(event);
  for (int shift = 0; shift < 32; shift += 8)
    body += static_cast<char>(bytes.size() >> shift & 0xff);
  body += bytes;
}

std::vector<Gathered> gather(std::span<const exchange::JournalEvent> events) {
  std::vector<Gathered> rows;
  for (const exchange::JournalEvent& event : events) {
    exchange::JournalRows columns = rows_of(event);
    const bool of_one_group = columns.of_groups.empty() && columns.of_event.group;
    const bool goes_on = of_one_group && !rows.empty() && rows.back().own.kind.empty() &&
                         rows.back().groups.back().kind == columns.of_event.kind &&
                         rows.back().groups.size() < kGroupsPerRow;
    if (goes_on) {
      rows.back().groups.push_back(std::move(columns.of_event));
    } else if (of_one_group) {
      rows.push_back({.own = {}, .groups = {std::move(columns.of_event)}, .body = {}});
    } else {
      rows.push_back(
          {.own = std::move(columns.of_event), .groups = std::move(columns.of_groups), .body = {}});
    }
    add_to_body(rows.back().body, event);
  }
  return rows;
}

sqlite::Sqlite::Row row_of(Gathered gathered, std::int64_t time_ms) {
  const auto& groups = gathered.groups;
  const bool own = !gathered.own.kind.empty();
  sqlite::Sqlite::Value kind, list;
  exchange::JournalRow common = gathered.own;
  if (!groups.empty()) {
    kind = groups.front().kind;
    if (!own) common = in_common(groups);
    // Beside an event's own columns its groups keep theirs, but for those that the view shares.
    exchange::JournalRow shared = own ? exchange::JournalRow{} : common;
    if (own && groups.front().kind == "trained") {
      shared.step = common.step;
      shared.version = common.version;
    }
    list = list_of(groups, shared);
  }
  return {time_ms,
          value_of(gathered.own.kind),
          own ? value_of(common.group) : sqlite::Sqlite::Value{},
          value_of(common.lease),
          value_of(common.holder),
          value_of(common.step),
          value_of(common.version),
          value_of(common.position),
          value_of(common.detail),
          std::move(kind),
          std::move(list),
          sqlite::Sqlite::Blob{packed(std::move(gathered.body))}};
}

}  // namespace

std::vector<sqlite::Sqlite::Row> table_rows(std::span<const exchange::JournalEvent> events,
                                            std::int64_t time_ms) {
  std::vector<sqlite::Sqlite::Row> rows;
  for (Gathered& gathered : gather(events)) rows.push_back(row_of(std::move(gathered), time_ms));
  return rows;
}

std::uint64_t bytes_of(const sqlite::Sqlite::Row& row) {
  std::uint64_t bytes = 40;
  for (const std::size_t column : {8, 10}) bytes += sqlite::text_of(row[column]).size();
  return bytes + std::get<sqlite::Sqlite::Blob>(row[11]).bytes.size();
}

std::vector<exchange::JournalEvent> events_of(std::string_view body) {
  std::vector<exchange::JournalEvent> events;
  while (body.size() > 4) {
    std::size_t size = 0;
    for (int i = 3; i >= 0; --i) size = size << 8 | static_cast<unsigned char>(body[i]);
    body.remove_prefix(4);
    if (size > body.size()) return {};
    auto event = wire::decode<exchange::JournalEvent>(std::string(body.substr(0, size)));
    if (!event) return {};
    events.push_back(std::move(*event));
    body.remove_prefix(size);
  }
  return body.empty() ? std::move(events) : std::vector<exchange::JournalEvent>{};
}

}  // namespace tandem::runs
