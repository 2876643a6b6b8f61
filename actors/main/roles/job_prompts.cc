#include "actors/main/roles/job_prompts.h"

#include <optional>
#include <set>
#include <utility>

#include "actors/job/record_draw.h"
#include "actors/model/checkpoint.h"
#include "runtime/base/rng.h"

namespace tandem::app {
namespace {

// The seed of everything that is random in the order of the data.
std::uint64_t data_seed(const job::JobSpec& job) {
  return derive_seed(static_cast<std::uint64_t>(job.seed), "data");
}

const std::string& source_name(const job::Record& record) {
  return record.data_source && !record.data_source->empty() ? *record.data_source : record.file;
}

// The data sources that some part of the reward is for; nullopt: one is for all.
std::optional<std::set<std::string>> sources_paid(const job::JobSpec& job) {
  std::set<std::string> sources;
  for (const job::NamedReward& reward : rewards_of(job.reward)) {
    if (reward.spec->sources.empty()) return {};
    sources.insert(reward.spec->sources.begin(), reward.spec->sources.end());
  }
  return sources;
}

Error unpaid(const job::JobSpec& job, const job::Record& record) {
  const std::string source =
      record.data_source ? "the data source `" + *record.data_source + "`" : "no data source";
  return {ErrorCode::kInvalid, "the record has " + source + ", which no reward is for",
          record.where,
          "add it to the `sources` of one of the rewards, or leave one of these empty; the source "
          "is read from `" +
              job.data.data_source_key + "`"};
}

}  // namespace

const std::vector<std::filesystem::path>& files_of(const job::JobSpec& job, PromptSet set) {
  return set == PromptSet::kTraining ? job.data.train_files : job.data.val_files;
}

const char* key_of(PromptSet set) {
  return set == PromptSet::kTraining ? "data.train_files" : "data.val_files";
}

Result<void> read_drawn(const job::JobSpec& job, PromptSet set, const job::TakeRecord& take,
                        const job::TellReading& tell) {
  const job::DatasetKeys keys = dataset_keys(job);
  const auto sources = sources_paid(job);
  const auto take_paid = [&](const job::Record& record) -> Result<void> {
    if (sources && !sources->contains(record.data_source.value_or(""))) return unpaid(job, record);
    return take(record);
  };
  const auto read = [&](const job::TakeRecord& to) {
    return read_dataset(files_of(job, set), keys, needs_of_prompts(job), to, tell);
  };
  const bool training = set == PromptSet::kTraining;
  const auto& count = training ? job.data.max_samples : job.data.max_val_samples;
  if (!count) return read(take_paid);
  const auto wanted = static_cast<std::uint64_t>(*count);
  if (!job.data.shuffle) {
    std::uint64_t taken = 0;
    return read([&](const job::Record& record) {
      return taken++ < wanted ? take_paid(record) : Result<void>();
    });
  }
  job::RecordDraw draw(derive_seed(data_seed(job), training ? "max_samples" : "max_val_samples"),
                       wanted);
  const auto add = [&](const job::Record& record) -> Result<void> {
    draw.add(record);
    return {};
  };
  if (auto done = read(add); !done) return done;
  return draw.give(take_paid);
}

namespace {

// read_drawn() without the prompts that are too long, where the job leaves them out.
Result<void> read_short(const job::JobSpec& job, PromptSet set, const job::TakeRecord& take,
                        const job::TellReading& tell) {
  if (!job.data.filter_overlong_prompts) return read_drawn(job, set, take, tell);
  const auto model = model::load_model_info(job.model.path);
  if (!model) return model.error();
  const auto take_short = [&](const job::Record& record) -> Result<void> {
    const auto tokens = model->tokenizer.encode_prompt(record.prompt);
    const bool is_short = tokens && std::ssize(*tokens) <= job.data.max_prompt_length;
    return is_short ? take(record) : Result<void>();
  };
  return read_drawn(job, set, take_short, tell);
}

}  // namespace

PromptCollection::PromptCollection(const job::JobSpec& job, KeepPrompts keep)
    : job_(job), keep_(keep) {
  for (const auto& [name, weight] : job.data.mixture)
    sources_[name] = {.name = name, .weight = weight, .prompts = {}};
}

Result<bool> PromptCollection::visits(PromptSet set, const job::Record& record) const {
  if (set != PromptSet::kTraining || sources_.empty()) return true;
  const std::string& name = source_name(record);
  const auto source = sources_.find(name);
  if (source != sources_.end()) return source->second.weight > 0;
  return Error{
      ErrorCode::kInvalid,
      "the data set `" + name + "` has no weight in `data.mixture`" +
          (&name == &record.file ? "; the line has no data source, so its file's name counts" : ""),
      record.where, "add `" + name + "` to data.mixture; the weight 0 leaves its prompts out"};
}

void PromptCollection::add(PromptSet set, const job::Record& record) {
  const bool kept = keep_ == KeepPrompts::kYes;
  if (set != PromptSet::kTraining) {
    if (kept) validation_.push_back(record);
    return;
  }
  if (!sources_.empty()) sources_.at(source_name(record)).prompts.push_back(size_);
  ++size_;
  if (kept) training_.add(record.prompt, record.json);
}

Result<JobPrompts> PromptCollection::take() {
  std::vector<job::PromptSource> mixed;
  for (auto& [name, source] : sources_) {
    if (source.weight <= 0) continue;
    if (source.prompts.empty())
      return Error{ErrorCode::kInvalid,
                   "`data.mixture` has a weight for `" + name +
                       "`, and no prompt that training visits is of that data set",
                   "", "leave it out, or see data.data_source_key"};
    mixed.push_back(std::move(source));
  }
  const bool shuffle = job_.data.shuffle;
  job::PromptOrder order = mixed.empty()
                               ? job::PromptOrder(data_seed(job_), shuffle, size_)
                               : job::PromptOrder(data_seed(job_), shuffle, std::move(mixed));
  return JobPrompts{{std::move(training_), std::move(order)}, std::move(validation_)};
}

Result<JobPrompts> read_prompts(const job::JobSpec& job, const job::TellReading& tell) {
  PromptCollection prompts(job, KeepPrompts::kYes);
  for (const PromptSet set : {PromptSet::kTraining, PromptSet::kValidation}) {
    if (files_of(job, set).empty()) continue;
    const auto add = [&](const job::Record& record) -> Result<void> {
      const auto visited = prompts.visits(set, record);
      if (!visited) return visited.error();
      if (*visited) prompts.add(set, record);
      return {};
    };
    if (auto read = read_short(job, set, add, tell); !read) return read.error();
  }
  return prompts.take();
}

Result<std::vector<job::Record>> read_validation_prompts(const job::JobSpec& job) {
  std::vector<job::Record> records;
  const auto add = [&](const job::Record& record) -> Result<void> {
    records.push_back(record);
    return {};
  };
  if (job.data.val_files.empty()) return records;
  if (auto read = read_short(job, PromptSet::kValidation, add, {}); !read) return read.error();
  return records;
}

}  // namespace tandem::app
