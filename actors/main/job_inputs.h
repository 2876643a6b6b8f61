// Checks everything that a job reads, before anything starts: the model's directory, every data
// file, and the run that the job continues. So mistakes in them are reported at once and with their
// place, and no run directory is made for a job that cannot run. Not here: whether the files exist
// (load_job), and whether the job fits the cluster (scheduler/fleet).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/job/dataset.h"
#include "actors/job/load_job.h"
#include "actors/main/roles/job_prompts.h"
#include "actors/main/roles/planned_model.h"
#include "runtime/base/result.h"

namespace tandem::app {

struct CheckedInputs {
  std::vector<std::string> warnings;  // a sentence each, for stderr
  // For plan_memory(), and for the job's exchange; a job of actors alone has none.
  std::optional<PlannedModel> model;
  std::optional<JobPrompts> prompts;  // none either with KeepPrompts::kNo
};

// Reads all data files, and of the weights only the header. kFailed for a file that cannot be read.
// kInvalid for content that cannot be used: a line that is not a record, text that the model's
// tokenizer cannot encode (both with "file:line"), a file list in which no prompt fits
// data.max_prompt_length, or one does not and the job wants all to; data sets that do not fit
// data.mixture; lengths beyond the model's positions (with the key's place).
// `tell` hears how far the reading is. Where the job counts in epochs, its steps are set: they
// follow from the number of prompts.
Result<CheckedInputs> check_inputs(job::LoadedJob& job, const job::TellReading& tell = {},
                                   KeepPrompts keep = KeepPrompts::kYes);

// Whether the run in the directory `run` can go on as `job`, and what it then does otherwise than
// before (changes_of_resume()). kInvalid for the reasons of check_resumable(), and for a journal
// that another version of tandem wrote; kFailed where one of its files is no regular file. Writes
// nothing.
Result<std::vector<std::string>> check_run_to_resume(const job::JobSpec& job,
                                                     const std::filesystem::path& run);

}  // namespace tandem::app
