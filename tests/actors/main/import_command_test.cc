// Tests import_command.h: the exit code by what was lost, and where the job and the findings go.
#include "actors/main/import_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "actors/job/load_job.h"
#include "runtime/base/file.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::app {
namespace {

struct Imported {
  Result<int> code = 0;
  std::string out, err;
};

class ImportCommandTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    model::testing::write_text(folder_ / name, text);
    return (folder_ / name).string();
  }
  static Imported run(ImportCommand command) {
    std::ostringstream out, err;
    const cli::Console console{.out = out, .err = err, .width = {}};
    const Result<int> code = command.run({.console = console});
    return {code, out.str(), err.str()};
  }
  const std::filesystem::path folder_ = model::testing::scratch_folder("import_command");
};

// A configuration of verl of which everything comes over.
constexpr const char* kSound =
    "actor_rollout_ref: {model: {path: /m}, rollout: {n: 4, name: vllm}}\n"
    "algorithm: {adv_estimator: grpo}\n"
    "data: {train_files: /d/gsm8k/train.jsonl, train_batch_size: 8}\n"
    "trainer: {project_name: p, n_gpus_per_node: 8}\n";

TEST_F(ImportCommandTest, TheJobGoesToStandardOutputAndTheFindingsToStandardError) {
  const Imported done = run({.file = file("a.yaml", kSound)});
  ASSERT_TRUE(done.code) << render(done.code.error());
  EXPECT_EQ(*done.code, 0) << done.err;
  EXPECT_NE(done.out.find("train_batch_size: 8"), std::string::npos) << done.out;
  EXPECT_NE(done.err.find("from verl. Differences: 0, not understood: 0"), std::string::npos)
      << done.err;
  EXPECT_NE(done.err.find("trainer.n_gpus_per_node (a.yaml:4)"), std::string::npos) << done.err;
}

TEST_F(ImportCommandTest, TheExitCodeSaysThatSomethingElseIsLearned) {
  const std::string source =
      file("b.yaml", std::string(kSound) + "reward_model: {enable: true}\nodd: {key: 1}\n");
  const std::string job = folder_ / "job.yaml";
  const Imported done = run({.file = source, .output = job});
  ASSERT_TRUE(done.code) << render(done.code.error());
  EXPECT_EQ(*done.code, kLearnsSomethingElse);
  EXPECT_EQ(done.out, "");
  EXPECT_NE(done.err.find("Differences: 1, not understood: 1"), std::string::npos) << done.err;
  EXPECT_TRUE(job::load_job(job, {}, job::Files::kUnchecked)) << "it is written all the same";
}

TEST_F(ImportCommandTest, AFileThatIsNotUnderstoodIsAnError) {
  const Imported unknown = run({.file = file("c.yaml", "key: 1\n")});
  ASSERT_FALSE(unknown.code);
  EXPECT_EQ(unknown.code.error().code, ErrorCode::kInvalid);
  EXPECT_NE(render(unknown.code.error()).find("actor_rollout_ref"), std::string::npos)
      << "it lists what was looked for: " << render(unknown.code.error());
  const Imported named = run({.file = file("d.yaml", "key: 1\n"), .from = "trl"});
  ASSERT_TRUE(named.code) << render(named.code.error());
  EXPECT_EQ(*named.code, kLearnsSomethingElse) << named.err;

  const Imported missing = run({.file = (folder_ / "none.yaml").string()});
  ASSERT_FALSE(missing.code);
  EXPECT_NE(render(missing.code.error()).find("none.yaml"), std::string::npos);
}

TEST_F(ImportCommandTest, AFileThatIsThereIsKeptUnlessForced) {
  const std::string source = file("f.yaml", kSound), job = file("mine.yaml", "mine\n");
  const Imported refused = run({.file = source, .output = job});
  ASSERT_FALSE(refused.code);
  EXPECT_EQ(refused.code.error().code, ErrorCode::kFailed);
  EXPECT_NE(render(refused.code.error()).find("`--force`"), std::string::npos);
  EXPECT_EQ(*read_file(job, 100), "mine\n");
  const Imported forced = run({.file = source, .output = job, .force = true});
  ASSERT_TRUE(forced.code) << render(forced.code.error());
  EXPECT_TRUE(job::load_job(job, {}, job::Files::kUnchecked));
}

TEST_F(ImportCommandTest, AScriptOfTrlIsRead) {
  const Imported done = run({.file = file("train.py",
                                          "trainer = GRPOTrainer(model='Qwen/Qwen3-0.6B',\n"
                                          "  args=GRPOConfig('out', num_generations=4))\n")});
  ASSERT_TRUE(done.code) << render(done.code.error());
  EXPECT_EQ(*done.code, kLearnsSomethingElse) << "what else the script does is not known";
  EXPECT_NE(done.out.find("path: models/Qwen3-0.6B  # model_name_or_path: Qwen/Qwen3-0.6B"),
            std::string::npos)
      << done.out;
  EXPECT_NE(done.err.find("from TRL"), std::string::npos) << done.err;
}

TEST_F(ImportCommandTest, AJobThatCannotBeWrittenIsAnError) {
  const Imported done =
      run({.file = file("e.yaml", kSound), .output = (folder_ / "no/job.yaml").string()});
  ASSERT_FALSE(done.code);
  EXPECT_NE(done.code.error().code, ErrorCode::kInvalid) << "the file was understood";
}

}  // namespace
}  // namespace tandem::app
