// A file takes its place whole or not at all.
#include "runtime/base/replacing_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>

namespace tandem {
namespace {

namespace fs = std::filesystem;

class ReplacingFileTest : public testing::Test {
 protected:
  ReplacingFileTest() {
    std::string pattern = testing::TempDir() + "tandem_replacing_file.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ReplacingFileTest() override { fs::remove_all(folder_); }

  std::string content(const fs::path& path) {
    auto text = read_file(path);
    return text ? *text : text.error().message;
  }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(ReplacingFileTest, TheFormerContentStaysUntilTheNewOneIsWhole) {
  const fs::path path = folder_ / "trace.json";
  ASSERT_TRUE(write_file(path, std::as_bytes(std::span(std::string_view("before")))));
  auto file = ReplacingFile::create(path);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->write("aft"));
  ASSERT_TRUE(file->write("er"));
  EXPECT_EQ(content(path), "before");
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(content(path), "after");
  EXPECT_EQ(file->bytes(), 5u);
  EXPECT_EQ(files(), 1);
}

TEST_F(ReplacingFileTest, NothingIsLeftWithoutACommit) {
  {
    auto file = ReplacingFile::create(folder_ / "trace.json");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("a part"));
    const ReplacingFile moved = std::move(*file);
    EXPECT_EQ(files(), 1);
  }
  EXPECT_EQ(files(), 0);
}

TEST_F(ReplacingFileTest, FollowsALinkAndLeavesIt) {
  const fs::path target = folder_ / "target", link = folder_ / "link";
  ASSERT_TRUE(write_file(target, std::span<const std::byte>{}));
  fs::create_symlink(target, link);
  auto file = ReplacingFile::create(link);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("text"));
  ASSERT_TRUE(file->commit());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(content(target), "text");
}

TEST_F(ReplacingFileTest, RefusesWhatIsNoFile) {
  const auto folder = ReplacingFile::create(folder_);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("folder"), std::string::npos) << folder.error().message;
  const auto device = ReplacingFile::create("/dev/null");
  ASSERT_FALSE(device);
  const auto nowhere = ReplacingFile::create(folder_ / "none" / "trace.json");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().where, (folder_ / "none" / "trace.json").string());
  EXPECT_EQ(nowhere.error().message,
            "cannot create file: there is no directory " + (folder_ / "none").string());
}

}  // namespace
}  // namespace tandem
