// The job file's reference, from the job table: `tandem explain [KEY]` and docs/job-file.md.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::cli {

// Without a key or with a section's name: a list; with a key: everything about it. kNotFound with
// the nearest name otherwise.
Result<std::string> explain(std::string_view key_or_section);

// The text of docs/job-file.md.
std::string job_file_reference();

}  // namespace tandem::cli
