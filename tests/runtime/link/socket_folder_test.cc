#include "runtime/link/socket_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <optional>

namespace tandem::runtime {
namespace {

namespace fs = std::filesystem;

class SocketFolders : public testing::Test {
 protected:
  SocketFolders() {
    std::string pattern = testing::TempDir() + "rt.XXXXXX";
    base_ = ::mkdtemp(pattern.data());
    ::setenv("XDG_RUNTIME_DIR", base_.c_str(), 1);
  }
  ~SocketFolders() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    fs::remove_all(base_);
  }
  fs::path base_;
};

TEST_F(SocketFolders, ArePrivateShortAndGoWithTheirOwner) {
  std::optional<SocketFolder> folder(SocketFolder::make().value());
  const fs::path path = folder->path();
  EXPECT_EQ(path.parent_path(), base_);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  const Endpoint first = folder->next(), second = folder->next();
  EXPECT_NE(first, second);
  EXPECT_LE(first.path.size(), kSocketPathMax);
  EXPECT_EQ(parse_endpoint(to_string(first)).value(), first);
  folder.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(SocketFolders, ABaseThatOthersMayEnterIsNotUsed) {
  ASSERT_EQ(::chmod(base_.c_str(), 0755), 0);
  const SocketFolder folder = SocketFolder::make().value();
  EXPECT_NE(folder.path().parent_path(), base_);
}

TEST_F(SocketFolders, APlaceOfItsOwnComesFirstWhereItIsPrivate) {
  const fs::path own = base_ / "home";
  ASSERT_EQ(::mkdir(own.c_str(), 0700), 0);
  EXPECT_EQ(SocketFolder::make(own).value().path().parent_path(), own);
  ASSERT_EQ(::chmod(own.c_str(), 0755), 0);
  EXPECT_EQ(SocketFolder::make(own).value().path().parent_path(), base_);
}

TEST_F(SocketFolders, ABaseThatIsTooLongIsNotUsed) {
  const fs::path deep = base_ / std::string(100, 'x');
  ASSERT_EQ(::mkdir(deep.c_str(), 0700), 0);
  ::setenv("XDG_RUNTIME_DIR", deep.c_str(), 1);
  SocketFolder folder = SocketFolder::make().value();
  EXPECT_LE(folder.next().path.size(), kSocketPathMax);
}

TEST_F(SocketFolders, WhatAKilledProcessLeftIsRemovedAndNothingElse) {
  const auto leave = [&](const char* name, const char* file) {
    const fs::path folder = base_ / name;
    EXPECT_EQ(::mkdir(folder.c_str(), 0700), 0);
    std::ofstream(folder / "lock") << "";
    if (*file) std::ofstream(folder / file) << "";
    fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::hours(1));
    return folder;
  };
  const fs::path left = leave("tandem-sock-aaaaaa", "");
  const fs::path kept = leave("tandem-sock-bbbbbb", "a-file-of-somebody");
  const fs::path other = leave("something-else", "");
  const fs::path lockless = leave("tandem-sock-cccccc", "");
  fs::remove(lockless / "lock");
  fs::last_write_time(lockless, fs::file_time_type::clock::now() - std::chrono::hours(1));
  const SocketFolder living = SocketFolder::make().value();
  fs::last_write_time(living.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  const SocketFolder next = SocketFolder::make().value();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(kept / "a-file-of-somebody"));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(lockless)) << "its owner may live";
  EXPECT_TRUE(fs::exists(living.path()));
}

}  // namespace
}  // namespace tandem::runtime
