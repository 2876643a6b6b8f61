// The objects of the API as text: tables with one list of columns per kind, `describe`, `why` and
// samples. Pure functions of JSON (docs/design/contract.md has its fields), so that the same data
// gives the same text. Members that are missing are shown as "-".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "actors/cli/kinds.h"
#include "actors/cli/table.h"

namespace tandem::cli {

struct Screen {
  int width;                     // columns; kUnlimitedWidth off a terminal
  std::int64_t now_ms;           // wall time, for AGE
  bool wide = false;             // the wide form: more columns, and times in full
  ColumnWidths* kept = nullptr;  // set for a list whose rows are printed one by one
};

// `items` is an array. kJson prints it indented and whole (`[]` when empty), kYaml the same as
// YAML, kName one "kind/name" per line; a table without rows is one sentence.
std::string render_items(Kind kind, const nlohmann::json& items, OutputForm form,
                         const Screen& screen);
// One object, as `get KIND NAME` prints it: JSON and YAML without the array around it.
std::string render_item(Kind kind, const nlohmann::json& item, OutputForm form,
                        const Screen& screen);

// Every field as YAML, then tables of waits, alerts, troubles, memory and reservations where `item`
// has them, and the object's last `events` (an array).
std::string render_description(Kind kind, const nlohmann::json& item, const nlohmann::json& events,
                               const Screen& screen);

// `item` is a job or an actor; its `why` says who waits for what.
std::string render_why(const nlohmann::json& item, const Screen& screen);

// Completions with their rewards; in the wide form whole, one block each.
std::string render_samples(const nlohmann::json& samples, OutputForm form, const Screen& screen);

// JSON that has the same value in every reader of JSON, with nothing in it that steers a terminal
// (text.h). `indent` -1: on one line.
std::string shown_json(const nlohmann::json& value, int indent = -1);

// Any JSON as block YAML, with a final newline; nothing in it steers a terminal either.
std::string to_yaml(const nlohmann::json& value);

}  // namespace tandem::cli
