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

// The same without those that are too long, where the job leaves them out.
Result<void> read_prompts(const job::JobSpec& job, PromptSet set, const job::TakeRecord& take,
                          const job::TellReading& tell = {});

// Sorts the prompts of training by the data sets that a job mixes.
class PromptSources {
 public:
  explicit PromptSources(const std::map<std::string, double>& mixture);

  // Whether training visits records of the data set that `record` is of. kInvalid where that one
  // has no weight.
  Result<bool> visits(const job::Record& record) const;
  // Adds a record that training visits: the next one of its data set, and of all.
  void add(const job::Record& record);
  // Those with a weight above 0; none without a mixture. kInvalid, without a place, where one of
  // them has no prompts.
  Result<std::vector<job::PromptSource>> take();

  std::uint32_t size() const { return size_; }  // prompts that training visits

 private:
  std::map<std::string, job::PromptSource> sources_;
  std::uint32_t size_ = 0;
};

// The prompts of training, in memory, and their order.
struct TrainingPrompts {
  exchange::ExchangeRecords records;
  job::PromptOrder order;
};
Result<TrainingPrompts> training_prompts(const job::JobSpec& job,
                                         const job::TellReading& tell = {});
// The held-out prompts, in file order; empty without data.val_files.
Result<std::vector<job::Record>> validation_prompts(const job::JobSpec& job);

}  // namespace tandem::app
