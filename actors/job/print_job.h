// The effective job as YAML: every key of every present section with its value, in table order. The
// controller sends this text to ranks and writes it into the run directory, so that a default which
// changes in a later version does not change a run that is resumed.
//
// PJ-1  parse_job(print_job(x)) == x.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/job/job_spec.h"
#include "actors/job/job_table.h"

namespace tandem::job {

std::string print_job(const JobSpec& job);

// The same keys by their full paths, each with its value: {"rollout.n", "8"}.
struct PrintedKey {
  std::string path, value;
  std::string comment = {};  // stands above the key, or behind it where the line has room
};
std::vector<PrintedKey> printed_keys(const JobSpec& job);

// Keys, which are in the order of the table, as YAML under the headers of their sections.
std::string print_keys(const std::vector<PrintedKey>& keys);

// Calls `take` with those keys, in that order. A field is valid during its call.
using TakeField = std::function<void(const std::string& path, const FieldRef& field)>;
void for_each_field(const JobSpec& job, const TakeField& take);

// One value in YAML's flow form: "0.001", "[1, 2]", "null", "\"a b\"".
std::string print_value(const FieldRef& field);

}  // namespace tandem::job
