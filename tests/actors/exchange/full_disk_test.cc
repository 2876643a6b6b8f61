// The exchange while the disk of its run has no room: EX-1 holds, nothing is lost, and it says so.
//
// Tests actors/exchange/exchange.h, actors/exchange/waiting_writes.h.
#include <gtest/gtest.h>

#include <cerrno>

#include "actors/exchange/exchange.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/exchange/exchange_stage.h"

namespace tandem::exchange {
namespace {

using namespace std::chrono_literals;

messages::JobStatus asked_status(Stage& stage) {
  std::optional<messages::ExchangeReport> report;
  const actor::ReplyTo<messages::ExchangeReport> reply(
      [&](Result<messages::ExchangeReport> answer) { report = *std::move(answer); });
  stage.tell(actor::Ask<messages::GetExchangeReport>{{}, reply});
  return report.value().status;
}

// A disk that is full, has become read-only or refuses, and can be written again or not.
class FullDisk : public testing::TestWithParam<int> {  // the errno of its writes
 protected:
  FullDisk() {
    stage.begin();
    stage.train(1);
    stage.record.os_error = GetParam();
  }
  messages::JobStatus status() { return asked_status(stage); }
  static bool full() { return GetParam() == ENOSPC; }
  static const char* awaited() {
    return full() ? "room on the disk" : "a disk that can be written";
  }
  static const char* mended() {
    return full() ? "there is room on the disk again: goes on"
                  : "the disk can be written again: goes on";
  }
  std::size_t sent() const { return stage.to_rollout.size() + stage.to_learner.size(); }
  std::size_t told(const std::string& words) const {
    std::size_t count = 0;
    for (const auto& event : Stage::only<messages::ExchangeEvent>(stage.to_controller))
      count += event.message.find(words) != std::string::npos;
    return count;
  }
  // A rollout's answers are journalled before the reward actor hears of them.
  void generate_all() {
    const auto works = stage.assigned();
    for (; stage.works_done < works.size(); ++stage.works_done)
      stage.generate(works[stage.works_done], PolicyVersion{1});
  }

  Stage stage;
};

TEST(SlowDisk, TheSlowestWriteIsInTheStatusForTwoMinutes) {
  Stage stage;
  stage.begin();
  stage.train(1);
  EXPECT_EQ(asked_status(stage).journal_write_s, 0) << "a simulated disk takes no time";
  stage.record.on_events = [&](auto) { stage.executor.pass(800ms); };
  stage.tell(messages::ActorDown{kRollout, "killed"});
  stage.run(1s);
  EXPECT_DOUBLE_EQ(asked_status(stage).journal_write_s, 0.8);
  stage.record.on_events = nullptr;
  stage.run(50s);
  EXPECT_DOUBLE_EQ(asked_status(stage).journal_write_s, 0.8);
  stage.run(2min);
  EXPECT_EQ(asked_status(stage).journal_write_s, 0);
}

TEST_P(FullDisk, ARunStandsStillUntilThereIsRoomAndSaysSo) {
  stage.record.disk_full = true;
  stage.to_reward.clear();
  const std::size_t before = sent();
  generate_all();
  stage.run(1min);
  EXPECT_FALSE(stage.ended());
  EXPECT_TRUE(stage.to_reward.empty()) << "EX-1";
  EXPECT_EQ(sent(), before) << "EX-1";
  EXPECT_EQ(told("stands still"), 1u);
  ASSERT_TRUE(status().disk_full);
  EXPECT_NE(status().disk_full->find("cannot write the journal"), std::string::npos);
  EXPECT_EQ(status().waits.front().waits_for, awaited());

  stage.record.disk_full = false;
  stage.run(2s);
  EXPECT_EQ(told(mended()), 1u);
  EXPECT_FALSE(status().disk_full);
  EXPECT_FALSE(stage.to_reward.empty());
  stage.train(4);
  EXPECT_EQ(stage.record.replayed.hash(), stage.exchange->core().state().hash()) << "EX-1";
}

TEST_P(FullDisk, NoStepsFiguresAreLost) {
  stage.record.files_full = true;
  generate_all();
  stage.score_everything();
  stage.commit();
  const std::size_t lines = stage.record.metrics_lines.size(), before = sent();
  stage.run(1min);
  EXPECT_EQ(stage.record.metrics_lines.size(), lines);
  EXPECT_EQ(sent(), before) << "it stands still";
  EXPECT_EQ(told("stands still"), 1u);
  stage.record.files_full = false;
  stage.run(2s);
  EXPECT_EQ(told(mended()), 1u);
  stage.train(4);
  std::vector<std::int64_t> steps;
  for (const std::string& line : stage.record.metrics_lines)
    if (const auto parsed = parse_json(line); parsed.contains("critic/rewards/mean"))
      steps.push_back(parsed["step"]);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3, 4}));
}

