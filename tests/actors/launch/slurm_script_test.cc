// The job script that Slurm gets. That Slurm runs it is shown by tests/e2e/slurm_test.cc.
#include "actors/launch/slurm_script.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/file.h"

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

TEST(SlurmScript, GivesTheRangeOfPortsToTheRunAndToNodes) {
  SlurmJob job = small();
  EXPECT_TRUE(has(slurm_script(job), "ports="));
  job.ports = "7420-7499";
  job.plaintext_gang = true;
  EXPECT_TRUE(has(slurm_script(job), "ports=7420-7499"));
  EXPECT_TRUE(has(slurm_script(job), "what=(/shared/job.yaml --allow-plaintext-gang)"));
}

TEST(SlurmScript, LeavesOutWhatIsNotGiven) {
  const std::string text = slurm_script(small());
  for (const char* word : {"--time", "--partition", "--gpus-per-node"})
    EXPECT_EQ(text.find(std::string("#SBATCH ") + word), std::string::npos) << word;
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

// The script in bash, on a host where short programs stand in for Slurm's and for ours. Each notes
// the words that it is called with.
class SlurmScriptRuns : public ::testing::Test {
 protected:
  SlurmScriptRuns() {
    std::string pattern = testing::TempDir() + "slurm.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(folder_ / "bin");
    program("scontrol", R"([ "$1" != show ] || echo NodeAddr=10.0.0.1)");
    program("getent", "echo 10.0.0.1 STREAM n1");
    program("squeue", "echo $STATE");
    program("srun", "");
    job_.home = folder_;
    job_.program = folder_ / "bin/tandem";
  }
  ~SlurmScriptRuns() override { std::filesystem::remove_all(folder_); }

  void program(const std::string& name, const std::string& body) const {
    const std::filesystem::path path = folder_ / "bin" / name;
    std::ofstream(path) << "#!/bin/bash\necho \"" << name << " $*\" >>" << calls_of() << "\n"
                        << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  // A run to which Slurm sends SIGTERM, by way of the script, twice; `saves` has "$2" as its link.
  void told_run(const std::string& saves) const {
    program("tandem", "while [ \"$1\" != --link ]; do shift; done\ntrap '" + saves +
                          "; exit 130' TERM\nkill -TERM $PPID\nkill -TERM $PPID\n"
                          "while :; do sleep 0.02; done");
  }
  // Returns the exit code. `more`: of the variables that Slurm sets.
  int run(const std::string& state = "RUNNING", const std::string& more = "") const {
    std::ofstream(folder_ / "script") << slurm_script(job_);
    const std::string line =
        "cd " + folder_.string() + " && env PATH=" + (folder_ / "bin").string() +
        ":$PATH SLURM_JOB_ID=7 " + "SLURM_JOB_NUM_NODES=1 SLURMD_NODENAME=n1 STATE=" + state + " " +
        more + " bash script >out 2>&1";
    return WEXITSTATUS(std::system(line.c_str()));
  }
  bool called(const std::string& words) const {
    return read_file(calls_of())->find(words) != std::string::npos;
  }
  std::string printed() const { return *read_file(folder_ / "out"); }
  std::string calls_of() const { return (folder_ / "calls").string(); }

  std::filesystem::path folder_;
  SlurmJob job_ = small();
};
constexpr const char* kSaves = R"(mkdir -p "$2/checkpoints/step-9")";

TEST_F(SlurmScriptRuns, OneThatHasSavedAsksToBeStartedAgain_SL3) {
  told_run(kSaves);
  EXPECT_EQ(run(), 130) << printed();
  EXPECT_TRUE(called("scontrol requeue 7")) << printed();
}

TEST_F(SlurmScriptRuns, OneThatWasCancelledOrHasSavedNothingDoesNot_SL3) {
  told_run(kSaves);
  EXPECT_EQ(run("COMPLETING"), 130) << printed();
  EXPECT_FALSE(called("scontrol requeue"));
  EXPECT_EQ(run("RUNNING", "SLURM_RESTART_COUNT=1"), 130);  // step-9 is there since the start
  EXPECT_FALSE(called("scontrol requeue"));
  EXPECT_NE(printed().find("nothing was saved"), std::string::npos) << printed();
}

TEST_F(SlurmScriptRuns, OneThatEndsByItselfEndsWithItsCode) {
  for (const int code : {0, 3}) {
    program("tandem", "exit " + std::to_string(code));
    EXPECT_EQ(run(), code) << printed();
  }
  EXPECT_FALSE(called("scontrol requeue"));
  EXPECT_TRUE(called("--bind 10.0.0.1 --node-name n1 --min-nodes 2"));
  EXPECT_FALSE(called("--resume-linked"));
  EXPECT_EQ(*read_file(folder_ / "slurm/7/number"), "7\n");
}

TEST_F(SlurmScriptRuns, TheNextStartGoesOn_SL2) {
  program("tandem", "");
  EXPECT_EQ(run("RUNNING", "SLURM_RESTART_COUNT=2"), 0) << printed();
  EXPECT_TRUE(called("--resume-linked"));
  EXPECT_TRUE(called("slurm/7/cluster-2"));
}

TEST_F(SlurmScriptRuns, OneOfAnArrayHasItsOwnKeysAndFolder) {
  job_.sweep = {{"seed=1"}, {"seed=2", "tracking.run_name=\"it's 2\""}};
  EXPECT_TRUE(has(slurm_script(job_), "#SBATCH --array=0-1"));
  program("tandem", "");
  EXPECT_EQ(run("RUNNING", "SLURM_ARRAY_JOB_ID=5 SLURM_ARRAY_TASK_ID=1"), 0) << printed();
  EXPECT_TRUE(called("--set seed=2 --set tracking.run_name=\"it's 2\""));
  EXPECT_FALSE(called("seed=1"));
  EXPECT_TRUE(called("slurm/5_1/cluster-0"));
  // To Slurm the bare number of one of them means all of them.
  told_run(kSaves);
  EXPECT_EQ(run("RUNNING", "SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=0"), 130) << printed();
  EXPECT_TRUE(called("--jobs=7_0 ") && called("scontrol requeue 7_0\n")) << printed();
}

TEST_F(SlurmScriptRuns, TheCheckpointsOfARunThatGoesOnAreNotNew_SL3) {
  job_.job.clear();
  job_.resume = folder_ / "runs/a";
  std::filesystem::create_directories(folder_ / "runs/a/checkpoints/step-9");
  told_run(kSaves);
  EXPECT_EQ(run(), 130) << printed();
  EXPECT_FALSE(called("scontrol requeue"));
}

TEST(SlurmScript, WhatALineOfSbatchCannotHave) {
  EXPECT_TRUE(is_sbatch_word("--constraint=a100&ib"));
  for (const char* text : {"", "a b", "a\nb", "a#b", "a'b", "a\"b", "100%"})
    EXPECT_FALSE(is_sbatch_word(text)) << text;
}

}  // namespace
}  // namespace tandem::launch
