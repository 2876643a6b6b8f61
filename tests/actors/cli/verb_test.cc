// Verbs of the client where no controller runs.
#include "actors/cli/verb.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "actors/cli/api_client.h"
#include "runtime/base/build_id.h"
#include "runtime/base/file.h"
#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::cli {
namespace {

TEST(VerbsWithoutController, SayHowToStartOne) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  ASSERT_EQ(::unsetenv("TANDEM_ADDRESS"), 0);
  Outcome none = run({"get", "jobs"});
  EXPECT_EQ(exit_code(none.code), 69);
  EXPECT_NE(none.help.find("tandem up"), std::string::npos);
  folder.write("controller.json", R"({"pid": 1, "http": "127.0.0.1:1"})");
  EXPECT_EQ(resolve_address(std::nullopt).error().code, ErrorCode::kUnreachable)
      << "a killed controller's file: another program may have its port by now";
  const auto lock = FileLock::take(folder.root() / "controller.lock", "the state", "");
  ASSERT_TRUE(lock);
  folder.write("controller.json", "{");
  EXPECT_EQ(run({"get", "jobs"}).code, ErrorCode::kUnreachable);
  folder.write("controller.json",
               R"({"pid": )" + std::to_string(getpid()) + R"(, "http": "127.0.0.1:1"})");
  none = run({"get", "jobs"});
  EXPECT_EQ(exit_code(none.code), 69);
  EXPECT_NE(none.message.find("127.0.0.1:1"), std::string::npos) << none.message;
  EXPECT_EQ(run({"get", "jobs", "--address", "nonsense"}).code, ErrorCode::kInvalid);
}

// A node starts the controller again: who asks meanwhile waits for it, and is told so.
TEST(VerbsWithoutController, WaitForOneThatIsKept) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  ASSERT_EQ(::unsetenv("TANDEM_ADDRESS"), 0);
  int waits = 0;
  std::optional<Result<FileLock>> controller;
  const auto ask = [&](const std::optional<std::string>& flag = {}) {
    return await_address(flag, std::chrono::seconds(60), [&] {
      ++waits;
      controller.emplace(FileLock::take(folder.root() / "controller.lock", "the state", ""));
      folder.write("controller.json",
                   R"({"pid": )" + std::to_string(getpid()) + R"(, "http": "127.0.0.1:7"})");
    });
  };
  folder.write("controller.json", R"({"pid": 1, "http": "127.0.0.1:1"})");
  EXPECT_FALSE(ask()) << "nobody keeps it";
  const auto node = FileLock::take(folder.root() / "node.lock", "the node", "");
  ASSERT_TRUE(node);
  EXPECT_TRUE(ask("127.0.0.1:9")) << "an address that is given is taken as it is";
  std::filesystem::remove(folder.root() / "controller.json");
  EXPECT_FALSE(ask()) << "it has not begun, or was ended by `tandem down`";
  EXPECT_EQ(waits, 0);
  folder.write("controller.json", R"({"pid": 1, "http": "127.0.0.1:1"})");
  const auto found = ask();
  ASSERT_TRUE(found) << render(found.error());
  EXPECT_EQ(found->endpoint.port, 7);
  EXPECT_EQ(waits, 1);
}

// The time of a wait begins with the command, and not with the controller's first answer.
TEST(VerbsWithoutController, WaitForOneNoLongerThanTheirTime) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  ASSERT_EQ(::unsetenv("TANDEM_ADDRESS"), 0);
  folder.write("controller.json", R"({"pid": 1, "http": "127.0.0.1:1"})");
  const std::vector<const char*> words{"wait", "a-1", "--for", "Running", "--timeout", "0.1"};
  EXPECT_EQ(run(words).code, ErrorCode::kUnreachable) << "nobody keeps it";
  const auto node = FileLock::take(folder.root() / "node.lock", "the node", "");
  ASSERT_TRUE(node);
  const Outcome late = run(words);
  EXPECT_EQ(exit_code(late.code), 5) << late.shown;
  EXPECT_EQ(late.err, "the controller is starting again\n");
}

TEST(VerbsWithoutController, DoWhatNeedsNone) {
  for (const auto& words : {std::vector<const char*>{"version"}, {"--version"}})
    EXPECT_EQ(run(words).out, "tandem " TANDEM_VERSION "\nbuild " + own_build_id() + "\n");
  EXPECT_NE(run({"explain", "rollout.n"}).out.find("rollout.n: integer"), std::string::npos);
  EXPECT_EQ(exit_code(run({"explain", "rollout.m"}).code), 3);
  EXPECT_NE(run({"explain"}).out.find("async.max_staleness"), std::string::npos);
  EXPECT_NE(run({"completion", "bash"}).out.find("complete -o"), std::string::npos);
  EXPECT_TRUE(run({"completion", "zsh"}).out.starts_with("#compdef tandem\n"));
}

}  // namespace
}  // namespace tandem::cli
