// Commands of the client where no controller runs.
#include "actors/cli/client_program.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "actors/cli/api_client.h"
#include "runtime/base/file.h"
#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::cli {
namespace {

TEST(Client, WithoutAControllerItSaysHowToStartOne) {
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
  folder.write("controller.json", R"({"pid": 1, "http": "127.0.0.1:1"})");
  none = run({"get", "jobs"});
  EXPECT_EQ(exit_code(none.code), 69);
  EXPECT_NE(none.message.find("127.0.0.1:1"), std::string::npos) << none.message;
  EXPECT_EQ(run({"get", "jobs", "--address", "nonsense"}).code, ErrorCode::kInvalid);
}

TEST(Client, WithoutHomeTheListOfUsersNamesTheFolder) {
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  ASSERT_EQ(::unsetenv("TANDEM_HOME"), 0);
  ASSERT_EQ(::unsetenv("HOME"), 0);
  EXPECT_EQ(tandem_home(), std::filesystem::path(::getpwuid(::getuid())->pw_dir) / ".tandem");
  ASSERT_EQ(::setenv("HOME", home.c_str(), 1), 0);
}

TEST(Client, CompletionIsSilentWithoutAController) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  const Outcome none = run({"__complete", "jobs"});
  EXPECT_TRUE(none.ok);
  EXPECT_EQ(none.out + none.err, "");
  EXPECT_NE(run({"__complete", "sets"}).out.find("seed=\n"), std::string::npos);
}

TEST(Client, CompletionOffersActorsAndCheckpointsOfRunsWithoutAController) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  for (const char* const file : {"logs/learner.0.1.log", "logs/learner.0.2.log",
                                 "logs/rollout.0.1.log", "checkpoints/step-5/config.json",
                                 "checkpoints/step-12/config.json", "checkpoints/best/config.json"})
    folder.write("runs/past-1/" + std::string(file), "");
  folder.write("runs/.deleted/past-0/note", "");
  const std::string run_dir = folder.root() / "runs/past-1";
  const std::pair<const char*, std::string> kWords[] = {
      {"records", "past-1\n"},
      {"targets", "past-1\n"},
      {"runs", "past-1\n"},
      {"logs", "past-1\npast-1/learner/0\npast-1/rollout/0\n"},
      {"known_actors", "past-1/learner/0\npast-1/rollout/0\n"},
      {"objects", "actors/past-1/learner/0\nactors/past-1/rollout/0\nruns/past-1\n"},
      {"models", run_dir + "/checkpoints/best\n" + run_dir + "/checkpoints/step-12\n"},
      {"live", ""},
      {"jobs", ""},
      {"actors", ""}};
  for (const auto& [names, words] : kWords)
    EXPECT_EQ(run({"__complete", names}).out, words) << names;
}

TEST(Client, CompletionOffersRunsWithoutAController) {
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  folder.write("runs/tiny-1/job.yaml", "");
  folder.write("runs/.deleted/tiny-0/x", "");
  EXPECT_EQ(run({"__complete", "records"}).out, "tiny-1\n");
  EXPECT_EQ(run({"__complete", "runs/"}).out, "runs/tiny-1\n");
  EXPECT_EQ(run({"__complete", "live"}).out, "");
}

TEST(Client, NeedsNoControllerForWhatItKnowsItself) {
  EXPECT_EQ(run({"version"}).out, "tandem " TANDEM_VERSION "\n");
  EXPECT_NE(run({"explain", "rollout.n"}).out.find("rollout.n: integer"), std::string::npos);
  EXPECT_EQ(exit_code(run({"explain", "rollout.m"}).code), 3);
  EXPECT_NE(run({"completion", "bash"}).out.find("complete -o"), std::string::npos);
}

}  // namespace
}  // namespace tandem::cli
