// The loaders are those of the ranks and the exchange, so that a file which passes here passes
// there. A large data set is not encoded for this check alone: one text with every byte of UTF-8 is
// encoded instead, and if the tokenizer can do that, prompts are encoded only until one is short
// enough, unless the job wants to know of all that are not.
#include "actors/main/job_inputs.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "actors/job/dataset.h"
#include "actors/job/resume.h"
#include "actors/main/roles/job_prompts.h"
#include "actors/main/roles/role_config.h"
#include "actors/model/checkpoint.h"
#include "actors/runs/run_journal.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

// The most that learner.total_training_steps may be.
constexpr std::int64_t kTrainingStepsMax = 1'000'000'000;

// A text with every byte that UTF-8 can hold, as characters of one, two, three and four bytes. A
// tokenizer that works on bytes and encodes it can encode any text.
std::string every_byte() {
  std::string text;
  for (char c = 1; c > 0 && c < 127; ++c) text += c;
  for (unsigned lead = 0xC2; lead < 0xE0; ++lead)
    for (unsigned last = 0x80; last < 0xC0; ++last)
      text += {static_cast<char>(lead), static_cast<char>(last)};
  for (unsigned lead = 0xE0; lead < 0xF0; ++lead)  // 0x9F and not 0xA0: no surrogates
    text += {static_cast<char>(lead), lead == 0xE0 ? '\xA0' : '\x9F', '\x80'};
  for (unsigned lead = 0xF0; lead < 0xF5; ++lead)
    text += {static_cast<char>(lead), lead == 0xF0 ? '\x90' : '\x80', '\x80', '\x80'};
  return text;
}

struct PromptCount {
  std::int64_t all = 0, too_long = 0;  // too_long: counted only where such prompts are left out
  std::shared_ptr<const model::ChatFormat> chat;  // of the last conversation
};

// The keys of data.extra_keys that no record has had so far.
class UnseenKeys {
 public:
  explicit UnseenKeys(const job::JobSpec& job)
      : unseen_(job.data.extra_keys.value_or(std::vector<std::string>{})) {}
  void look_at(const job::Record& record) {
    if (unseen_.empty()) return;
    const nlohmann::json fields = parse_json(record.json);
    std::erase_if(unseen_, [&](const std::string& key) { return find_path(fields, key); });
  }
  Result<void> check(const job::LoadedJob& job) const {
    if (unseen_.empty()) return {};
    return Error{ErrorCode::kInvalid,
                 "no record has `" + unseen_.front() + "`, which `data.extra_keys` names",
                 place_of(job, "data.extra_keys"), "name fields that the data files have"};
  }

 private:
  std::vector<std::string> unseen_;
};

Error too_long_error(const job::Record& record, std::size_t tokens, const job::DataSpec& data) {
  return {ErrorCode::kInvalid,
          "the prompt has " + std::to_string(tokens) +
              " tokens, more than `data.max_prompt_length: " +
              std::to_string(data.max_prompt_length) + "` (`data.truncation: error`)",
          record.where,
          "raise data.max_prompt_length, set data.filter_overlong_prompts: true, or choose another "
          "data.truncation"};
}

// Checks the prompts of one set, one after the other.
class PromptCheck {
 public:
  PromptCheck(const job::JobSpec& job, const model::Tokenizer& tokenizer)
      : data_(job.data),
        tokenizer_(tokenizer),
        encodes_all_(tokenizer.encode(every_byte()).has_value()) {}

  Result<void> look_at(const job::Record& record) {
    ++count_.all;
    if (record.chat) count_.chat = record.chat;
    if (!record.prompt.empty()) return {};
    return Error{ErrorCode::kInvalid, "the prompt is empty", record.where, "remove the line"};
  }
  // Whether the prompt is not left out for its length.
  Result<bool> keeps(const job::Record& record) {
    const auto is_short = check_length(record);
    if (!is_short) return is_short.error();
    const bool kept = *is_short || !data_.filter_overlong_prompts;
    count_.too_long += kept ? 0 : 1;
    return kept;
  }
  const PromptCount& count() const { return count_; }
  bool fits() const { return fits_; }  // whether at least one prompt can be generated

