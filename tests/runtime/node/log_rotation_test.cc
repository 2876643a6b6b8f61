#include "runtime/node/log_rotation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "runtime/base/rng.h"
#include "runtime/node/log_files.h"

namespace tandem::node {
namespace {

namespace fs = std::filesystem;

class LogRotationTest : public testing::Test {
 protected:
  LogRotationTest() {
    std::string pattern = testing::TempDir() + "log_rotation.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    log_ = directory_ / "rollout.0.3.log";
  }
  ~LogRotationTest() override { fs::remove_all(directory_); }

  // A descriptor that appends to the log, as a process has one for its output.
  OwnedFd output() const {
    return OwnedFd(::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  }
  static void say(const OwnedFd& fd, const std::string& text) {
    ASSERT_TRUE(write_all(fd.get(), std::as_bytes(std::span(text))));
  }
  std::string text_of(int number) const {
    const auto text = read_file(rotated_path(log_, number));
    return text ? *text : "absent";
  }
  // The lines of the log without those that rotations leave.
  static std::string without_heads(const std::string& text) {
    std::string kept;
    for (std::size_t at = 0, end; at < text.size(); at = end) {
      end = std::min(text.find('\n', at), text.size() - 1) + 1;
      const std::string line = text.substr(at, end - at);
      if (line.find("event=log_rotated") == std::string::npos) kept += line;
    }
    return kept;
  }
  std::string all() const {
    return without_heads(tail_log(log_, std::size_t{1} << 30, std::size_t{1} << 30)->text);
  }

  fs::path directory_, log_;
};

TEST_F(LogRotationTest, TheOldestFileGoesAndTheNewOneSaysHowMuchIsGone) {
  OwnedFd fd = output();
  for (int i = 0; i < 4; ++i) {
    say(fd, "lines of file " + std::to_string(i) + "\n");
    auto rotated = rotate_log(log_, 3);
    ASSERT_TRUE(rotated);
    fd = std::move(rotated->fresh);
    EXPECT_EQ(rotated->dropped_bytes > 0, i >= 2) << i;
  }
  EXPECT_TRUE(text_of(1).ends_with("lines of file 3\n"));
  EXPECT_TRUE(text_of(2).ends_with("lines of file 2\n"));
  EXPECT_EQ(text_of(3), "absent");
  EXPECT_EQ(all(), "lines of file 2\nlines of file 3\n");
  // The first file had no first line of a rotation; the second one had.
  EXPECT_GT(dropped_bytes_of(log_), 2 * std::string("lines of file 0\n").size());
  EXPECT_EQ(line_time_ms(text_of(0)).has_value(), true);
  EXPECT_EQ(logs_in(directory_).size(), 1U);  // one log, not three
}

TEST_F(LogRotationTest, OneFileKeepsNothingOfBefore) {
  say(output(), "gone\n");
  ASSERT_TRUE(rotate_log(log_, 1));
  EXPECT_EQ(all(), "");
  EXPECT_EQ(dropped_bytes_of(log_), 5U);
  EXPECT_EQ(text_of(1), "absent");
}

// LR-1: threads write without a pause while the log is rotated under them.
TEST_F(LogRotationTest, NoLineIsLostOrTornWhileThreadsWrite) {
  constexpr int kThreads = 3, kLines = 8000;
  const OwnedFd fd = output();
  OwnLog own(log_, {fd.get()}, {.bytes_max = kLogBytesMin, .files_max = kLogFilesMax});
  std::vector<std::thread> writers;
  std::atomic<int> writing = kThreads;
  for (int t = 0; t < kThreads; ++t)
    writers.emplace_back([&, t] {
      for (int i = 0; i < kLines; ++i)
        say(fd, std::to_string(t) + " line " + std::to_string(i) + "\n");
      --writing;
    });
  while (writing > 0) own.look();
  for (std::thread& writer : writers) writer.join();
  std::vector<int> next(kThreads);
  std::istringstream lines(all());
  int thread = 0, number = 0;
  for (std::string word; lines >> thread >> word >> number;) {
    ASSERT_EQ(word, "line");
    ASSERT_EQ(number, next[static_cast<std::size_t>(thread)]++);
  }
  EXPECT_EQ(next, std::vector<int>(kThreads, kLines));
  EXPECT_TRUE(fs::exists(rotated_path(log_, 2)));
}

// LF-1, with torn lines, and a reader that reads more or less often than the log is rotated.
TEST_F(LogRotationTest, AReaderSeesEachByteOnceUnlessItComesTooLate) {
  int gaps = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    remove_log(log_);
    OwnedFd fd = output();
    LogReader reader(log_);
    Time now{};
    std::string written, seen = reader.more(now)->text;
    const auto read_all = [&] {
      for (LogChunk chunk; !chunk.at_end; seen += chunk.text)
        chunk = *reader.more(now = now + kLogSettles);
    };
    std::optional<std::uint64_t> held;  // the end in the log of the file that the reader has open
    bool late = false;
    for (int i = 0; i < 60; ++i) {
      const std::string text = std::string(rng.below(200), 'x') + (rng.below(3) != 0 ? "\n" : "");
      say(fd, text);
      written += text;
      if (rng.below(4) == 0) {
        fd = std::move(rotate_log(log_, 4)->fresh);
        held = held.value_or(written.size());
        written += text_of(0);  // its first line
        late = late || dropped_bytes_of(log_) > *held;
      }
      if (rng.below(4) != 0) continue;
      read_all();
      held.reset();
    }
    read_all();
    gaps += late ? 1 : 0;
    ASSERT_EQ(seen.find(" bytes are left out") != std::string::npos, late);
    ASSERT_TRUE(late || seen == written);
  }
  EXPECT_GT(gaps, 0);
  EXPECT_LT(gaps, 30);
}

TEST_F(LogRotationTest, ALogIsReadOnFromAnyPosition) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    remove_log(log_);
    OwnedFd fd = output();
    std::string written;
    for (int i = 0; i < 40; ++i) {
      const std::string text = std::string(1 + rng.below(60), 'x') + "\n";
      say(fd, text);
      written += text;
      if (rng.below(8) != 0) continue;
      fd = std::move(rotate_log(log_, 3)->fresh);
      written += text_of(0);  // its first line
    }
    const std::uint64_t gone = dropped_bytes_of(log_);
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t begin = rng.below(written.size() + 1);
      auto part = log_from(log_, begin);
      ASSERT_TRUE(part);
      std::string text = part->text;
      Time now{};
      for (LogChunk chunk; !chunk.at_end; text += chunk.text)
        chunk = *part->rest.more(now = now + kLogSettles);
      if (begin < gone) {
        const std::size_t newline = text.find('\n');
        ASSERT_EQ(log_bytes_of(text.substr(0, newline)), gone - begin) << text;
        text.erase(0, newline + 1);
      }
      ASSERT_EQ(text, written.substr(std::max(begin, gone))) << "from " << begin;
    }
    const auto tail = tail_log(log_, 5);
    ASSERT_EQ(tail->text, written.substr(tail->begin));
  }
}

