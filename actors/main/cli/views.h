// How the API's objects look on a terminal: one list of columns per kind, `describe`, `why`, `top`,
// samples. Pure functions of JSON (shapes: contract §2), so the same data gives the same text.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "actors/main/cli/command.h"

namespace tandem::cli {

struct Screen {
  int width;            // columns; kUnlimitedWidth off a terminal
  std::int64_t now_ms;  // wall time, for AGE
};

// `items` is an array. kJson prints it indented and whole (`[]` when empty), kYaml the same as
// YAML, kName one "kind/name" per line; a table without rows is one sentence.
std::string render_items(Kind kind, const nlohmann::json& items, OutputForm form,
                         const Screen& screen);
// One object, as `get KIND NAME` prints it: JSON and YAML without the array around it.
std::string render_item(Kind kind, const nlohmann::json& item, OutputForm form,
                        const Screen& screen);

// Every field, the ranks or actors, why it waits, and the object's last events (an array).
std::string render_description(Kind kind, const nlohmann::json& item, const nlohmann::json& events,
                               const Screen& screen);

// `item` is a job or an actor; its `why` says who waits for what.
std::string render_why(const nlohmann::json& item, const Screen& screen);

// One frame of `tandem top`.
std::string render_top(const nlohmann::json& jobs, const nlohmann::json& actors,
                       const nlohmann::json& nodes, const Screen& screen);

std::string render_samples(const nlohmann::json& samples, OutputForm form, const Screen& screen);

// Any JSON as block YAML, with a final newline.
std::string to_yaml(const nlohmann::json& value);

// "time", "since": unix milliseconds (a number) or RFC 3339 (a string) -> unix milliseconds;
// anything else gives `otherwise`.
std::int64_t to_unix_ms(const nlohmann::json& time, std::int64_t otherwise);

}  // namespace tandem::cli
