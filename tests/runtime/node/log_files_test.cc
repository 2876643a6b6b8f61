#include "runtime/node/log_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/rng.h"

namespace tandem::node {
namespace {

class LogFilesTest : public testing::Test {
 protected:
  LogFilesTest() {
    std::string pattern = testing::TempDir() + "log_files.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~LogFilesTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path write(const std::string& name, std::string_view text) const {
    EXPECT_TRUE(write_file(directory_ / name, std::as_bytes(std::span(text))));
    return directory_ / name;
  }

  std::filesystem::path directory_;
};

TEST_F(LogFilesTest, OneFilePerIncarnation) {
  EXPECT_EQ(log_path("/runs/a-1/logs", "a-1/rollout/0", Incarnation{3}),
            "/runs/a-1/logs/a-1.rollout.0.3.log");
  const std::string actor = "a-1/rollout/1";
  for (const int incarnation : {2, 11, 3}) {
    write(log_path("", actor, Incarnation{static_cast<std::uint64_t>(incarnation)}), "");
  }
  write("a-1.rollout.1.1.7.log", "");  // a-1/rollout/1/1
  write("a-1.rollout.1.x.log", "");
  write("a-1.rollout.11.4.log", "");
  const std::vector<Incarnation> expected = {{2}, {3}, {11}};
  EXPECT_EQ(log_incarnations(directory_, actor), expected);
  EXPECT_EQ(previous_log(directory_, actor, Incarnation{11}), Incarnation{3});
  EXPECT_EQ(previous_log(directory_, actor, Incarnation{12}), Incarnation{11});
  EXPECT_EQ(previous_log(directory_, actor, Incarnation{2}), std::nullopt);
  EXPECT_TRUE(log_incarnations(directory_ / "absent", actor).empty());
}

TEST_F(LogFilesTest, TailGivesWholeLastLines) {
  const auto tail = [&](std::string_view text, std::size_t lines) {
    return tail_log(write("log", text), lines)->text;
  };
  EXPECT_EQ(tail("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(tail("a\nb\nc", 2), "b\nc");
  EXPECT_EQ(tail("a\nb\nc\n", 3), "a\nb\nc\n");
  EXPECT_EQ(tail("a\nb\nc\n", 9), "a\nb\nc\n");
  EXPECT_EQ(tail("a\n\n\n", 2), "\n\n");
  EXPECT_EQ(tail("a\nb\n", 0), "");
  EXPECT_EQ(tail("", 5), "");
}

TEST_F(LogFilesTest, TailOfALongLogBeginsAtALine) {
  std::string text;
  while (text.size() < kLogReadBytesMax * 2) text += "line " + std::to_string(text.size()) + "\n";
  auto tail = tail_log(write("log", text), text.size());
  EXPECT_TRUE(tail->text.starts_with("line "));
  EXPECT_TRUE(text.ends_with(tail->text));
  EXPECT_LE(tail->text.size(), kLogReadBytesMax);
  EXPECT_TRUE(tail->rest.more({})->at_end);
}

TEST_F(LogFilesTest, FollowingSeesEveryByteOnce) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  std::string written = "first\n";
  auto tail = tail_log(write("log", written), 10);
  std::string seen = tail->text;
  for (int i = 0; i < 50; ++i) {
    written += std::string(rng.below(kLogReadBytesMax / 16), 'x') + "\n";
    write("log", written);
    seen += tail->rest.more({})->text;
  }
  for (LogChunk chunk; !chunk.at_end; seen += chunk.text) chunk = *tail->rest.more({});
  EXPECT_EQ(seen, written);
}

TEST_F(LogFilesTest, ATruncatedLogIsReadFromItsStart) {
  auto tail = tail_log(write("log", std::string(100, 'x')), 10);
  write("log", "new\n");
  EXPECT_EQ(tail->rest.more({})->text, "new\n");
  const auto absent = LogReader(directory_ / "absent").more({});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().where, (directory_ / "absent").string());
}

TEST_F(LogFilesTest, TheListNamesActorsAndTheirIncarnations) {
  for (const char* const name : {"rollout.0.3.log", "rollout.0.1.log", "learner.0@1.2.log",
                                 "notes.log", ".4.log", "reward.0.x.log", "rollout.1.2.txt"})
    write(name, "");
  std::filesystem::create_symlink("/etc/passwd", directory_ / "rollout.7.1.log");
  const auto logs = logs_in(directory_);
  ASSERT_EQ(logs.size(), 2U);
  EXPECT_EQ(logs[0].actor, "learner/0@1");
  EXPECT_EQ(logs[1].actor, "rollout/0");
  EXPECT_EQ(logs[1].incarnations, (std::vector<Incarnation>{{1}, {3}}));
  EXPECT_FALSE(tail_log(directory_ / "rollout.7.1.log", 5).has_value());
  EXPECT_FALSE(LogReader(directory_ / "rollout.7.1.log").more({}).has_value());
}

TEST_F(LogFilesTest, LinesAreOldByTheTimesThatTheyBear) {
  const std::string old = "2026-11-22T17:00:00.000Z I rollout began\n  a line without a time\n";
  const std::string text = old + "2026-11-22T17:00:10.500Z I rollout ready\nmore\n";
  constexpr std::int64_t kReady = 1'795'366'810'500;
  EXPECT_EQ(lines_since(text, 0), 0U);
  EXPECT_EQ(lines_since(text, kReady - 10'500), 0U);
  EXPECT_EQ(lines_since(text, kReady - 10'499), old.size());
  EXPECT_EQ(lines_since(text, kReady), old.size());
  EXPECT_EQ(lines_since(text, kReady + 1), text.size());
  EXPECT_EQ(lines_since("no\ntimes\n", kReady), 0U);
  EXPECT_EQ(lines_since("", kReady), 0U);
}

TEST_F(LogFilesTest, ATailReadsNoMoreThanItIsGiven) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line " + std::to_string(i) + "\n";
  const auto tail = tail_log(write("log", text), 1000, 50);
  EXPECT_LE(tail->text.size(), 50U);
  EXPECT_EQ(text.substr(tail->left_out), tail->text);
}

}  // namespace
}  // namespace tandem::node
