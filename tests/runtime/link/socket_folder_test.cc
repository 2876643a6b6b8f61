#include "runtime/link/socket_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>

namespace tandem::link {
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

// Its clients dial where they dialled before.
TEST_F(SocketFolders, TheFolderOfAProcessThatDiedIsTakenOver) {
  const fs::path died = base_ / "tandem-sock-abcdef";
  ASSERT_EQ(::mkdir(died.c_str(), 0700), 0);
  std::ofstream(died / "lock") << "";
  {
    SocketFolder taken = SocketFolder::make({}, died).value();
    EXPECT_EQ(taken.path(), died);
    EXPECT_EQ(taken.next().path, died / "s1") << "the paths begin anew";
    const SocketFolder other = SocketFolder::make({}, died).value();
    EXPECT_NE(other.path(), died) << "it is in use";
  }
  EXPECT_EQ(SocketFolder::make({}, died).value().path(), died) << "it is gone, and made again";
  ASSERT_EQ(::mkdir(died.c_str(), 0755), 0);
  EXPECT_NE(SocketFolder::make({}, died).value().path(), died) << "others may enter it";
  fs::create_directories(base_ / "somebodys");
  EXPECT_NE(SocketFolder::make({}, base_ / "somebodys").value().path(), base_ / "somebodys");
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

TEST_F(SocketFolders, WhatIsRemovedIsMadeAgainAndHeldAsBefore) {
  SocketFolder folder = SocketFolder::make().value();
  const auto kept = [&] { return folder.keep(Time{}).value(); };
  EXPECT_EQ(kept(), SocketFolder::Kept::kIntact);
  for (const fs::path& lost : {folder.path(), folder.path() / "lock", base_}) {
    fs::remove_all(lost);
    EXPECT_EQ(kept(), SocketFolder::Kept::kMadeAgain) << lost;
    EXPECT_EQ(kept(), SocketFolder::Kept::kIntact);
    EXPECT_TRUE(is_private_directory(folder.path()));
    EXPECT_TRUE(FileLock::held(folder.path() / "lock"));
  }
}

// In a folder for temporary files anybody may take the path of a folder that was removed.
TEST_F(SocketFolders, APathThatSomethingElseHasTakenIsNamedAndNotUsed) {
  SocketFolder folder = SocketFolder::make().value();
  fs::remove_all(folder.path());
  const fs::path other = base_ / "other";
  ASSERT_EQ(::mkdir(other.c_str(), 0777), 0);
  fs::create_symlink(other, folder.path());
  const auto kept = folder.keep(Time{});
  ASSERT_FALSE(kept);
  EXPECT_NE(kept.error().message.find("something else is in its place"), std::string::npos);
  EXPECT_EQ(kept.error().where, folder.path());
  EXPECT_TRUE(fs::is_empty(other));
  fs::remove(folder.path());
  EXPECT_EQ(folder.keep(Time{}).value(), SocketFolder::Kept::kMadeAgain);
}

TEST_F(SocketFolders, ACleanerOfOldFilesFindsNothingOldAndALock) {
  SocketFolder folder = SocketFolder::make().value();
  const fs::path socket = folder.next().path;
  std::ofstream(socket) << "";
  ASSERT_TRUE(folder.keep(Time{}));
  const auto is_old = [](const fs::path& path) {
    return fs::last_write_time(path) < fs::file_time_type::clock::now() - std::chrono::hours(1);
  };
  const fs::path all[] = {socket, folder.path() / "lock", folder.path()};
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::days(11);
  for (const fs::path& path : all) fs::last_write_time(path, long_ago);
  ASSERT_TRUE(folder.keep(Time{} + SocketFolder::kTouchEvery));
  for (const fs::path& path : all) EXPECT_FALSE(is_old(path)) << path;
  // systemd-tmpfiles asks in this way whether a directory is in use.
  const OwnedFd directory(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_NE(::flock(directory.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(errno, EWOULDBLOCK);
}

}  // namespace
}  // namespace tandem::link
