// The job of a user, as a file or as the body of a request, and behind a line "--" the --set
// options of the command line, one in each line. Checked: an error always names a place; a job that
// is taken is settled, so that what print_job() writes of it is the same job again (PJ-1).
#include <sstream>

#include "actors/job/load_job.h"
#include "actors/job/print_job.h"
#include "runtime/base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

job::JobText text_of(std::string_view yaml) {
  return {.yaml = yaml,
          .origin = "job.yaml",
          .base = "/nowhere/jobs",
          .set_base = "/nowhere",
          .files = job::Files::kUnchecked};
}

}  // namespace

void job_file(std::string_view input) {
  Pieces pieces(input);
  job::JobText text = text_of(pieces.text());
  std::istringstream sets{std::string(pieces.rest())};
  for (std::string line; text.sets.size() < 8 && std::getline(sets, line);)
    text.sets.push_back(line);
  const auto loaded = job::parse_job(text);
  if (!loaded) {
    CHECK(!loaded.error().message.empty() && !loaded.error().where.empty());
    for (const FurtherError& further : loaded.error().further)
      CHECK(!further.message.empty() && !further.where.empty());
    return;
  }
  const std::string printed = job::print_job(loaded->spec);
  const auto again = job::parse_job(text_of(printed));
  CHECK(again.has_value());
  CHECK(job::print_job(again->spec) == printed);
}

}  // namespace tandem::fuzz
