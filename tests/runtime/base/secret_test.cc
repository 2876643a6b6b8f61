#include "runtime/base/secret.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "runtime/base/file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class Secret : public testing::Test {
 protected:
  Secret() {
    std::string pattern = testing::TempDir() + "secret.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~Secret() override { fs::remove_all(directory_); }
  mode_t mode_of(const fs::path& path) const {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  }
  fs::path directory_;
};

TEST_F(Secret, IsMadeOnceAndSharedByAllWhoAskAtOnce) {
  const fs::path path = directory_ / "token";
  std::vector<std::string> seen(16);
  std::vector<std::thread> askers;
  for (std::string& one : seen) askers.emplace_back([&] { one = shared_secret(path).value(); });
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 1u);
  EXPECT_EQ(seen[0].size(), 2 * kSecretBytes);
  EXPECT_EQ(mode_of(path), 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()), 1);
}

TEST_F(Secret, ThatOthersCanReadIsRefused) {
  const fs::path path = directory_ / "token";
  ASSERT_TRUE(shared_secret(path));
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const auto read = shared_secret(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnauthorised);
  EXPECT_EQ(read.error().where, path.string());
}

TEST_F(Secret, ThatIsALinkOrEmptyOrADirectoryIsRefused) {
  const fs::path path = directory_ / "token";
  std::ofstream(directory_ / "elsewhere") << "planted\n";
  ASSERT_EQ(::chmod((directory_ / "elsewhere").c_str(), 0600), 0);
  fs::create_symlink(directory_ / "elsewhere", path);
  EXPECT_FALSE(shared_secret(path));
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_FALSE(shared_secret(path));
  fs::remove(path);
  { std::ofstream empty(path); }
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_FALSE(shared_secret(path));
}

TEST_F(Secret, IsReadFromTheFileThatWasChecked) {
  const fs::path path = directory_ / "token", other = directory_ / "other";
  std::ofstream(path) << "private\n";
  std::ofstream(other) << "open to all\n";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_EQ(::chmod(other.c_str(), 0644), 0);
  std::atomic<bool> done = false;
  std::thread swapping([&] {  // each name leads to either file in turn
    while (!done) ::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
  });
  for (int i = 0; i < 100'000; ++i) {
    const auto secret = read_secret(path);
    if (!secret || *secret == "private") continue;
    ADD_FAILURE() << "read \"" << *secret << "\"";
    break;
  }
  done = true;
  swapping.join();
}

TEST_F(Secret, ThatIsANamedPipeIsRefusedAtOnce) {
  const fs::path path = directory_ / "token";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto read = read_secret(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnauthorised);
}

TEST_F(Secret, DirectoriesAreMadePrivate) {
  const fs::path made = directory_ / "state", loose = directory_ / "loose";
  ASSERT_TRUE(make_private_directory(made));
  EXPECT_EQ(mode_of(made), 0700u);
  fs::create_directory(loose);
  ASSERT_EQ(::chmod(loose.c_str(), 0755), 0);
  ASSERT_TRUE(make_private_directory(loose));
  EXPECT_EQ(mode_of(loose), 0700u);
  { std::ofstream file(directory_ / "file"); }
  EXPECT_FALSE(make_private_directory(directory_ / "file"));
}

// RFC 4231, test case 2.
TEST(Hmac, IsRfc2104s) {
  EXPECT_EQ(hmac_hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "abcd"));
  EXPECT_FALSE(same_secret("", "a"));
}

}  // namespace
}  // namespace tandem
