#include "actors/main/parsed_jobs.h"

#include <gtest/gtest.h>

#include "actors/job/print_job.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::app {
namespace {

TEST(ParsedJobs, GivesBackWhatWasSubmittedWithoutParsingIt) {
  const job::JobFolder folder;
  ParsedJobs jobs;
  const job::JobSpec job = folder.full();
  const std::string yaml = jobs.keep(job);
  EXPECT_EQ(yaml, print_job(job));
  const auto first = jobs.of(yaml, "/nowhere"), second = jobs.of(yaml, "/nowhere");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second) << "it is one object";
  EXPECT_EQ(print_job(**first), yaml);
}

TEST(ParsedJobs, ParsesATextThatItDoesNotKnow) {
  const job::JobFolder folder;
  ParsedJobs jobs;
  const std::string yaml = print_job(folder.full());
  const auto parsed = jobs.of(yaml, folder.root().string());
  ASSERT_TRUE(parsed) << render(parsed.error());
  EXPECT_EQ(print_job(**parsed), yaml);
  EXPECT_FALSE(jobs.of("name: [", "/nowhere"));
}

TEST(ParsedJobs, ForgetsTheOldest) {
  const job::JobFolder folder;
  ParsedJobs jobs;
  job::JobSpec job = folder.full();
  const std::string oldest = jobs.keep(job);
  const auto before = jobs.of(oldest, "/nowhere");
  for (std::size_t n = 0; n < ParsedJobs::kJobsMax; ++n) {
    job.seed = static_cast<std::int64_t>(1000 + n);
    jobs.keep(job);
  }
  const auto after = jobs.of(oldest, folder.root().string());
  ASSERT_TRUE(before && after);
  EXPECT_NE(*before, *after) << "parsed anew";
}

}  // namespace
}  // namespace tandem::app
