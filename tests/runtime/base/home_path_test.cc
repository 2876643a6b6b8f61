#include "runtime/base/home_path.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

namespace tandem {
namespace {

TEST(HomePath, IsExpandedAtTheBeginningAlone) {
  ASSERT_EQ(setenv("HOME", "/home/u", 1), 0);
  for (const auto& [path, expected] :
       {std::pair("~", "/home/u"), std::pair("~/data/x.jsonl", "/home/u/data/x.jsonl"),
        std::pair("$HOME/m", "/home/u/m"), std::pair("${HOME}/m", "/home/u/m"),
        std::pair("~other/m", "~other/m"), std::pair("$HOMES/m", "$HOMES/m"),
        std::pair("a/~/b", "a/~/b"), std::pair("", ""), std::pair("data", "data")})
    EXPECT_EQ(with_home(path), expected) << path;
}

TEST(HomePath, WithoutHomeTheListOfUsersHasTheFolder) {
  ASSERT_EQ(unsetenv("HOME"), 0);
  const passwd* const user = getpwuid(getuid());
  EXPECT_EQ(home_folder(), user ? user->pw_dir : "/");
  ASSERT_EQ(setenv("HOME", "", 1), 0);
  EXPECT_EQ(home_folder(), user ? user->pw_dir : "/");
}

}  // namespace
}  // namespace tandem
