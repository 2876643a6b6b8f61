// A real program and a real Python function in a sandbox, on a machine that has one to give.
//
// Tests actors/reward/reward_sandbox.h.
#include "actors/reward/reward_sandbox.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "runtime/sandbox/probe.h"
#include "tests/actors/reward/judge_items.h"

namespace tandem::reward {
namespace {

namespace fs = std::filesystem;
using sandbox::SandboxMode;

class RewardSandbox : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto plan = sandbox::plan_of(SandboxMode::kAuto, sandbox::probe_layers()); !plan)
      GTEST_SKIP() << render(plan.error());
    std::string pattern = testing::TempDir() + "boxed.XXXXXX";
    folder = fs::canonical(::mkdtemp(pattern.data()));
    chmod(folder.c_str(), 0755);
    fs::create_directories(folder / "job/run");
    write("secret", "the secret");
    write("job/run/answers", "the answers");
  }
  void TearDown() override {
    if (!folder.empty()) fs::remove_all(folder);
  }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder / name) << content;
  }
  // A function whose score says what it could do: 1 read the secret, 2 the run folder, 4 write
  // beside itself, 8 make a socket, 16 write to its home.
  RewardParts function(SandboxMode mode) {
    write("job/mine.py", R"(
import os, socket
def can(act):
    try:
        act()
        return True
    except OSError:
        return False
def score(completion):
    here = os.path.dirname(os.path.abspath(__file__))
    return sum([1 * can(lambda: open(here + "/../secret").close()),
                2 * can(lambda: open(here + "/run/answers").close()),
                4 * can(lambda: open(here + "/new", "w").close()),
                8 * can(lambda: socket.socket(socket.AF_UNIX).close()),
                16 * can(lambda: open(os.environ["TMPDIR"] + "/x", "w").close())])
)");
    return of({.type = VerifierType::kPython,
               .python = {.function = (folder / "job/mine.py").string() + ":score"},
               .sandbox = mode,
               .retries = 0});
  }
  static RewardParts of(VerifierConfig config) {
    config.program.env["TMPDIR"] = testing::TempDir();  // replaced in a sandbox
    config.timeout = std::chrono::seconds(90);
    return one(std::move(config));
  }
  Result<std::vector<messages::TrajectoryScore>> judged(RewardParts reward) {
    const auto boxed =
        enter_sandboxes(reward, {(folder / "job/run").string(), (folder / "none").string()});
    if (!boxed) return boxed.error();
    return judge(reward, {item("x")});
  }
  static double one_value(const Result<std::vector<messages::TrajectoryScore>>& scores) {
    EXPECT_TRUE(scores) << scores.error().message;
    return scores ? value(scores->front()) : -1;
  }
  fs::path folder;
};

TEST_F(RewardSandbox, AFunctionReadsItsFolderAndWritesToItsHomeAlone_XB4) {
  EXPECT_EQ(one_value(judged(function(SandboxMode::kOff))), 31) << "without it all can be done";
  EXPECT_EQ(one_value(judged(function(SandboxMode::kAuto))), 16);
}

TEST_F(RewardSandbox, AProgramIsFoundAndAnswersAndItsEndIsTold) {
  write("job/reward.sh", R"(while read -r line; do
  case "$line" in *die*) exit 7;; esac
  id=${line#*:}; echo "{\"id\": ${id%%,*}, \"score\": 3}"
done
)");
  const auto shell_reward = [&] {
    return of({.type = VerifierType::kCommand,
               .program = {.argv = {"sh", (folder / "job/reward.sh").string()}},
               .sandbox = SandboxMode::kAuto,
               .retries = 0});
  };
  EXPECT_EQ(one_value(judged(shell_reward())), 3);
  RewardParts dying = shell_reward();
  ASSERT_TRUE(enter_sandboxes(dying, {}));
  const auto scores = judge(dying, {item("die")});
  ASSERT_TRUE(scores) << scores.error().message;
  expect_part(reason(scores->front()), "exited with code 7");
}

TEST_F(RewardSandbox, ReadablePathsAreAdded) {
  RewardParts reward = function(SandboxMode::kAuto);
  reward.verifiers[0].readable = {(folder / "secret").string()};
  EXPECT_EQ(one_value(judged(reward)), 17);
}

TEST_F(RewardSandbox, MemoryOfAProgramIsWatchedThroughItsKeeper) {
  write("job/mine.py", R"(
import time
def score(completion):
    taken = bytearray(300 << 20)
    while True: time.sleep(1)
)");
  RewardParts reward = of({.type = VerifierType::kPython,
                           .python = {.function = (folder / "job/mine.py").string() + ":score"},
                           .sandbox = SandboxMode::kAuto,
                           .retries = 0});
  reward.verifiers[0].program.limits.memory_bytes = std::uint64_t{150} << 20;
  // The kernel keeps the limit as well, and may be the first to act.
  const auto scores = judged(reward);
  ASSERT_TRUE(scores) << scores.error().message;
  EXPECT_TRUE(std::holds_alternative<messages::ScoreFailed>(scores->front()));
}

TEST_F(RewardSandbox, TheLogSaysWhatWasReached) {
  RewardParts reward = function(SandboxMode::kAuto);
  EXPECT_EQ(describe(reward).find("sandbox="), std::string::npos);
  ASSERT_TRUE(enter_sandboxes(reward, {}));
  const std::string said = describe(reward);
  EXPECT_NE(said.find("sandbox=\"auto: "), std::string::npos) << said;
  EXPECT_NE(said.find("seccomp"), std::string::npos) << said;
}

}  // namespace
}  // namespace tandem::reward
