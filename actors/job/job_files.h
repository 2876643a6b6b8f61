// The files and programs that a job names: they are looked for before anything starts, and all that
// are missing or cannot be read are told in one answer. Only a text that belongs into the job is
// read here; dataset.h and job_inputs.h read the others.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "actors/job/job_faults.h"
#include "actors/job/job_spec.h"

namespace tandem::job {

// Where a key was given.
using PositionOf = std::function<SourcePosition(std::string_view key)>;

// What a job was written as. A path below one of the folders at which its relative paths started
// may have been meant as the id of a model on a hub, and a comment of the text may have that id.
struct WrittenJob {
  std::string_view yaml;
  std::span<const std::filesystem::path> bases;
};

void check_files(const JobSpec& job, const WrittenJob& written, const PositionOf& position_of,
                 JobFaults& faults);

// Those of its reward alone.
void check_reward_files(const JobSpec& job, const PositionOf& position_of, JobFaults& faults);

inline constexpr std::size_t kSystemPromptBytesMax = 64 << 10;

// Puts the text of data.system_prompt_file into data.system_prompt, without a new line at its end,
// so that the job is the same wherever and whenever it is read again. A file that is empty, too
// long or no UTF-8 is a fault.
void take_system_prompt(JobSpec& job, const PositionOf& position_of, JobFaults& faults);

}  // namespace tandem::job