TEST_F(LogRotationTest, PositionsAreText) {
  const LogPosition position{Incarnation{3}, 1024};
  EXPECT_EQ(to_string(position), "3:1024");
  EXPECT_EQ(parse_log_position("3:1024")->bytes, 1024u);
  for (const char* text : {"", "3", "3:", ":1", "3:x", "3:1 ", "-3:1"})
    EXPECT_FALSE(parse_log_position(text)) << text;
  EXPECT_EQ(log_bytes_of("one"), 4u);
  EXPECT_EQ(log_bytes_of("[12 of 13]"), 11u);
  EXPECT_EQ(log_bytes_of("[the first 70 bytes are left out; all is in /a*]"), 70u);
}

TEST_F(LogRotationTest, AReaderWaitsForWritesThatWereUnderWay) {
  const OwnedFd before = output();
  say(before, "one\n");
  LogReader reader(log_);
  EXPECT_EQ(reader.more(Time{})->text, "one\n");
  ASSERT_TRUE(rotate_log(log_, 3));
  EXPECT_FALSE(reader.more(Time{})->at_end);
  say(before, "two\n");
  EXPECT_EQ(reader.more(Time{} + kLogSettles / 2)->text, "two\n");
  say(output(), "three\n");
  std::string rest;
  for (LogChunk chunk; !chunk.at_end; rest += chunk.text)
    chunk = *reader.more(Time{} + kLogSettles);
  EXPECT_EQ(without_heads(rest), "three\n");
}

// LR-2: each crash leaves what the calls before it have made.
TEST_F(LogRotationTest, ACrashAmidARotationLosesNothing) {
  OwnedFd fd = output();
  say(fd, "one\n");
  fd = std::move(rotate_log(log_, 5)->fresh);
  say(fd, "two\n");
  // The new file was begun, and nothing else done.
  ASSERT_TRUE(write_file(log_.string() + ".new", std::as_bytes(std::span("half a li", 9))));
  EXPECT_EQ(all(), "one\ntwo\n");
  // The former files have moved, which leaves a gap.
  fs::rename(rotated_path(log_, 1), rotated_path(log_, 2));
  EXPECT_EQ(all(), "one\ntwo\n");
  // NAME.log has its second name.
  fs::create_hard_link(log_, rotated_path(log_, 1));
  EXPECT_EQ(all(), "one\ntwo\n");
  fd = std::move(rotate_log(log_, 5)->fresh);
  say(fd, "three\n");
  EXPECT_EQ(all(), "one\ntwo\nthree\n");
  EXPECT_EQ(without_heads(text_of(1)), "two\n");
  EXPECT_EQ(text_of(3), "absent");
  // The new file has the name, and the process that was to write to it is gone.
  ASSERT_TRUE(rotate_log(log_, 5));
  say(output(), "four\n");
  EXPECT_EQ(all(), "one\ntwo\nthree\nfour\n");
}

