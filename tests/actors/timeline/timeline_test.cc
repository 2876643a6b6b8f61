// A small journal's whole trace, single events, and over random runs what always holds: TL-1 to
// TL-5.
#include "actors/timeline/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/base/file.h"
#include "tests/actors/timeline/made_run.h"
#include "tests/actors/timeline/traced.h"
#include "tests/seeds.h"

namespace tandem::timeline {
namespace {

using exchange::JournalEntry;
using scheduler::LeaseId;

const ActorId kRollout{"a-1/rollout/0", Incarnation{3}}, kReward{"a-1/reward/0", Incarnation{2}},
    kLearner{"a-1/learner/0", Incarnation{1}};

// Entries that are `ms` after the run's first.
class Story {
 public:
  template <class Event>
  Story& at(std::int64_t ms, Event event) {
    entries_.push_back({1'700'000'000'000 + ms, std::move(event)});
    return *this;
  }
  const std::vector<JournalEntry>& entries() const { return entries_; }

 private:
  std::vector<JournalEntry> entries_;
};

exchange::GroupGenerated generated(std::uint64_t group, std::uint32_t lease) {
  return {kRollout,
          {.group = GroupId{group},
           .attempt = lease,
           .trajectories = {{PolicyVersion{0}, PolicyVersion{0}, 7, {}}}}};
}

// One group is generated, scored and trained.
Story one_step() {
  Story story;
  story.at(0, exchange::RunBegan{.budget = {}, .epoch = Epoch{4}})
      .at(0, exchange::LearnerCameUp{kLearner, std::nullopt, {}})
      .at(0, exchange::WorkerCameUp{messages::Role::kRollout, kRollout, 8})
      .at(10, exchange::StageEntered{exchange::RunStage::kRunning, "training"})
      .at(10, exchange::GroupAdmitted{GroupId{1}, 0, std::nullopt})
      .at(20, exchange::RolloutLeased{GroupId{1}, LeaseId{1}, kRollout, PolicyVersion{0}})
      .at(50, generated(1, 1))
      .at(51, exchange::RewardLeased{GroupId{1}, LeaseId{2}, kReward})
      .at(60, exchange::GroupScored{.group = GroupId{1}, .lease = LeaseId{2}, .rewards = {1}})
      .at(61, exchange::BatchFormed{StepId{0}, {GroupId{1}}})
      .at(61, exchange::LearnerAsked{exchange::LearnerTask::kTrain, StepId{0}})
      .at(90,
          exchange::StepTrained{.step = StepId{0},
                                .learner = Incarnation{1},
                                .groups = {GroupId{1}},
                                .publication = messages::Publication{.version = PolicyVersion{1}}})
      .at(92, exchange::VersionInstalled{kRollout, PolicyVersion{1}})
      .at(95, exchange::RunEnded{"all steps are trained"});
  return story;
}

std::string text_of(const Traced& traced, bool metadata) {
  std::string text;
  for (const TraceEvent& event : traced.events) {
    if ((event.phase == TracePhase::kMetadata) != metadata) continue;
    append_json(event, text);
    text += "\n";
  }
  return text;
}

const TraceEvent* find(const Traced& traced, const std::string& name) {
  const auto at = std::ranges::find(traced.events, name, &TraceEvent::name);
  return at == traced.events.end() ? nullptr : &*at;
}
std::string argument(const TraceEvent& event, const std::string& key) {
  for (const TraceArgument& one : event.arguments) {
    if (one.key != key) continue;
    if (const auto* text = std::get_if<std::string>(&one.value)) return *text;
    if (const auto* number = std::get_if<std::int64_t>(&one.value)) return std::to_string(*number);
    return std::to_string(std::get<double>(one.value));
  }
  return "none";
}

TEST(TimelineTest, ASmallRunHasThisTrace) {
  const auto traced = trace_of(one_step().entries(), {.figures = [](std::int64_t step) {
                                 EXPECT_EQ(step, 1);
                                 return StepFigures{.publish_s = 0.004, .install_pause_s = 0.001};
                               }});
  ASSERT_TRUE(traced) << traced.error().message;
  const auto golden = read_file(TANDEM_SOURCE_DIR "/tests/golden/timeline/small.jsonl");
  ASSERT_TRUE(golden) << golden.error().message;
  EXPECT_EQ(text_of(*traced, false), *golden);
}

TEST(TimelineTest, NamesProcessesAndThreads) {
  const auto traced = trace_of(one_step().entries());
  ASSERT_TRUE(traced);
  std::set<std::string> names;
  for (const TraceEvent& event : traced->events)
    if (event.name == "process_name" || event.name == "thread_name")
      names.insert(argument(event, "name"));
  EXPECT_EQ(names, (std::set<std::string>{"run", "learner pool", "rollout pool", "reward pool",
                                          "groups", "events", "phases", "learner/0", "rollout/0",
                                          "rollout/0, lane 1", "reward/0, lane 1"}));
}

TEST(TimelineTest, AnInstallLastsForTheMeanPauseOfTheNextStep) {
  Story story = one_step();
  story.at(120, exchange::StepTrained{.step = StepId{1}, .groups = {GroupId{2}}});
  const auto traced = trace_of(story.entries(), {.figures = [](std::int64_t step) {
                                 return StepFigures{.install_pause_s = step == 2 ? 0.001 : 0.5};
                               }});
  ASSERT_TRUE(traced);
  const TraceEvent* install = find(*traced, "installs v1");
  ASSERT_NE(install, nullptr);
  EXPECT_EQ(install->phase, TracePhase::kSpan);
  EXPECT_EQ(install->at, 91'000);
  EXPECT_EQ(install->lasts, 1'000);
}

// Each rollout's own, and not the mean of the step.
TEST(TimelineTest, AnInstallLastsForThePauseThatItsRolloutMeasured) {
  const ActorId other{"job-1/rollout/1", Incarnation{5}};
  Story story = one_step();
  story.at(200, exchange::InstallPaused{kRollout, PolicyVersion{2}, 0.0405})
      .at(200, exchange::VersionInstalled{kRollout, PolicyVersion{2}})
      .at(210, exchange::InstallPaused{other, PolicyVersion{2}, 0.0004})
      .at(210, exchange::VersionInstalled{other, PolicyVersion{2}})
      .at(215, exchange::InstallPaused{kRollout, PolicyVersion{3}, 0.001})
      .at(215, exchange::VersionInstalled{kRollout, PolicyVersion{3}})
      .at(220, exchange::StepTrained{.step = StepId{1}, .groups = {GroupId{2}}});
  const auto traced =
      trace_of(story.entries(),
               {.figures = [](std::int64_t) { return StepFigures{.install_pause_s = 0.02}; }});
  ASSERT_TRUE(traced);
  std::vector<const TraceEvent*> installs;
  for (const TraceEvent& event : traced->events)
    if (event.name == "installs v2") installs.push_back(&event);
  ASSERT_EQ(installs.size(), 2u);
  EXPECT_EQ(installs[0]->at, 159'500);
  EXPECT_EQ(installs[0]->lasts, 40'500);
  EXPECT_EQ(argument(*installs[0], "pause_s"), std::to_string(0.0405));
  EXPECT_EQ(argument(*installs[0], "mean_pause_s"), "none");
  EXPECT_EQ(installs[1]->at, 209'600);
  EXPECT_EQ(installs[1]->lasts, 400);
  EXPECT_LT(find(*traced, "installs v1"), find(*traced, "installs v2")) << "TL-2";
}

TEST(TimelineTest, ALeaseThatIsOpenAtTheEndIsMarked) {
  Story story;
  story.at(0, exchange::RunBegan{})
      .at(1, exchange::GroupAdmitted{GroupId{1}, 0, std::nullopt})
      .at(2, exchange::RolloutLeased{GroupId{1}, LeaseId{1}, kRollout, PolicyVersion{0}})
      .at(30, exchange::WorkerDrains{kRollout});
  const auto traced = trace_of(story.entries());
  ASSERT_TRUE(traced);
  const TraceEvent* lease = find(*traced, "group 1");
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->lasts, 28'000);
  EXPECT_EQ(argument(*lease, "ended"), "open");
}

TEST(TimelineTest, ALeaseThatTheNextControllerAdoptsGoesOn) {
  Story story;
  story.at(0, exchange::RunBegan{})
      .at(2, exchange::RolloutLeased{GroupId{1}, LeaseId{1}, kRollout, PolicyVersion{0}})
      .at(30, exchange::ExchangeFollowed{Epoch{9}})
      .at(31, exchange::LeaseAdopted{GroupId{1}, LeaseId{1}, kRollout})
      .at(40, generated(1, 1));
  const auto traced = trace_of(story.entries());
  ASSERT_TRUE(traced);
  EXPECT_EQ(find(*traced, "group 1")->lasts, 38'000);
  EXPECT_EQ(argument(*find(*traced, "the controller restarted"), "epoch"), "9");
}

TEST(TimelineTest, AnAttemptThatDiedEndsWithItsLastEvent) {
  Story story;
  story.at(0, exchange::RunBegan{})
      .at(2, exchange::RolloutLeased{GroupId{1}, LeaseId{1}, kRollout, PolicyVersion{0}})
      .at(10, exchange::WorkerDrains{kRollout})
      .at(5000, exchange::RunBegan{})
      .at(5000, exchange::RunResumed{.checkpoint = StepId{4}, .groups = {{GroupId{1}, 0, {}, {}}}})
      .at(5010, exchange::RolloutLeased{GroupId{1}, LeaseId{2}, kRollout, PolicyVersion{4}});
  const auto traced = trace_of(story.entries());
  ASSERT_TRUE(traced);
  EXPECT_EQ(find(*traced, "group 1")->lasts, 8'000);
  EXPECT_EQ(argument(*find(*traced, "group 1"), "ended"), "the attempt ended");
  EXPECT_NE(find(*traced, "resumed from step 4"), nullptr);
}

TEST(TimelineTest, AWaitIsForWhatComesLast) {
  const auto step = [](Story& story, std::int64_t from, std::int64_t number) {
    story.at(from, exchange::LearnerAsked{exchange::LearnerTask::kTrain, StepId{number}})
        .at(from + 10, exchange::StepTrained{.step = StepId{number}, .groups = {GroupId{99}}});
  };
  Story story;
  story.at(0, exchange::RunBegan{});
  step(story, 0, 0);
  story.at(20, generated(2, 1))
      .at(30, exchange::GroupScored{.group = GroupId{2}, .lease = LeaseId{1}, .rewards = {1}})
      .at(30, exchange::BatchFormed{StepId{1}, {GroupId{2}}});
  step(story, 30, 1);
  story.at(41, exchange::EvaluationBegan{messages::EvaluationId{1}, {}, PolicyVersion{2}})
      .at(60, exchange::EvaluationEnded{messages::EvaluationId{1}, {}, PolicyVersion{2}, {}, {}});
  step(story, 60, 2);
  const auto traced = trace_of(story.entries());
  ASSERT_TRUE(traced);
  const TraceEvent* samples = find(*traced, "waits for samples");
  ASSERT_NE(samples, nullptr);
  EXPECT_EQ(samples->lasts, 20'000);
  EXPECT_EQ(argument(*samples, "last_group"), "2");
  const TraceEvent* evaluation = find(*traced, "waits for an evaluation");
  ASSERT_NE(evaluation, nullptr);
  EXPECT_EQ(evaluation->lasts, 20'000);
}

TEST(TimelineTest, StepsThatAreLostHaveNoFigures) {
  Story story;
  const auto commit = [&story](std::int64_t at, std::int64_t step) {
    story.at(at, exchange::StepTrained{.step = StepId{step}, .groups = {GroupId{1}}});
  };
  story.at(0, exchange::RunBegan{});
  for (std::int64_t step = 0; step < 4; ++step) commit(10 + step, step);
  story.at(100, exchange::RunBegan{}).at(100, exchange::RunResumed{.checkpoint = StepId{2}});
  for (std::int64_t step = 2; step < 5; ++step) commit(110 + step, step);
  std::vector<std::int64_t> asked;
  ASSERT_TRUE(trace_of(story.entries(), {.figures = [&asked](std::int64_t step) {
                         asked.push_back(step);
                         return StepFigures{};
                       }}));
  EXPECT_EQ(asked, (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
}

std::vector<JournalEntry> random_journal(std::uint64_t seed, int turns) {
  MadeRun run(seed);
  std::vector<JournalEntry> entries;
  for (int i = 0; i < turns; ++i) std::ranges::move(run.next(), std::back_inserter(entries));
  return entries;
}

TEST(TimelineTest, RandomRunsAreOrderly_TL1_TL2_TL3) {
  for_seeds(60, [](std::uint64_t seed) {
    const std::vector<JournalEntry> entries = random_journal(seed, 60);
    const auto traced =
        trace_of(entries, {.figures = [seed](std::int64_t step) {
                   return StepFigures{.publish_s = 0.001 * static_cast<double>(seed % 40),
                                      .install_pause_s = 0.002 * static_cast<double>(step % 30)};
                 }});
    ASSERT_TRUE(traced) << traced.error().message;
    ASSERT_NO_FATAL_FAILURE(expect_orderly(*traced));
  });
}

TEST(TimelineTest, PartsOfRandomRunsAreOrderly_TL1_TL2_TL3) {
  for_seeds(60, [](std::uint64_t seed) {
    Rng rng(seed);
    const std::vector<JournalEntry> entries = random_journal(seed, 60);
    TracedBy by;
    const auto bound = [&rng](std::uint64_t below) {
      const auto number = static_cast<std::int64_t>(1 + rng.below(below));
      return rng.below(2) == 0 ? TraceBound{number, std::nullopt}
                               : TraceBound{std::nullopt, static_cast<double>(number) / 10};
    };
    by.from = bound(20);
    by.to = bound(40);
    const auto traced = trace_of(entries, by);
    if (!traced) {
      EXPECT_EQ(traced.error().code, ErrorCode::kInvalid);
      return;
    }
    ASSERT_NO_FATAL_FAILURE(expect_orderly(*traced));
  });
}

TEST(TimelineTest, AJournalWithoutItsFrontIsOrderly) {
  for_seeds(40, [](std::uint64_t seed) {
    std::vector<JournalEntry> entries = random_journal(seed, 40);
    Rng rng(seed);
    entries.erase(entries.begin(),
                  entries.begin() + static_cast<std::ptrdiff_t>(rng.below(entries.size() - 1)));
    const auto traced = trace_of(entries);
    ASSERT_TRUE(traced);
    ASSERT_NO_FATAL_FAILURE(expect_orderly(*traced));
  });
}

TEST(TimelineTest, ATraceHasTheJournalsTrainingTime_TL5) {
  for_seeds(60, [](std::uint64_t seed) {
    MadeRun run(seed);
    std::vector<JournalEntry> entries;
    for (int i = 0; i < 60; ++i) std::ranges::move(run.next(), std::back_inserter(entries));
    const auto traced = trace_of(entries);
    ASSERT_TRUE(traced);
    TraceTime trained = 0;
    for (const TraceEvent& event : traced->events)
      if (std::string_view(event.category) == "train" && argument(event, "ended") == "none")
        trained += event.lasts;
    EXPECT_EQ(trained, from_ms(run.trained_ms()));
  });
}

TEST(TimelineTest, AFullTraceSaysWhereItEnds) {
  const std::vector<JournalEntry> entries = random_journal(3, 100);
  const auto whole = trace_of(entries);
  ASSERT_TRUE(whole);
  const auto part = trace_of(entries, {.events_max = whole->events.size() / 2});
  ASSERT_TRUE(part);
  EXPECT_FALSE(whole->is_full);
  EXPECT_TRUE(part->is_full);
  EXPECT_GT(part->last_step, 0);
  EXPECT_LT(part->events.size(), whole->events.size() * 3 / 4);
  expect_orderly(*part);
}

}  // namespace
}  // namespace tandem::timeline
