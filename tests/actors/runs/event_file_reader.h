// TensorBoard's event files as TensorBoard reads them, for tests: both checksums of each record,
// any order of protobuf's fields, files in the order of their names, and what a START event makes
// it forget (tensorboard/backend/event_processing/event_accumulator.py). Shares no code with the
// writer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tandem::runs {

using Scalars = std::map<std::string, float>;            // by tag
using ScalarsOfSteps = std::map<std::int64_t, Scalars>;  // by step

struct ReadEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string file_version;
  bool is_start = false;
  bool is_summary = false;
  Scalars scalars;
};

// CRC-32C bit by bit, masked as record_writer.h does it.
inline std::uint32_t masked_crc_of(std::string_view data) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class T>
T number_at(std::string_view bytes, std::size_t at) {  // the tests' machines are little-endian
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Calls take(field, number, bytes) for each field of a protobuf message; false where the bytes are
// no such message.
template <class Take>
bool each_field(std::string_view message, const Take& take) {
  const auto varint = [&message]() -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !message.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(message.front());
      message.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  };
  while (!message.empty()) {
    const auto key = varint();
    if (!key) return false;
    std::uint64_t number = 0, bytes = 0;
    switch (*key & 7) {
      case 0: {
        const auto value = varint();
        if (!value) return false;
        number = *value;
        break;
      }
      case 1:
        bytes = 8;
        break;
      case 2: {
        const auto length = varint();
        if (!length) return false;
        bytes = *length;
        break;
      }
      case 5:
        bytes = 4;
        break;
      default:
        return false;
    }
    if (bytes > message.size()) return false;
    take(*key >> 3, number, message.substr(0, bytes));
    message.remove_prefix(bytes);
  }
  return true;
}

inline std::optional<ReadEvent> event_of(std::string_view data) {
  ReadEvent event;
  bool valid = true;
  const auto take_scalar = [&](std::uint64_t, std::uint64_t, std::string_view value) {
    std::string tag;
    std::optional<float> number;
    valid &= each_field(value, [&](std::uint64_t field, std::uint64_t, std::string_view bytes) {
      if (field == 1) tag = bytes;
      if (field == 2 && bytes.size() == 4) number = number_at<float>(bytes, 0);
    });
    valid &= number && event.scalars.emplace(tag, *number).second;
  };
  valid &= each_field(data, [&](std::uint64_t field, std::uint64_t number, std::string_view bytes) {
    if (field == 1 && bytes.size() == 8) event.wall_time = number_at<double>(bytes, 0);
    if (field == 2) event.step = static_cast<std::int64_t>(number);
    if (field == 3) event.file_version = bytes;
    if (field == 5) {
      event.is_summary = true;
      valid &= each_field(bytes, take_scalar);
    }
    if (field == 7)
      valid &= each_field(bytes, [&](std::uint64_t status, std::uint64_t value, std::string_view) {
        event.is_start |= status == 1 && value == 1;
      });
  });
  if (!valid) return std::nullopt;
  return event;
}

// Reads up to the first record that is torn or damaged, as TensorBoard does.
inline std::vector<ReadEvent> read_event_file(const std::filesystem::path& path) {
  const std::string file = read_file(path).value();
  std::vector<ReadEvent> events;
  for (std::string_view rest = file; rest.size() >= 16;) {
    const auto bytes = number_at<std::uint64_t>(rest, 0);
    if (number_at<std::uint32_t>(rest, 8) != masked_crc_of(rest.substr(0, 8))) break;
    if (bytes > rest.size() - 16) break;
    const std::string_view data = rest.substr(12, bytes);
    if (number_at<std::uint32_t>(rest, 12 + bytes) != masked_crc_of(data)) break;
    const auto event = event_of(data);
    if (!event) {
      ADD_FAILURE() << path << ": event " << events.size() << " is not protobuf";
      break;
    }
    events.push_back(*event);
    rest.remove_prefix(16 + bytes);
  }
  return events;
}

inline std::vector<std::filesystem::path> event_files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// The scalars that TensorBoard shows of a folder.
inline ScalarsOfSteps shown_of(const std::filesystem::path& folder) {
  ScalarsOfSteps shown;
  for (const auto& file : event_files_in(folder))
    for (const ReadEvent& event : read_event_file(file)) {
      if (event.is_start) shown.erase(shown.lower_bound(event.step), shown.end());
      if (!event.is_summary) continue;
      for (const auto& [tag, value] : event.scalars)
        EXPECT_TRUE(shown[event.step].emplace(tag, value).second)
            << file << ": a second point of " << tag << " at step " << event.step;
      shown.try_emplace(event.step);
    }
  return shown;
}

// The scalars in a metrics.jsonl of steps that TensorBoard can show, as floats.
inline ScalarsOfSteps scalars_in(const std::filesystem::path& metrics) {
  ScalarsOfSteps held;
  std::ifstream lines(metrics);
  for (std::string text; std::getline(lines, text);) {
    const nlohmann::json line = parse_json(text);
    if (line.at("step") < 0) continue;  // an evaluation of the weights before the warm start
    Scalars& scalars = held[line.at("step").get<std::int64_t>()];
    for (const auto& [key, value] : line.items())
      if (value.is_number() && key != "step")
        scalars.emplace(key, static_cast<float>(value.get<double>()));
  }
  return held;
}

}  // namespace tandem::runs