TEST_F(LogRotationTest, ALogThatCannotBeRotatedGrowsOnAndIsRotatedLater) {
  const OwnedFd fd = output();
  OwnLog own(log_, {fd.get()}, {.bytes_max = 10, .files_max = 3});
  fs::create_directory(log_.string() + ".new");  // as a full disk, nothing can be made
  testing::internal::CaptureStdout();
  for (const char* const text : {"first, too long\n", "second\n"}) {
    say(fd, text);
    own.look();
  }
  (void)testing::internal::GetCapturedStdout();
  EXPECT_EQ(text_of(0), "first, too long\nsecond\n");
  fs::remove(log_.string() + ".new");
  own.look();
  say(fd, "third\n");
  EXPECT_EQ(all(), "first, too long\nsecond\nthird\n");
  EXPECT_EQ(without_heads(text_of(0)), "third\n");
}

TEST_F(LogRotationTest, WhoeverSharesALogOrFindsItMovedGoesOnInTheNewFile) {
  const OwnedFd mine = output(), other = output();
  OwnLog own(log_, {mine.get()}, {.bytes_max = 10, .files_max = 3});
  OwnLog others(log_, {other.get()}, {.bytes_max = 10, .files_max = 3});
  say(mine, "0123456789\n");
  own.look();
  others.look();  // and does not rotate once more
  say(mine, "mine\n");
  say(other, "other\n");
  EXPECT_EQ(without_heads(text_of(0)), "mine\nother\n");
  EXPECT_EQ(text_of(2), "absent");
  fs::rename(log_, directory_ / "moved");  // by logrotate
  own.look();
  say(mine, "here\n");
  EXPECT_EQ(text_of(0), "here\n");
  fs::remove_all(directory_);  // the run is deleted
  own.look();
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(LogRotationTest, OnlyAnOutputThatIsThisLogIsTakenForIt) {
  ASSERT_EQ(::setenv(kLogVariable, log_.c_str(), 1), 0);
  say(output(), std::string(100, 'x'));
  OwnLog::inherited().look();  // the output of this test is another file
  EXPECT_EQ(std::getenv(kLogVariable), nullptr);
  EXPECT_EQ(text_of(1), "absent");
}

TEST_F(LogRotationTest, LimitsComeFromTheEnvironment) {
  const auto with = [](const char* bytes, const char* files) {
    ::setenv("TANDEM_LOG_MAX_BYTES", bytes, 1);
    ::setenv("TANDEM_LOG_MAX_FILES", files, 1);
    auto limits = LogLimits::from_environment();
    ::unsetenv("TANDEM_LOG_MAX_BYTES");
    ::unsetenv("TANDEM_LOG_MAX_FILES");
    return limits;
  };
  EXPECT_EQ(LogLimits::from_environment()->bytes_max, 64U << 20);
  EXPECT_EQ(with("5000", "7")->bytes_max, 5000U);
  EXPECT_EQ(with("5000", "7")->files_max, 7);
  EXPECT_EQ(with("0", "")->bytes_max, 0U);
  for (const auto& [bytes, files] :
       {std::pair("64MB", "3"), {"1", "3"}, {"5000", "0"}, {"5000", "101"}, {"-1", "3"}}) {
    const auto limits = with(bytes, files);
    ASSERT_FALSE(limits) << bytes << " " << files;
    EXPECT_TRUE(limits.error().where.starts_with("TANDEM_LOG_MAX_"));
  }
}

TEST_F(LogRotationTest, LogsOfOldIncarnationsGo) {
  const auto make = [&](const std::string& name) {
    EXPECT_TRUE(write_file(directory_ / name, std::span<const std::byte>{}));
  };
  for (int i = 1; i <= 9; ++i) make("rollout.0." + std::to_string(i) + ".log");
  make("rollout.0.2.log.1");
  make("rollout.1.1.log");
  EXPECT_EQ(drop_old_incarnations(directory_ / "rollout.0.9.log", 3), 6U);
  EXPECT_EQ(log_incarnations(directory_, "rollout/0"), (std::vector<Incarnation>{{7}, {8}, {9}}));
  EXPECT_FALSE(fs::exists(directory_ / "rollout.0.2.log.1"));
  EXPECT_TRUE(fs::exists(directory_ / "rollout.1.1.log"));
  EXPECT_EQ(drop_old_incarnations("/dev/null", 3), 0U);
}

}  // namespace
}  // namespace tandem::node
