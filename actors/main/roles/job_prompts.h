// The prompts of a job as training and evaluations take them: read from its data files, then
// selected by its keys, in this order: a draw of some (data.max_samples), those that are short
// enough (data.filter_overlong_prompts), those of data sets with a weight (data.mixture).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/exchange_records.h"
#include "actors/job/dataset.h"
#include "actors/job/job_spec.h"
#include "actors/job/prompt_order.h"
#include "runtime/base/result.h"

namespace tandem::app {

enum class PromptSet { kTraining, kValidation };

// The files of a set, and the key that names them.
const std::vector<std::filesystem::path>& files_of(const job::JobSpec& job, PromptSet set);
const char* key_of(PromptSet set);

// Gives the records of the set to `take`, as read_dataset() does, with all checks of the whole
// files; only those that are drawn, in file order, where the job bounds their number. kInvalid for
// one that no part of the reward is for.
Result<void> read_drawn(const job::JobSpec& job, PromptSet set, const job::TakeRecord& take,
                        const job::TellReading& tell = {});

// The prompts of training, in memory, and their order.
struct TrainingPrompts {
  exchange::ExchangeRecords records;
  job::PromptOrder order;
};

struct JobPrompts {
  TrainingPrompts training;
  std::vector<job::Record> validation;  // in file order; empty without data.val_files
};

enum class KeepPrompts { kNo, kYes };

// Collects the prompts of a job from records; with kNo it counts them. The job outlives it.
class PromptCollection {
 public:
  PromptCollection(const job::JobSpec& job, KeepPrompts keep);

  // Whether the job visits records of the data set that `record` is of: where it mixes data sets,
  // those of training that have a weight above 0. kInvalid for one that has no weight.
  Result<bool> visits(PromptSet set, const job::Record& record) const;
  // Adds a record that the job visits.
  void add(PromptSet set, const job::Record& record);
  std::int64_t size() const { return size_; }  // prompts of training
  // The last call but size(). kInvalid, without a place, where a data set with a weight above 0 has
  // no prompts.
  Result<JobPrompts> take();

 private:
  const job::JobSpec& job_;
  const KeepPrompts keep_;
  std::uint32_t size_ = 0;
  std::map<std::string, job::PromptSource> sources_;  // of training; empty without a mixture
  exchange::ExchangeRecords training_;
  std::vector<job::Record> validation_;
};

// Without those that are too long, where the job leaves them out. Errors are those of
// read_dataset(), and of a mixture that does not fit the data sets.
Result<JobPrompts> read_prompts(const job::JobSpec& job, const job::TellReading& tell = {});
Result<std::vector<job::Record>> read_validation_prompts(const job::JobSpec& job);

}  // namespace tandem::app