 private:
  // Whether the prompt is short enough; nothing is encoded where that makes no difference.
  Result<bool> check_length(const job::Record& record) {
    const bool counts = data_.filter_overlong_prompts;
    const bool refuses = !counts && data_.truncation == job::Truncation::kError;
    if (fits_ && encodes_all_ && !counts && !refuses) return true;
    const auto tokens = tokenizer_.encode_prompt(record.prompt);
    if (!tokens)
      return Error{ErrorCode::kInvalid, tokens.error().message, record.where,
                   "use text that the model's tokenizer covers"};
    const bool is_short = std::ssize(*tokens) <= data_.max_prompt_length;
    if (!is_short && refuses) return too_long_error(record, tokens->size(), data_);
    fits_ = fits_ || is_short || (!counts && truncates(data_.truncation));
    return is_short;
  }

  const job::DataSpec& data_;
  const model::Tokenizer& tokenizer_;
  const bool encodes_all_;
  PromptCount count_;
  bool fits_ = false;
};

// Collects the prompts of one set. Each must be encodable and at least one short enough: a job
// whose prompts are all discarded would look for another one for ever.
Result<PromptCount> check_prompts(const job::JobSpec& job, PromptSet set,
                                  const model::Tokenizer& tokenizer, UnseenKeys& unseen,
                                  PromptCollection& prompts, const job::TellReading& tell) {
  PromptCheck check(job, tokenizer);
  const auto take = [&](const job::Record& record) -> Result<void> {
    unseen.look_at(record);
    if (auto fine = check.look_at(record); !fine) return fine;
    const auto visited = prompts.visits(set, record);
    if (!visited) return visited.error();
    if (!*visited) return {};
    const auto kept = check.keeps(record);
    if (!kept) return kept.error();
    if (*kept) prompts.add(set, record);
    return {};
  };
  if (auto read = read_drawn(job, set, take, tell); !read) return read.error();
  if (check.fits()) return check.count();
  return Error{ErrorCode::kInvalid,
               "no prompt of `" + std::string(key_of(set)) + "` fits `data.max_prompt_length: " +
                   std::to_string(job.data.max_prompt_length) + "`",
               files_of(job, set).front().string(), "raise data.max_prompt_length"};
}

std::string left_out_text(const PromptCount& count, const char* key, const job::JobSpec& job) {
  return std::to_string(count.too_long) + " of the " + std::to_string(count.all) + " prompts of " +
         key + " are longer than data.max_prompt_length, " +
         std::to_string(job.data.max_prompt_length) + " tokens, and are left out";
}

// Sets the steps of a job that counts in epochs. Returns a sentence that says so.
Result<std::string> settle_epochs(job::LoadedJob& loaded, std::int64_t prompts) {
  job::DataSpec& data = loaded.spec.data;
  const std::int64_t epochs = *data.total_epochs, batch = data.train_batch_size;
  const std::string what = std::to_string(epochs) + " epochs of " + std::to_string(prompts) +
                           " prompts, in batches of " + std::to_string(batch) + ", are ";
  const std::int64_t steps = prompts * epochs / batch;
  if (steps < 1 || steps > kTrainingStepsMax)
    return Error{ErrorCode::kInvalid,
                 "`data.total_epochs`: " + what + std::to_string(steps) + " steps",
                 place_of(loaded, "data.total_epochs"),
                 steps < 1 ? "lower data.train_batch_size" : "lower data.total_epochs"};
  loaded.spec.learner.total_training_steps = steps;
  data.total_epochs.reset();
  return what + std::to_string(steps) + " steps (data.total_epochs)";
}

// The longest sequence, a prompt and its completion, must fit into the model's positions. The error
// points at the key that the job sets.
Result<void> check_positions(const job::LoadedJob& job, const model::ModelConfig& model) {
  const job::DataSpec& data = job.spec.data;
  const std::int64_t longest = data.max_prompt_length + data.max_response_length;
  if (longest <= model.max_position_embeddings) return {};
  const char* const response = "data.max_response_length";
  const char* const key = job.places.contains(response) ? response : "data.max_prompt_length";
  return Error{ErrorCode::kInvalid,
               "`data.max_prompt_length` + `data.max_response_length` is " +
                   std::to_string(longest) + ", and the model has only " +
                   std::to_string(model.max_position_embeddings) +
                   " positions (max_position_embeddings in its config.json)",
               place_of(job, key), "lower one of them"};
}

