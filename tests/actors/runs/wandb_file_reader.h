// A wandb file as the package reads it, for tests: the checksum of each fragment, any order of
// protobuf's fields. Shares no code with the writer; scripts/wandb_check reads the same files with
// the package itself.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/runs/event_file_reader.h"

namespace tandem::runs {

struct WandbFields {  // of a message, each with its last value
  std::map<std::uint64_t, std::string> bytes;
  std::map<std::uint64_t, std::uint64_t> numbers;
};

inline WandbFields fields_of(std::string_view message) {
  WandbFields fields;
  EXPECT_TRUE(each_field(message, [&](std::uint64_t field, std::uint64_t number, auto bytes) {
    fields.bytes[field] = bytes;
    fields.numbers[field] = number;
  }));
  return fields;
}

// CRC-32 bit by bit, as zlib's.
inline std::uint32_t crc32_of(std::string_view data) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

// The records of a file up to the first that is torn.
inline std::vector<std::string> wandb_records(const std::filesystem::path& path) {
  const std::string file = read_file(path).value();
  EXPECT_TRUE(file.starts_with(":W&B\xe1\xbe")) << path;
  EXPECT_EQ(file.at(6), '\0');
  std::vector<std::string> records;
  std::string open;
  for (std::size_t at = 7; at < file.size();) {
    const std::size_t room = 32768 - at % 32768;
    if (room < 7) {
      EXPECT_EQ(file.substr(at, room), std::string(std::min(room, file.size() - at), '\0'));
      at += room;
      continue;
    }
    if (file.size() - at < 7) break;
    const std::size_t bytes = number_at<std::uint16_t>(file, at + 4);
    if (file.size() - at - 7 < bytes) break;
    EXPECT_LE(bytes + 7, room) << "a fragment lies in one block";
    const char type = file[at + 6];
    if (number_at<std::uint32_t>(file, at) != crc32_of(file.substr(at + 6, bytes + 1))) break;
    EXPECT_EQ(type == 1 || type == 2, open.empty());
    open += file.substr(at + 7, bytes);
    at += 7 + bytes;
    if (type == 2 || type == 3) continue;
    records.push_back(std::move(open));
    open.clear();
  }
  return records;
}

// What a file says.
struct WandbContent {
  std::vector<nlohmann::json> rows;  // of the history, with _step, _runtime and _timestamp
  nlohmann::json summary = nlohmann::json::object(), config = nlohmann::json::object();
  WandbFields run;
  std::vector<std::string> tags, files, globs;
  int exits = 0, exit_code = -1;
};

inline nlohmann::json items_of(std::string_view message) {
  nlohmann::json items = nlohmann::json::object();
  EXPECT_TRUE(each_field(message, [&](std::uint64_t field, std::uint64_t, std::string_view item) {
    if (field != 1) return;
    const WandbFields parts = fields_of(item);
    const bool nested = parts.bytes.contains(2);
    items[parts.bytes.at(nested ? 2 : 1)] = parse_json(parts.bytes.at(16));
  }));
  return items;
}

inline WandbContent wandb_content(const std::filesystem::path& path) {
  WandbContent content;
  std::uint64_t number = 0;
  for (const std::string& record : wandb_records(path)) {
    const WandbFields fields = fields_of(record);
    EXPECT_EQ(fields.numbers.at(1), ++number);
    EXPECT_EQ(fields.bytes.size(), 2U) << "the number, and one message";
    if (const auto it = fields.bytes.find(2); it != fields.bytes.end()) {
      content.rows.push_back(items_of(it->second));
      const auto step = fields_of(fields_of(it->second).bytes.at(2)).numbers.at(1);
      EXPECT_EQ(content.rows.back().at("_step"), step);
    }
    if (const auto it = fields.bytes.find(3); it != fields.bytes.end())
      content.summary.update(items_of(it->second));
    if (const auto it = fields.bytes.find(5); it != fields.bytes.end())
      content.config.update(items_of(it->second));
    if (const auto it = fields.bytes.find(6); it != fields.bytes.end())
      content.files.push_back(fields_of(fields_of(it->second).bytes.at(1)).bytes.at(1));
    if (const auto it = fields.bytes.find(12); it != fields.bytes.end())
      content.globs.push_back(fields_of(it->second).bytes[2]);
    if (const auto it = fields.bytes.find(17); it != fields.bytes.end()) {
      content.run = fields_of(it->second);
      content.config.update(items_of(content.run.bytes.at(4)));
      each_field(it->second, [&](std::uint64_t field, std::uint64_t, std::string_view bytes) {
        if (field == 10) content.tags.emplace_back(bytes);
      });
    }
    if (const auto it = fields.bytes.find(18); it != fields.bytes.end()) {
      ++content.exits;
      content.exit_code = static_cast<int>(fields_of(it->second).numbers[1]);
    }
  }
  return content;
}

}  // namespace tandem::runs