TEST_P(FullDisk, WhoeverEndsTheJobDoesNotWaitForRoom) {
  stage.record.disk_full = true;
  generate_all();
  EXPECT_FALSE(stage.ended());
  stage.tell(messages::EndJob{messages::JobOutcome::kCancelled, "cancelled by the user"});
  ASSERT_TRUE(stage.ended());
  EXPECT_TRUE(stage.ended()->reason.starts_with("was being cancelled when: "))
      << stage.ended()->reason;
}

TEST_P(FullDisk, ARunThatHasStoodStillForADayFails) {
  stage.record.disk_full = true;
  generate_all();
  stage.run(kRoomWaitMax - 1min);
  EXPECT_FALSE(stage.ended());
  stage.run(2min);
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(stage.ended()->reason, "cannot write the journal: the disk is full");
}

INSTANTIATE_TEST_SUITE_P(Errors, FullDisk, testing::Values(ENOSPC, EROFS, EIO));

// Its files are an extra: the run goes on, and its owner is told.
TEST(FullTracker, ATrackerThatIsWrittenNoMoreIsAnEventAndInTheResult) {
  Stage stage;
  stage.begin();
  stage.record.warnings = {"wandb is written no more"};
  stage.train(1);
  EXPECT_TRUE(stage.record.warnings.empty()) << "taken with the line of the step";
  std::size_t told = 0;
  for (const auto& event : Stage::only<messages::ExchangeEvent>(stage.to_controller))
    told += event.message == "wandb is written no more" &&
            event.level == messages::EventLevel::kWarning;
  EXPECT_EQ(told, 1U);
  stage.record.warnings = {"the last line was not written"};
  stage.tell(messages::EndJob{messages::JobOutcome::kFailed, "enough"});
  ASSERT_TRUE(stage.ended());
  EXPECT_EQ(parse_json(*stage.record.result_json)["warnings"],
            nlohmann::json({"wandb is written no more"}));
  // What goes wrong at the very end comes before the news of the end.
  const auto& notices = stage.to_controller;
  const auto* last = std::get_if<messages::ExchangeEvent>(&notices[notices.size() - 2]);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->message, "the last line was not written");
}

// The learner's record of batches has its own limit. No checkpoint comes in these steps.
TEST(FullRecord, ThatBatchesGoIsToldOnceAndThatNoReplayCanBegin) {
  Stage stage;
  stage.begin();
  stage.train(1);
  const auto told = [&](const std::string& words) {
    return std::ranges::count_if(stage.to_controller, [&](const auto& notice) {
      const auto* event = std::get_if<messages::ExchangeEvent>(&notice);
      return event && event->message.find(words) != std::string::npos;
    });
  };
  stage.train(2);
  EXPECT_EQ(told("retention.replay_bytes"), 0);
  StepReport report;
  report.recorded_from = StepId{0};
  stage.train(3, report);
  EXPECT_EQ(told("the oldest batches go, and those from step 1 on are left"), 1);
  EXPECT_EQ(told("no replay can begin"), 0);
  report.recorded_from = StepId{2};
  stage.train(5, report);
  EXPECT_EQ(told("the oldest batches go"), 1);
  EXPECT_EQ(told("no replay can begin now: replay/ has the batches from step 3 on"), 1);
}

}  // namespace
}  // namespace tandem::exchange
