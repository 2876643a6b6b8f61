#include "actors/runs/kept_events.h"

#include <gtest/gtest.h>

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
      ASSERT_TRUE(events.append(event(++seq, subject)));
  }
  EXPECT_EQ(kept_in(sums, "sums-1"), (Messages{"1", "4"}));
  EXPECT_EQ(kept_in(words, "words-1"), Messages{"3"});
  EXPECT_EQ(levels(*announced_events(words, "words-1", {})), Messages{"warning"});
  EXPECT_EQ(last_event_of(folder_.home, sums), 4);
  EXPECT_EQ(last_event_of(folder_.home, folder_.run("other-1")), 0);
  KeptEvents next;
  next.keep_in("sums-1", sums);
  ASSERT_TRUE(next.append(event(5, "sums-1")));
  EXPECT_EQ(kept_in(sums, "sums-1"), (Messages{"1", "4", "5"}));
}

TEST_F(KeptEventsTest, ADirectoryThatDoesNotTakeThemIsTriedAgain) {
  const fs::path run = folder_.home / "runs/sums-1";
  KeptEvents events;
  events.keep_in("sums-1", run);
  EXPECT_FALSE(events.append(event(1, "sums-1"))) << "there is no such directory";
  folder_.run("sums-1");
  EXPECT_TRUE(events.append(event(2, "sums-1")));
  EXPECT_EQ(kept_in(run, "sums-1"), Messages{"2"});
}

}  // namespace
}  // namespace tandem::runs
