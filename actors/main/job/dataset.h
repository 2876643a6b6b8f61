// JSONL files of prompts, read whole into memory, and the order in which a job visits them. One
// JSON object per line; blank lines are skipped. The whole record is kept as text: `answer` and
// every other field reach the reward untouched. Knows nothing of tokens.
//
// A line's prompt is a text, or a conversation: a list of messages under the prompt's key, or under
// `messages` where that is absent. A conversation is rendered here, by the model's chat template;
// the record that is kept has the text under the prompt's key, and the list under `messages`.
//
//   DS-1  The order of an epoch is a pure function of (seed, epoch, size) and a permutation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/main/job/job_spec.h"
#include "actors/model/chat_template.h"
#include "runtime/base/result.h"

namespace tandem::cli {

inline constexpr std::size_t kRecordBytesMax = 8u << 20;        // one line
inline constexpr std::size_t kDatasetBytesMax = 4ull << 30;     // one data set, all files
inline constexpr std::size_t kDatasetRecordsMax = 100'000'000;  // one data set, all files

struct Record {
  std::string prompt;
  std::optional<std::string> answer_json;  // the answer as JSON text; absent when the line has none
  std::optional<std::string> completion;   // what a warm start learns to say
  std::optional<std::string> data_source;  // the data set that the line is from
  std::string json;                        // the whole record
  std::string where;                       // "train.jsonl:17", for messages
};

// A line without what is needed is an error.
enum class RecordNeeds { kPrompt, kAnswer, kCompletion };  // beside the prompt

struct ChatSource {
  std::filesystem::path model;                 // whose template is read when a line needs it
  std::optional<actors::ChatTemplate> chosen;  // instead
  actors::ChatOptions options;
};

struct DatasetKeys {
  std::string prompt = "prompt";
  std::string answer = "answer";
  std::string completion = "completion";
  std::string data_source = "data_source";
  ChatSource chat;
};

DatasetKeys dataset_keys(const JobSpec& job);

// All records of `files` in file order, at least one per file. kInvalid with "file:line" for a
// line that is not an object of the needed keys or is too long; kFailed for an unreadable file.
Result<std::vector<Record>> load_dataset(const std::vector<std::filesystem::path>& files,
                                         const DatasetKeys& keys, RecordNeeds needs);

// Indices 0 … size-1 in the order of `epoch`; shuffle false gives file order. DS-1.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::uint32_t size,
                                       bool shuffle);

// A warm start's records, split: every tenth of a seeded order is held out, on which
// warm_start.until is measured; at least one and never all. Of fewer than two records none is held
// out.
struct HeldOut {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> held_out;
};
HeldOut split_held_out(std::uint64_t seed, std::uint32_t size);

}  // namespace tandem::cli
