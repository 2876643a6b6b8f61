// Tests kube_command.h: which job the manifest has, what is warned of, and what is refused.
#include "actors/main/kube_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "actors/job/load_job.h"
#include "actors/main/verbs.h"
#include "tests/actors/cli/parsing.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::app {
namespace {

struct PrintedManifest {
  Result<int> code = 0;
  std::string out, err;
};

class KubeCommandTest : public testing::Test {
 protected:
  // The manifest of a job file with this text.
  PrintedManifest printed(const std::string& job, KubeCommand command) const {
    model::testing::write_text(folder_ / "job.yaml", job);
    command.job = folder_ / "job.yaml";
    std::ostringstream out, err;
    const cli::Console console{.out = out, .err = err, .width = {}};
    const Result<int> code = command.run({.console = console});
    return {code, out.str(), err.str()};
  }
  const std::filesystem::path folder_ = model::testing::scratch_folder("kube_command");
};

// No file that it names is on this machine.
constexpr const char* kPodsJob =
    "name: small\n"
    "model: {path: models/qwen}\n"
    "data: {train_files: [data/train.jsonl], train_batch_size: 8}\n"
    "reward: {type: command, command: [python3, rewards/digits.py]}\n";

TEST_F(KubeCommandTest, RelativePathsStartInTheClaim) {
  const PrintedManifest done =
      printed(kPodsJob, {.sets = {"warm_start.train_files=warm.jsonl"}, .image = "tandem:1"});
  ASSERT_TRUE(done.code) << render(done.code.error());
  EXPECT_EQ(*done.code, 0);
  EXPECT_EQ(done.err, "");
  for (const char* text : {"path: /tandem/models/qwen\n", "[/tandem/data/train.jsonl]\n",
                           "[/tandem/warm.jsonl]\n", "rewards/digits.py", "kind: JobSet\n"})
    EXPECT_NE(done.out.find(text), std::string::npos) << text << " in\n" << done.out;
}

TEST_F(KubeCommandTest, PathsThatPodsMayNotHaveAreWarnedOf) {
  const PrintedManifest done =
      printed(kPodsJob, {.sets = {"model.path=/models/qwen", "reward.command=[/opt/reward]",
                                  "data.train_files=[/tandem/a.jsonl, /data/b.jsonl]",
                                  "data.val_files=../c.jsonl", "rollout.stop=[\"/end\"]"},
                         .image = "tandem:1"});
  ASSERT_TRUE(done.code) << render(done.code.error());
  for (const char* text :
       {"`model.path` names /models/qwen,", "`reward.command` names /opt/reward,",
        "`data.train_files` names /data/b.jsonl,", "`data.val_files` names /c.jsonl,"})
    EXPECT_NE(done.err.find(text), std::string::npos) << text << " in\n" << done.err;
  EXPECT_EQ(done.err.find("a.jsonl"), std::string::npos) << done.err;
  EXPECT_EQ(done.err.find("/end"), std::string::npos) << done.err;
}

TEST_F(KubeCommandTest, PodsWithoutGpusForAJobThatAsksForThemAreWarnedOf) {
  const std::vector<std::string> sets{"pools.rollout.gpus_per_actor=1"};
  EXPECT_NE(printed(kPodsJob, {.sets = sets, .image = "tandem:1"}).err.find("--gpus-per-node"),
            std::string::npos);
  EXPECT_EQ(printed(kPodsJob, {.sets = sets, .image = "tandem:1", .hosts = {.gpus = 1}}).err, "");
}

TEST_F(KubeCommandTest, ANameThatNoObjectCanHaveIsRefusedWithOneThatItCan) {
  const PrintedManifest done = printed(kPodsJob, {.sets = {"name=My_Job.2"}, .image = "tandem:1"});
  ASSERT_FALSE(done.code);
  EXPECT_EQ(done.code.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(done.code.error().help, "as in --set name=my-job-2");
  EXPECT_EQ(done.out, "");
}

TEST_F(KubeCommandTest, EachManifestHasKeysOfItsOwn) {
  const auto lines_of = [](const std::string& text, const std::string& key) {
    const std::size_t at = text.find("  " + key + ": ");
    return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  const std::string one = printed(kPodsJob, {.image = "tandem:1"}).out;
  const std::string other = printed(kPodsJob, {.image = "tandem:1"}).out;
  for (const char* key : {"controller.public", "controller.secret", "node.secret", "token"}) {
    EXPECT_NE(lines_of(one, key), "") << key;
    EXPECT_NE(lines_of(one, key), lines_of(other, key)) << key;
  }
}

TEST(KubeCommandLine, WhatCannotBeIsRefused) {
  const std::vector<std::string> line{"kube", "manifest", "job.yaml", "--image", "tandem:1"};
  const auto refused = [&line](std::vector<std::string> more, const std::string& message,
                               const std::string& help) {
    more.insert(more.begin(), line.begin(), line.end());
    cli::expect_refused(more, all_verbs, message, help);
  };
  refused({"--nodes", "2", "--min-nodes", "3"}, "--min-nodes is more than --nodes", "never begin");
  refused({"--plain", "--queue", "team-a"}, "--queue is for a JobSet", "one by one");
  refused({"--memory-per-node", "16GB"}, "`16GB` is no quantity", "");
  refused({"--claim", "a", "--storage", "1Gi"}, "--claim", "");
  refused({"--namespace", "A"}, "`A` is no name", "");
  cli::expect_refused({"kube", "manifest", "job.yaml"}, all_verbs, "--image", "");
}

}  // namespace
}  // namespace tandem::app
