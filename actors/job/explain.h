// The reference of the job file, made from the job table: `tandem explain [KEY]`, and the page
// docs/job-file.md, which a test compares with job_file_reference(). Pure.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::job {

// The help text: for "" the keys of all sections with their defaults; for a section its keys; for a
// key (or an alias) its type, default, range and meaning. kNotFound otherwise, with the nearest
// name as help.
Result<std::string> explain(std::string_view key_or_section);

// The text of docs/job-file.md.
std::string job_file_reference();

}  // namespace tandem::job