// Errors without a place are of the mixture.
Error of_mixture(Error error, const job::LoadedJob& job) {
  if (error.where.empty()) error.where = place_of(job, "data.mixture");
  return error;
}

std::vector<std::string> warnings_of(const job::JobSpec& job, const model::ModelInfo& model) {
  std::vector<std::string> warnings = model.warnings;
  const bool never_stops = model.config.eos_token_ids.empty() &&
                           job.rollout.sampling.stop.empty() &&
                           job.rollout.sampling.stop_token_ids.empty();
  if (never_stops)
    warnings.push_back(
        "the model's config.json names no eos_token_id, and neither rollout.stop nor "
        "rollout.stop_token_ids is set: every completion runs to data.max_response_length");
  return warnings;
}

}  // namespace

Result<CheckedInputs> check_inputs(job::LoadedJob& loaded, const job::TellReading& tell,
                                   KeepPrompts keep) {
  const job::JobSpec& job = loaded.spec;
  if (!trains(job)) return CheckedInputs{};
  const auto model = model::load_model_info(job.model.path, dtype_of(job.model));
  if (!model) return model.error();
  if (auto checked = check_positions(loaded, model->config); !checked) return checked.error();
  if (job.model.init == job::ModelInit::kPretrained)
    if (auto checked = model::check_weights(job.model.path, model->config); !checked)
      return checked.error();
  std::vector<std::string> warnings = warnings_of(job, *model);
  UnseenKeys unseen(job);
  PromptCollection collection(job, keep);
  for (const PromptSet set : {PromptSet::kTraining, PromptSet::kValidation}) {
    if (files_of(job, set).empty()) continue;
    const auto count = check_prompts(job, set, model->tokenizer, unseen, collection, tell);
    if (!count) return of_mixture(count.error(), loaded);
    if (count->too_long > 0) warnings.push_back(left_out_text(*count, key_of(set), job));
    if (auto foreign =
            count->chat ? model::marker_warning(*count->chat, model->tokenizer) : std::nullopt;
        foreign && std::ranges::count(warnings, *foreign) == 0)
      warnings.push_back(*std::move(foreign));
  }
  auto prompts = collection.take();
  if (!prompts) return of_mixture(prompts.error(), loaded);
  if (auto seen = unseen.check(loaded); !seen) return seen.error();
  if (job.data.total_epochs) {
    auto settled = settle_epochs(loaded, collection.size());
    if (!settled) return settled.error();
    warnings.push_back(*std::move(settled));
  }
  // This reading only looks for errors; the learner reads the records again.
  const auto drop = [](const learner::WarmStartRecord&) {};
  if (auto read = read_warm_start(job, model->config, model->tokenizer, drop, tell); !read)
    return read.error();
  CheckedInputs checked{.warnings = std::move(warnings),
                        .model = planned_model(model->config, job.model.path)};
  if (keep == KeepPrompts::kYes) checked.prompts = *std::move(prompts);
  return checked;
}

Result<std::vector<std::string>> check_run_to_resume(const job::JobSpec& job, const fs::path& run) {
  if (const auto fine = check_resumable(job, run); !fine) return fine.error();
  // The run would append to these.
  for (const char* const file : {"metrics.jsonl", "samples.jsonl"})
    if (const auto regular = refuse_irregular(run / file); !regular) return regular.error();
  if (trains(job))
    if (const auto readable = runs::RunJournal::check(run.string()); !readable)
      return readable.error();
  const auto kept = read_file(run / "job.yaml", job::kJobFileBytesMax);
  if (!kept) return kept.error();
  const auto before = job::parse_job_of_run(*kept, run);
  // A job file that another version wrote may have keys that are unknown here; the run can go on.
  if (!before)
    return std::vector<std::string>{
        "what this job does otherwise than the run before is unknown: " + before.error().message};
  return changes_of_resume(*before, job);
}

}  // namespace tandem::app
