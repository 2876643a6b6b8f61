// Lines one at a time: the same as a split of the whole text, whatever the lengths; a limit; and
// files that are no files.
#include "runtime/base/line_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "runtime/base/rng.h"

namespace tandem {
namespace {

class LineReaderTest : public testing::Test {
 protected:
  LineReaderTest() {
    std::string pattern = testing::TempDir() + "lines.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~LineReaderTest() override { std::filesystem::remove_all(folder_); }

  // All lines of `text` as the reader gives them.
  std::vector<std::string> lines_of(const std::string& text, std::size_t bytes_max) {
    EXPECT_TRUE(write_file(path_(), std::as_bytes(std::span(text))));
    auto reader = LineReader::open(path_(), bytes_max).value();
    std::vector<std::string> lines;
    for (;;) {
      const auto line = reader.next();
      EXPECT_TRUE(line);
      if (!line || !*line) break;
      lines.emplace_back(**line);
      EXPECT_EQ(reader.number(), lines.size());
    }
    EXPECT_EQ(reader.bytes_read(), text.size());
    return lines;
  }
  std::filesystem::path path_() const { return folder_ / "lines"; }

  std::filesystem::path folder_;
};

TEST_F(LineReaderTest, GivesEachLineOnceWithoutItsNewline) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(lines_of("", 10), Texts{});
  EXPECT_EQ(lines_of("a", 10), Texts{"a"});
  EXPECT_EQ(lines_of("a\n", 10), Texts{"a"});
  EXPECT_EQ(lines_of("\n\na\r\n b", 10), (Texts{"", "", "a\r", " b"}));
}

TEST_F(LineReaderTest, AFileIsAlwaysReady) {
  const std::string text = "a\nb";
  ASSERT_TRUE(write_file(path_(), std::as_bytes(std::span(text))));
  auto reader = LineReader::open(path_(), 10).value();
  for (const char* line : {"a", "b"}) {
    EXPECT_TRUE(reader.ready({}).value());
    EXPECT_EQ(**reader.next(), line);
  }
  EXPECT_TRUE(reader.ready({}).value());
}

// A pipe: a line that is half there is waited for, and one that is whole is not.
TEST_F(LineReaderTest, APipeIsReadyWhenALineIsWhole) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  OwnedFd writer(ends[1]);
  LineReader reader = LineReader::of(OwnedFd(ends[0]), "standard input", 10);
  const auto write = [&](const std::string& text) {
    ASSERT_EQ(::write(writer.get(), text.data(), text.size()), std::ssize(text));
  };
  EXPECT_FALSE(reader.ready({}).value());
  write("ab");
  EXPECT_FALSE(reader.ready(std::chrono::milliseconds(1)).value());
  write("c\nd");
  ASSERT_TRUE(reader.ready(std::chrono::seconds(60)).value());
  EXPECT_EQ(**reader.next(), "abc");
  EXPECT_FALSE(reader.ready({}).value());
  writer = OwnedFd();
  ASSERT_TRUE(reader.ready(std::chrono::seconds(60)).value()) << "the end";
  EXPECT_EQ(**reader.next(), "d");
  EXPECT_EQ(*reader.next(), std::nullopt);
  EXPECT_TRUE(reader.ready({}).value());
}

// The lengths lie around the size of a block, so that lines begin and end at its borders.
TEST_F(LineReaderTest, IsASplitOfTheText) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<std::string> lines;
    std::string text;
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t longest = rng.below(3) == 0 ? 600'000 : 100;
      lines.emplace_back(rng.below(longest), static_cast<char>('a' + i % 26));
      text += lines.back() + "\n";
    }
    EXPECT_TRUE(lines_of(text, 600'000) == lines);
  }
}

TEST_F(LineReaderTest, ALineOverTheLimitIsNamed) {
  const std::string text = "four\n12345\nfour\n";
  ASSERT_TRUE(write_file(path_(), std::as_bytes(std::span(text))));
  auto reader = LineReader::open(path_(), 4).value();
  EXPECT_EQ(reader.next().value(), "four");
  const auto error = reader.next();
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(error.error().message, "the line has more than 4 bytes");
  EXPECT_EQ(error.error().where, path_().string() + ":2");
}

// FI-1
TEST_F(LineReaderTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(::mkfifo(path_().c_str(), 0600), 0);
  EXPECT_NE(LineReader::open(path_(), 10).error().message.find("a FIFO"), std::string::npos);
  EXPECT_FALSE(LineReader::open(folder_, 10));
  EXPECT_FALSE(LineReader::open("/dev/zero", 10));
}

}  // namespace
}  // namespace tandem
