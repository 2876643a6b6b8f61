#include "actors/runs/kept_events.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/log.h"
#include "tests/actors/runs/event_texts.h"
#include "tests/actors/runs/run_folder.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

class KeptEventsTest : public testing::Test {
 protected:
  static ClusterEvent event(std::int64_t seq, const std::string& subject) {
    return {.seq = seq,
            .time_ms = 1000 * seq,
            .kind = "job",
            .subject = subject,
            .message = std::to_string(seq),
            .level = messages::EventLevel::kWarning};
  }
  static Messages kept_in(const fs::path& run, const std::string& job) {
    const auto events = announced_events(run, job, {});
    EXPECT_TRUE(events.has_value());
    return texts(*events);
  }

  const RunFolder folder_;
};

TEST_F(KeptEventsTest, EachRunHasItsOwnAndTheNextControllerGoesOn) {
  const fs::path sums = folder_.run("sums-1"), words = folder_.run("words-1");
  {
    KeptEvents events;
    events.keep_in("sums-1", sums);
    events.keep_in("words-1", words);
    std::int64_t seq = 0;
    for (const char* subject : {"sums-1", "vm", "words-1", "sums-1/rollout/0", "sums-12", ""})
      events.append(event(++seq, subject));
  }
  EXPECT_EQ(kept_in(sums, "sums-1"), (Messages{"1", "4"}));
  EXPECT_EQ(kept_in(words, "words-1"), Messages{"3"});
  EXPECT_EQ(levels(*announced_events(words, "words-1", {})), Messages{"warning"});
  EXPECT_EQ(last_event_of(folder_.home, sums), 4);
  EXPECT_EQ(last_event_of(folder_.home, folder_.run("other-1")), 0);
  KeptEvents next;
  next.keep_in("sums-1", sums);
  next.append(event(5, "sums-1"));
  EXPECT_EQ(kept_in(sums, "sums-1"), (Messages{"1", "4", "5"}));
}

TEST_F(KeptEventsTest, ADirectoryThatDoesNotTakeThemIsTriedAgain) {
  const fs::path run = folder_.home / "runs/sums-1";
  KeptEvents events;
  events.keep_in("sums-1", run);
  events.append(event(1, "sums-1"));  // there is no such directory
  folder_.run("sums-1");
  events.append(event(2, "sums-1"));
  EXPECT_EQ(kept_in(run, "sums-1"), Messages{"2"});
}

TEST_F(KeptEventsTest, EventsThatAreLostAreSaidOnceAndCounted) {
  const ScopedLogging logging("test", LogLevel::kWarnings);
  const fs::path words = folder_.run("words-1");
  KeptEvents events;
  events.keep_in("sums-1", folder_.home / "runs/sums-1");  // which there is not
  events.keep_in("words-1", words);
  testing::internal::CaptureStderr();
  std::int64_t seq = 0;
  for (int lost = 0; lost < 3; ++lost)
    for (const char* subject : {"sums-1/rollout/0", "words-1"})  // the other run's are kept
      events.append(event(++seq, subject));
  const std::string first = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(first, '\n'), 1) << first;
  EXPECT_NE(first.find("event=journal_failed"), std::string::npos) << first;
  folder_.run("sums-1");
  testing::internal::CaptureStderr();
  for (int kept = 0; kept < 2; ++kept) events.append(event(++seq, "sums-1"));
  const std::string then = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(then, '\n'), 1) << then;
  EXPECT_NE(then.find("events_lost=3"), std::string::npos) << then;
  EXPECT_NE(then.find("sums-1"), std::string::npos) << then;
  EXPECT_EQ(kept_in(words, "words-1").size(), 3u);
}

}  // namespace
}  // namespace tandem::runs
