// Files of lines that grow, shrink and are replaced under their reader.
#include "runtime/base/line_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kAll = std::uint64_t{1} << 40;

class LineFileTest : public testing::Test {
 protected:
  LineFileTest() { fs::create_directories(folder_); }
  ~LineFileTest() override { fs::remove_all(folder_); }
  void append(const std::string& text) const {
    std::ofstream(path_, std::ios::app | std::ios::binary) << text;
  }
  void replace(const std::string& text) const {
    std::ofstream(path_, std::ios::trunc | std::ios::binary) << text;
  }
  // Returns the lines after the mark, which moves on; all lines where another file has the name.
  std::vector<std::string> lines(std::uint64_t bytes_max = kAll) {
    auto file = LineFile::open(path_);
    EXPECT_TRUE(file.has_value());
    if (!file->continues(mark_)) mark_ = {};
    std::vector<std::string> found;
    const auto next = file->read_lines(
        mark_, bytes_max, [&](std::uint64_t, std::string_view line) { found.emplace_back(line); });
    EXPECT_TRUE(next.has_value());
    mark_ = *next;
    bytes_read_ = file->bytes_read();
    return found;
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("tandem_line_file_" + std::to_string(getpid()));
  const fs::path path_ = folder_ / "lines";
  LineMark mark_;
  std::uint64_t bytes_read_ = 0;
};

using Strings = std::vector<std::string>;

TEST_F(LineFileTest, OnlyWhatIsNewIsReadAndATornLineWaits) {
  append("one\ntwo\nthr");
  EXPECT_EQ(lines(), (Strings{"one", "two"}));
  EXPECT_EQ(lines(), Strings{});
  append("ee\nfour\n");
  EXPECT_EQ(lines(), (Strings{"three", "four"}));
  for (int i = 0; i < 20'000; ++i) append(i % 1000 == 0 ? std::string(5000, 'x') + "\n" : "\n");
  (void)lines();
  append("last\n");
  EXPECT_EQ(lines(), Strings{"last"});
  EXPECT_LE(bytes_read_, 5 * kMarkBytes);
}

TEST_F(LineFileTest, AFileThatIsAnotherIsReadAnew) {
  append("one\ntwo\n");
  (void)lines();
  replace("1\n");  // shorter
  EXPECT_EQ(lines(), Strings{"1"});
  replace("2\n");  // as long, with another content
  EXPECT_EQ(lines(), Strings{"2"});
  std::ofstream(folder_ / "other") << "2\n3\n";  // another file with the same beginning
  fs::rename(folder_ / "other", path_);
  EXPECT_EQ(lines(), (Strings{"2", "3"}));
}

TEST_F(LineFileTest, ALineOverTheLimitIsLeftOut) {
  append(std::string(3 * kLineBytesMax, 'x'));
  EXPECT_EQ(lines(), Strings{});
  EXPECT_EQ(lines(), Strings{});
  append("x\nshort\n");
  EXPECT_EQ(lines(), Strings{"short"});
}

TEST_F(LineFileTest, ARequestReadsNoMoreThanItMay) {
  for (int i = 0; i < 1000; ++i) append(std::string(999, 'a') + "\n");
  std::size_t found = 0;
  int rounds = 0;
  for (; found < 1000 && rounds < 100; ++rounds) {
    found += lines(100'000).size();
    EXPECT_LE(bytes_read_, 100'000 + 4 * kMarkBytes);
  }
  EXPECT_EQ(found, 1000U);
}

TEST_F(LineFileTest, LinksPipesAndFoldersAreRefused) {
  append("secret\n");
  fs::create_symlink(path_, folder_ / "link");
  EXPECT_FALSE(LineFile::open(folder_ / "link").has_value());
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(LineFile::open(folder_ / "pipe").has_value());
  EXPECT_FALSE(LineFile::open(folder_).has_value());
  EXPECT_EQ(LineFile::open(folder_ / "none").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tandem
