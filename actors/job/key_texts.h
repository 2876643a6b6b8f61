// A row of the table of keys in words, for `tandem explain`, docs/job-file.md and errors. Types and
// defaults are read from a default JobSpec through the field of the row, so that they cannot differ
// from the values that a job really gets.
#pragma once

#include <string>

#include "actors/job/job_table.h"

namespace tandem::job {

std::string type_text(const Key& key);   // "integer", "one of grpo, dr_grpo, …", "list of paths"
std::string range_text(const Key& key);  // "[1, 4096] tokens", "(0, 1]", "≥ 0", ""
std::string default_text(const Key& key);  // as YAML, "required" when there is none

}  // namespace tandem::job
