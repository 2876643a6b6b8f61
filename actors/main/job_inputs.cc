// The loaders are those of the ranks and the exchange, so that a file which passes here passes
// there. A large data set is not encoded twice: one text with every byte of UTF-8 is encoded
// instead, and if the tokenizer can do that, prompts are encoded only until one is short enough.
#include "actors/main/job_inputs.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "actors/controller/run_journal.h"
#include "actors/main/job/dataset.h"
#include "actors/main/job/kept_run.h"
#include "actors/main/roles/role_config.h"
#include "actors/model/checkpoint.h"
#include "runtime/base/file.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

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

// Each prompt must be encodable and at least one short enough: a job whose prompts are all
// discarded would look for another one for ever.
Result<void> check_prompts(const std::vector<fs::path>& files, const char* key, const JobSpec& job,
                           const actors::Tokenizer& tokenizer, const TellReading& tell) {
  const bool encodes_all = tokenizer.encode(every_byte()).has_value();
  bool fits = false;
  const auto check = [&](const Record& record) -> Result<void> {
    if (record.prompt.empty())
      return Error{ErrorCode::kInvalid, "the prompt is empty", record.where, "remove the line"};
    if (fits && encodes_all) return {};
    const auto tokens = tokenizer.encode_prompt(record.prompt);
    if (!tokens)
      return Error{ErrorCode::kInvalid, tokens.error().message, record.where,
                   "use text that the model's tokenizer covers"};
    fits = fits || std::ssize(*tokens) <= job.data.max_prompt_length;
    return {};
  };
  if (auto read = read_dataset(files, dataset_keys(job), needs_of_prompts(job), check, tell); !read)
    return read;
  if (fits) return {};
  return Error{ErrorCode::kInvalid,
               "no prompt of `" + std::string(key) + "` fits `data.max_prompt_length: " +
                   std::to_string(job.data.max_prompt_length) + "`",
               files.front().string(), "raise data.max_prompt_length"};
}

// The longest sequence, a prompt and its completion, must fit into the model's positions. The error
// points at the key that the job sets.
Result<void> check_positions(const LoadedJob& job, const actors::ModelConfig& model) {
  const DataSpec& data = job.spec.data;
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

std::vector<std::string> warnings_of(const JobSpec& job, const actors::ModelConfig& model) {
  const bool never_stops = model.eos_token_ids.empty() && job.rollout.sampling.stop.empty() &&
                           job.rollout.sampling.stop_token_ids.empty();
  if (!never_stops) return {};
  return {
      "the model's config.json names no eos_token_id, and neither rollout.stop nor "
      "rollout.stop_token_ids is set: every completion runs to data.max_response_length"};
}

}  // namespace

Result<CheckedInputs> check_inputs(const LoadedJob& loaded, const TellReading& tell) {
  const JobSpec& job = loaded.spec;
  if (!trains(job)) return CheckedInputs{};
  const auto model = actors::load_model_info(job.model.path, dtype_of(job.model));
  if (!model) return model.error();
  if (auto checked = check_positions(loaded, model->config); !checked) return checked.error();
  if (job.model.init == ModelInit::kPretrained)
    if (auto checked = actors::check_weights(job.model.path, model->config); !checked)
      return checked.error();
  const auto check = [&](const std::vector<fs::path>& files, const char* key) {
    return check_prompts(files, key, job, model->tokenizer, tell);
  };
  if (auto checked = check(job.data.train_files, "data.train_files"); !checked)
    return checked.error();
  if (!job.data.val_files.empty())
    if (auto checked = check(job.data.val_files, "data.val_files"); !checked)
      return checked.error();
  // Only for its errors; the learner reads the records again.
  const auto drop = [](const actors::WarmStartRecord&) {};
  if (auto read = read_warm_start(job, model->config, model->tokenizer, drop, tell); !read)
    return read.error();
  return CheckedInputs{.warnings = warnings_of(job, model->config),
                       .model = planned_model(model->config, job.model.path)};
}

Result<void> check_run_to_resume(const JobSpec& job, const fs::path& run) {
  if (const auto fine = check_resumable(job, run); !fine) return fine.error();
  // The run would append to these.
  for (const char* const file : {"metrics.jsonl", "samples.jsonl"})
    if (const auto regular = refuse_irregular(run / file); !regular) return regular;
  return actors::RunJournal::check(run.string());
}

}  // namespace tandem::app
