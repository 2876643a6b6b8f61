// The keys of a job in the making as the lines of a job file, in the order of the file's table.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "actors/job/print_job.h"
#include "actors/translate/draft.h"

namespace tandem::translate {

// The keys with their comments. Parts of the reward come behind the reward's own keys, in the order
// in which they were set.
std::vector<job::PrintedKey> printed_values(const std::vector<JobValue>& values);

// The same without comments: a line for each key, and one for each header of a section.
std::string job_text(const std::vector<JobValue>& values);

}  // namespace tandem::translate
