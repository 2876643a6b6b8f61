// How the state folder and the controller's address are found.
#include "actors/cli/api_client.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/base/file.h"
#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/cli/fake_controller.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::cli {
namespace {

TEST(ApiClient, WithoutHomeTheListOfUsersNamesTheFolder) {
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  ASSERT_EQ(::unsetenv("TANDEM_HOME"), 0);
  ASSERT_EQ(::unsetenv("HOME"), 0);
  EXPECT_EQ(tandem_home(), std::filesystem::path(::getpwuid(::getuid())->pw_dir) / ".tandem");
  ASSERT_EQ(::setenv("HOME", home.c_str(), 1), 0);
}

TEST(ApiClient, TheFileOfTheControllerGivesItsAddress) {
  FakeController controller;
  const job::JobFolder folder;
  ASSERT_EQ(::setenv("TANDEM_HOME", folder.root().c_str(), 1), 0);
  const auto lock = FileLock::take(folder.root() / "controller.lock", "the state", "");
  ASSERT_TRUE(lock);
  const auto names = [&](const json& pid) {
    folder.write("controller.json", json{{"pid", pid}, {"http", controller.address()}}.dump());
  };
  names(::getpid());
  EXPECT_TRUE(run({"get", "jobs"}).ok);
  names(1);  // of a controller that died: the one that has the lock has not written its own yet
  EXPECT_NE(run({"get", "jobs"}).message.find("is starting"), std::string::npos);
  ASSERT_EQ(::setenv("TANDEM_ADDRESS", "127.0.0.1:1", 1), 0);
  EXPECT_EQ(run({"get", "jobs"}).code, ErrorCode::kUnreachable);
  ASSERT_EQ(::unsetenv("TANDEM_ADDRESS"), 0);
}

}  // namespace
}  // namespace tandem::cli
