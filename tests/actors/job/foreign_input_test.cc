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
  for (const char* other :
       {"models/missing", "checkpoints/qwen", "missing", "a/b/c", "../x/y", ".cache/y"})
    EXPECT_FALSE(hub_id_error(root / other, root, "")) << other;
}

// As `tandem import` writes a job: the folder is not an id, and the comment has it.
TEST(ForeignInput, TheCommentOfAnImportedJobHasTheHubId) {
  const JobFolder folder;
  std::string text = folder.minimal();
  const std::size_t line = text.find("path: ");
  ASSERT_NE(line, std::string::npos) << text;
  text.replace(line, text.find_first_of(",}\n", line) - line, "path: checkpoints/Qwen3-0.6B");
  const auto bare = folder.parse(text);
  ASSERT_FALSE(bare);
  EXPECT_EQ(render(bare.error()).find("hf download"), std::string::npos) << render(bare.error());

  text.insert(text.find('\n', line), "  # model_name_or_path: Qwen/Qwen3-0.6B, a/b");
  const auto noted = folder.parse(text);
  ASSERT_FALSE(noted);
  const std::filesystem::path there = folder.root() / "checkpoints/Qwen3-0.6B";
  EXPECT_EQ(noted.error().help,
            "get it with `hf download Qwen/Qwen3-0.6B --local-dir " + there.string() + "`")
      << render(noted.error());
  // The value of --set is in no line of the file.
  const auto set = folder.parse(text, {"model.path=elsewhere/Qwen3-0.6B"});
  ASSERT_FALSE(set);
  EXPECT_EQ(render(set.error()).find("comment"), std::string::npos) << render(set.error());

  for (const char* other : {"path: x  # Qwen/Qwen3", "path: x", "# Qwen/x", ""})
    EXPECT_FALSE(noted_hub_id_error(folder.root() / "Qwen3-0.6B", other)) << other;
}

}  // namespace
}  // namespace tandem::job
