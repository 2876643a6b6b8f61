#include "runtime/base/append_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace tandem {
namespace {

class AppendFiles : public testing::Test {
 protected:
  ~AppendFiles() override { std::filesystem::remove_all(path); }
  const std::filesystem::path path =
      testing::TempDir() + "append_file_test_" + std::to_string(getpid());
};

TEST_F(AppendFiles, GrowWhereTheyEnded) {
  {
    AppendFile file = AppendFile::open(path).value();
    EXPECT_EQ(file.bytes(), 0u);
    EXPECT_TRUE(file.append("one\n"));
  }
  AppendFile file = AppendFile::open(path).value();
  EXPECT_EQ(file.bytes(), 4u);
  EXPECT_TRUE(file.append("two\n"));
  EXPECT_EQ(read_file(path).value(), "one\ntwo\n");
}

// The limit of a file's size cuts a write short, as a disk does that fills up amid it.
TEST_F(AppendFiles, HaveNoPartOfAPieceThatDidNotFit) {
  AppendFile file = AppendFile::open(path).value();
  ASSERT_TRUE(file.append("one\n"));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = 6;
  setrlimit(RLIMIT_FSIZE, &tight);
  const auto cut = file.append("three\n");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().os_error, EFBIG);
  EXPECT_FALSE(waits_for_disk(cut.error()));
  EXPECT_EQ(read_file(path).value(), "one\n");
  EXPECT_TRUE(file.append("two\n"));
  EXPECT_EQ(read_file(path).value(), "one\ntwo\n");
}

TEST_F(AppendFiles, AreRegularFiles) {
  std::filesystem::create_symlink("/dev/full", path);
  EXPECT_FALSE(AppendFile::open(path));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_FALSE(AppendFile::open(path));
}

TEST(WaitsForDisk, IfItIsFullOrCannotBeWrittenForNow) {
  for (const int reason : {ENOSPC, EDQUOT}) {
    EXPECT_TRUE(waits_for_disk({.message = "", .os_error = reason})) << reason;
    EXPECT_STREQ(awaited_of_disk({.message = "", .os_error = reason}), "there is room");
  }
  for (const int reason : {EROFS, EIO, ESTALE, ETIMEDOUT}) {
    EXPECT_TRUE(waits_for_disk({.message = "", .os_error = reason})) << reason;
    EXPECT_STREQ(awaited_of_disk({.message = "", .os_error = reason}),
                 "the disk can be written again");
  }
  for (const int reason : {EMFILE, ENFILE})
    EXPECT_TRUE(waits_for_disk({.message = "", .os_error = reason})) << reason;
  for (const int reason : {0, ENOENT, EACCES, EBADF})
    EXPECT_FALSE(waits_for_disk({.message = "", .os_error = reason})) << reason;
}

}  // namespace
}  // namespace tandem
