#include "actors/job/foreign_input.h"

#include <gtest/gtest.h>

#include "tests/actors/job/job_folder.h"

namespace tandem::job {
namespace {

TEST(ForeignInput, AHubIdIsKnownWhereNoSuchFolderIs) {
  const JobFolder folder;
  const auto job = folder.parse(folder.minimal(), {"model.path=Qwen/Qwen3-0.6B"});
  ASSERT_FALSE(job);
  EXPECT_EQ(exit_code(job.error().code), 1);
  EXPECT_EQ(job.error().where, "--set model.path=Qwen/Qwen3-0.6B");
  EXPECT_NE(job.error().message.find("`Qwen/Qwen3-0.6B` looks like"), std::string::npos)
      << job.error().message;
  EXPECT_NE(job.error().help.find("hf download Qwen/Qwen3-0.6B"), std::string::npos);
  const std::filesystem::path root = folder.root();
  EXPECT_TRUE(hub_id_error(root / "Qwen/Qwen3-0.6B", root, ""));
  for (const char* other : {"models/missing", "missing", "a/b/c", "../x/y", ".cache/y"})
    EXPECT_FALSE(hub_id_error(root / other, root, "")) << other;
}

}  // namespace
}  // namespace tandem::job
