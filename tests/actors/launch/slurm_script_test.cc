// The job script that Slurm gets. That Slurm runs it is shown by tests/e2e/slurm_test.cc.
#include "actors/launch/slurm_script.h"

#include <gtest/gtest.h>

namespace tandem::launch {
namespace {

SlurmJob small() {
  return {.name = "arithmetic",
          .home = "/shared/home",
          .folder = "/shared",
          .program = "/opt/tandem",
          .job = "/shared/job.yaml",
          .nodes = 3,
          .min_nodes = 2};
}

bool has(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(SlurmScript, AsksForTheNodesAndANoticeBeforeTheEnd_SL1) {
  SlurmJob job = small();
  job.time = "8:00:00";
  job.partition = "gpu";
  job.gpus_per_node = 8;
  job.sbatch = {"--constraint=a100"};
  const std::string text = slurm_script(job);
  EXPECT_TRUE(text.starts_with("#!/bin/bash\n"));
  for (const char* line : {"#SBATCH --nodes=3", "#SBATCH --time=8:00:00", "#SBATCH --partition=gpu",
                           "#SBATCH --gpus-per-node=8", "#SBATCH --constraint=a100",
                           "#SBATCH --requeue", "#SBATCH --no-kill", "#SBATCH --signal=B:TERM@180"})
    EXPECT_TRUE(has(text, line)) << line << " in\n" << text;
  // sbatch reads no options behind the first command.
  EXPECT_LT(text.rfind("#SBATCH"), text.find("\nset -u"));
}

TEST(SlurmScript, LeavesOutWhatIsNotGiven) {
  const std::string text = slurm_script(small());
  for (const char* word : {"--time", "--partition", "--gpus-per-node"})
    EXPECT_EQ(text.find(word), std::string::npos) << word;
}

TEST(SlurmScript, WordsOfTheUserMeanNothingToTheShell) {
  SlurmJob job = small();
  job.sets = {"rollout.stop=[\"$(rm -rf x)\"]", "data.system_prompt=it's"};
  const std::string text = slurm_script(job);
  EXPECT_TRUE(has(text, "export TANDEM_HOME=/shared/home"));
  EXPECT_TRUE(has(text, "#SBATCH --output=/shared/home/slurm/%j.log"));
  EXPECT_TRUE(has(text,
                  "what=(/shared/job.yaml --set 'rollout.stop=[\"$(rm -rf x)\"]' --set "
                  "'data.system_prompt=it'\\''s')"))
      << text;
}

TEST(SlurmScript, GoesOnWithARun) {
  SlurmJob job = small();
  job.job.clear();
  job.resume = "/shared/home/runs/a-1";
  EXPECT_TRUE(has(slurm_script(job), "what=(--resume /shared/home/runs/a-1)"));
  job.job = "/shared/job.yaml";
  EXPECT_TRUE(has(slurm_script(job), "what=(/shared/job.yaml --resume /shared/home/runs/a-1)"));
}

TEST(SlurmScript, WhatALineOfSbatchCannotHave) {
  EXPECT_TRUE(is_sbatch_word("--constraint=a100&ib"));
  for (const char* text : {"", "a b", "a\nb", "a#b", "a'b", "a\"b", "100%"})
    EXPECT_FALSE(is_sbatch_word(text)) << text;
}

}  // namespace
}  // namespace tandem::launch
