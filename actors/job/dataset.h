// Data files of prompts, read record by record; their formats are in actors/data, and each record
// is one JSON object. It is kept as text: `answer` and every other field reach the reward
// untouched, unless the job names the few that it keeps. Knows nothing of tokens; the order in
// which a job visits the records is in prompt_order.h.
//
// A line's prompt is a text, or a conversation: a list of messages under the prompt's key, or under
// `messages` where that is absent. A conversation is rendered here, by the model's chat template;
// the record that is kept has the text under the prompt's key, and the list under `messages`. A key
// may lead into objects by dots (find_path() in runtime/base/json.h). A null is as absent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/job/job_spec.h"
#include "actors/job/record_chat.h"
#include "runtime/base/result.h"

namespace tandem::job {

inline constexpr std::size_t kRecordBytesMax = 8u << 20;        // one line
inline constexpr std::size_t kDatasetBytesMax = 4ull << 30;     // one data set, all files
inline constexpr std::size_t kDatasetRecordsMax = 100'000'000;  // one data set, all files

struct Record {
  std::string prompt;
  std::optional<std::string> completion;   // the text that a warm start trains on
  std::optional<std::string> data_source;  // the data set that the line is from
  // The template by which the prompt was rendered; absent where the prompt was a text.
  std::shared_ptr<const model::ChatFormat> chat;
  std::string json;   // what is kept of the line, see above
  std::string where;  // "train.jsonl:17", for errors
  std::string file;   // the file's name up to its first dot, and without a shard's number: "train"
};

// The field that a line must have beside its prompt; a line without it is an error.
enum class RecordNeeds { kPrompt, kAnswer, kCompletion };

// The names of the fields in a line, each a member or a path by dots, and what becomes of them.
struct DatasetKeys {
  std::string prompt = "prompt";
  std::string answer = "answer";
  std::string completion = "completion";
  std::string data_source = "data_source";
  ChatSource chat;
  PromptIs prompt_is = PromptIs::kText;
  std::optional<std::string> system_prompt = {};  // the first message of a conversation without one
  // The fields that are kept beside those above; nullopt: all.
  std::optional<std::vector<std::string>> extra = {};
};

// The fields that the lines of prompts must have: an answer only where the reward compares with
// one, as `exact`, `math` and an expression with a group do. A program may do without.
RecordNeeds needs_of_prompts(const JobSpec& job);

// The names and the template that `job` gives.
DatasetKeys dataset_keys(const JobSpec& job);

// How far the reading of a data set is.
struct ReadingProgress {
  std::filesystem::path file;                // that is being read
  std::uint64_t records = 0;                 // of all files so far
  std::uint64_t bytes = 0, bytes_total = 0;  // of all files
  std::string waits = {};  // what the file waits for, as TellWait says it; empty: nothing
};
// Called now and then, with every kLinesPerNotice-th line, and while a file waits.
using TellReading = std::function<void(const ReadingProgress&)>;
inline constexpr std::uint64_t kLinesPerNotice = 1 << 14;

// Gives the records of `files` to `take` in file order, at least one per file, and holds one at a
// time; `take` must not keep the reference. Stops at the first error, of reading or of `take`:
// kInvalid with "file:line" for a line that is not an object with the needed fields, for one with
// images, videos or audio, which no model here can use, or with tools beside a prompt that is a
// text (unless DatasetKeys::extra names them), for what RecordChat refuses, for a line above
// kRecordBytesMax, and where a bound of the data set is passed; kFailed for a file that cannot be
// read or is no regular one.
using TakeRecord = std::function<Result<void>(const Record&)>;
Result<void> read_dataset(const std::vector<std::filesystem::path>& files, const DatasetKeys& keys,
                          RecordNeeds needs, const TakeRecord& take, const TellReading& tell = {});

// All records, held in memory whole: for data sets that are known to be small, such as those that
// are evaluated.
Result<std::vector<Record>> load_dataset(const std::vector<std::filesystem::path>& files,
                                         const DatasetKeys& keys, RecordNeeds needs);

}  // namespace tandem::job
