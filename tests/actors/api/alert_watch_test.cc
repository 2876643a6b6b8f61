#include "actors/api/alert_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::api {
namespace {

using namespace std::chrono_literals;

constexpr Duration kEvery = 10s;

const AlertRule& rule_of(std::string_view name) {
  for (const AlertRule& rule : alert_rules())
    if (rule.name == name) return rule;
  ADD_FAILURE() << "there is no " << name;
  return alert_rules().front();
}

MetricSample of_job(const char* family, double value, const std::string& job = "j-1") {
  return {.family = family, .labels = "tandem_job=\"" + job + "\"", .value = value};
}

// A watch for one alert, and the time of its looks.
struct Watched {
  explicit Watched(std::string_view name = "TandemTrainerIdle") : rules{rule_of(name)} {}

  const std::vector<AlertRule> rules;
  AlertWatch watch{rules};
  Time now{1};
  // Looks every ten seconds for so long; returns what was told.
  std::vector<AlertNews> look(const std::vector<MetricSample>& samples, Duration lasts = kEvery) {
    std::vector<AlertNews> told;
    for (const Time end = now + lasts; now < end; now = now + kEvery)
      for (AlertNews& news : watch.look(samples, now)) told.push_back(std::move(news));
    return told;
  }
};

std::vector<MetricSample> idle(double fraction, double step = 100) {
  return {of_job("tandem_trainer_idle_fraction_recent", fraction), of_job("tandem_step", step)};
}

TEST(AlertWatch, AnAlertFiresAfterItsTimeAndIsOverAtOnce) {
  Watched watched;
  EXPECT_TRUE(watched.look(idle(0.31), 5min).empty()) << "pending";
  EXPECT_TRUE(watched.watch.firing().empty());
  const auto begun = watched.look(idle(0.31), 1h);
  ASSERT_EQ(begun.size(), 1u) << "once";
  EXPECT_TRUE(begun[0].fires);
  EXPECT_EQ(begun[0].alert.rule->name, std::string("TandemTrainerIdle"));
  EXPECT_EQ(summary(begun[0].alert), "The learner of j-1 waited for samples 31 % of the time.");
  EXPECT_EQ(advice(begun[0].alert).rfind("tandem why j-1; ", 0), 0u);
  ASSERT_EQ(watched.watch.firing().size(), 1u);
  EXPECT_EQ(watched.watch.firing()[0].since, begun[0].alert.since);
  const auto ended = watched.look(idle(0.25), 1h);  // not above
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].fires);
  EXPECT_TRUE(watched.watch.firing().empty());
}

TEST(AlertWatch, AMomentWithoutTheConditionBeginsAnew) {  // AW-2
  Watched watched;
  EXPECT_TRUE(watched.look(idle(0.5), 290s).empty());
  EXPECT_TRUE(watched.look(idle(0.1)).empty());
  EXPECT_TRUE(watched.look(idle(0.5), 5min).empty());
  EXPECT_EQ(watched.look(idle(0.5)).size(), 1u);
}

TEST(AlertWatch, AJobsFirstStepsRaiseNone) {  // AR-2
  Watched watched;
  EXPECT_TRUE(watched.look(idle(0.9, 9), 1h).empty());
  EXPECT_TRUE(watched.look({of_job("tandem_trainer_idle_fraction_recent", 0.9)}, 1h).empty());
  EXPECT_EQ(watched.look(idle(0.9, 10), 1h).size(), 1u);
}

TEST(AlertWatch, ALearnerThatTakesTurnsMayWait) {
  Watched watched;
  auto samples = idle(0.6);
  samples.push_back(of_job("tandem_staleness_bound", 0));
  EXPECT_TRUE(watched.look(samples, 1h).empty());
  samples.back().value = 1;
  EXPECT_EQ(watched.look(samples, 1h).size(), 1u);
}

TEST(AlertWatch, WhatIsUnheardOfStands) {  // AW-4
  Watched watched;
  watched.look(idle(0.5), 1h);
  const std::vector<Alert> before = watched.watch.firing();
  ASSERT_EQ(before.size(), 1u);
  EXPECT_TRUE(watched.watch.look({}, watched.now, {"j-1"}).empty());
  watched.now = watched.now + kEvery;
  EXPECT_TRUE(watched.look(idle(0.5), 1h).empty()) << "it did not begin anew";
  ASSERT_EQ(watched.watch.firing().size(), 1u);
  EXPECT_EQ(watched.watch.firing()[0].since, before[0].since);
  EXPECT_EQ(watched.watch.look({}, watched.now, {"j-2"}).size(), 1u) << "another job is unheard of";
}

TEST(AlertWatch, WhatTheControllerTellsOfAnUnheardJobEnds) {  // AW-4
  Watched watched("TandemCrashLoop");
  const auto loops = [](double value) {
    return std::vector{of_job("tandem_actor_crash_loop", value)};
  };
  watched.look(loops(1), 1h);
  EXPECT_EQ(watched.watch.look(loops(0), watched.now, {"j-1"}).size(), 1u);
}

TEST(AlertWatch, WhatIsGoneIsOver) {
  Watched watched;
  watched.look(idle(0.5), 1h);
  const auto ended = watched.look({}, 1h);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].fires);
  watched.look({}, 3h);
  EXPECT_EQ(watched.watch.series_remembered(), 0u) << "nothing is kept of a job that is over";
}

TEST(AlertWatch, EachSeriesHasAnAlertOfItsOwn) {
  Watched watched("TandemCrashLoop");
  std::vector<MetricSample> samples;
  for (const char* const actor : {"j-1/rollout/0", "j-1/rollout/1", "j-1/rollout/2"})
    samples.push_back({"tandem_actor_crash_loop",
                       std::string("tandem_job=\"j-1\",actor=\"") + actor + "\",role=\"rollout\"",
                       actor == std::string("j-1/rollout/1") ? 0.0 : 1.0});
  EXPECT_EQ(watched.look(samples, 3min).size(), 2u);
  EXPECT_EQ(watched.watch.firing()[1].subject.actor, "j-1/rollout/2");
}

TEST(AlertWatch, ALabelChoosesTheSeries) {
  Watched watched("TandemNodeLost");
  EXPECT_TRUE(watched.look({{"tandem_nodes", "state=\"Ready\"", 3}}, 1h).empty());
  EXPECT_EQ(
      watched
          .look({{"tandem_nodes", "state=\"Ready\"", 3}, {"tandem_nodes", "state=\"Lost\"", 1}}, 1h)
          .size(),
      1u);
}

TEST(AlertWatch, AQueueThatIsFullOnAverageIsFull) {
  Watched watched("TandemQueueFull");
  std::size_t told = 0;
  for (int i = 0; i < 200; ++i)  // it swings with each step
    told += watched
                .look({of_job("tandem_queue_depth", i % 2 ? 128 : 100),
                       of_job("tandem_queue_limit", 128), of_job("tandem_step", 100 + i)})
                .size();
  EXPECT_EQ(told, 1u);
  for (int i = 0; i < 200; ++i)
    told += watched
                .look({of_job("tandem_queue_depth", i % 2 ? 128 : 20),
                       of_job("tandem_queue_limit", 128), of_job("tandem_step", 300 + i)})
                .size();
  EXPECT_EQ(told, 2u) << "over, although it is full every other time";
}

TEST(AlertWatch, CostIsComparedWithTheHourBefore) {
  Watched watched("TandemCostDrift");
  const auto cost = [](double value) {
    return std::vector{of_job("tandem_cost_per_step", value), of_job("tandem_step", 500)};
  };
  std::size_t drifts = 0;
  const auto look = [&](double value, Duration lasts) {
    drifts += watched.look(cost(value), lasts).size();
  };
  look(9, 1h);  // there is no hour before yet
  look(1, 3h);
  EXPECT_EQ(drifts, 0u);
  look(1.2, 1h);
  EXPECT_EQ(drifts, 0u) << "less than a quarter more";
  look(1.4, 20min);
  EXPECT_EQ(drifts, 1u);
  look(1.4, 3h);
  EXPECT_EQ(drifts, 2u) << "over: that is what it costs now";
}

TEST(AlertWatch, AHourThatWasNotSeenIsNoHourBefore) {
  Watched watched("TandemPrefixHitsDropped");
  const auto look = [&](double ratio, Duration lasts) {
    return watched
        .look({of_job("tandem_prefix_cache_hit_ratio", ratio), of_job("tandem_step", 100)}, lasts)
        .size();
  };
  EXPECT_EQ(look(0.8, 20min), 0u);
  EXPECT_EQ(look(0.3, 40min), 0u) << "there are some minutes to compare with, no hour";
  EXPECT_EQ(look(0.8, 3h), 0u);
  EXPECT_EQ(look(0.3, 15min), 1u);
}

// A job that has stood still for so long, at a step that takes `step_s`.
std::vector<MetricSample> still(Duration since, std::optional<double> step_s, double left = 100) {
  std::vector<MetricSample> samples{of_job("tandem_seconds_since_progress", seconds(since)),
                                    of_job("tandem_step", 60), of_job("tandem_steps_left", left)};
  if (step_s) samples.push_back(of_job("tandem_seconds_per_step", *step_s));
  return samples;
}
// How long such a job stands still until the alert fires; nullopt: not within twelve hours.
std::optional<Duration> silent_for(std::optional<double> step_s, double left = 100) {
  Watched watched("TandemNoProgress");
  for (Duration since{0}; since < 12h; since += kEvery)
    if (!watched.look(still(since, step_s, left)).empty()) return since;
  return std::nullopt;
}

TEST(AlertWatch, ProgressIsMeasuredByTheJobsOwnSteps) {
  EXPECT_EQ(silent_for(20), Duration(15min + kEvery)) << "ten minutes at least, for five";
  EXPECT_EQ(silent_for(200), silent_for(20)) << "three steps are no longer than that";
  EXPECT_EQ(silent_for(2400), Duration(2h + 5min)) << "three steps of forty minutes";
  EXPECT_EQ(silent_for(std::nullopt), silent_for(20)) << "how long its steps take is not known";
}

TEST(AlertWatch, NoStepFollowsTheLast) { EXPECT_EQ(silent_for(20, 0), std::nullopt); }

TEST(AlertWatch, AStepThatIsCommittedIsProgress) {
  Watched watched("TandemNoProgress");
  ASSERT_EQ(watched.look(still(20min, 20), 1h).size(), 1u);
  const auto ended = watched.look(still(1s, 20));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].fires);
  EXPECT_EQ(summary(ended[0].alert),
            "j-1 has made no progress for 20m 0s, longer than three of its steps take.");
}

TEST(AlertWatch, OneSlowWriteIsNoSlowJournal) {
  Watched watched("TandemJournalSlow");
  const auto told = [&](double write_s, Duration lasts) {
    return watched.look(
        {{"tandem_journal_write_seconds", "tandem_job=\"\",journal=\"controller\"", write_s},
         {"tandem_journal_write_seconds", "tandem_job=\"j-1\",journal=\"j-1\"", 0.01}},
        lasts);
  };
  EXPECT_TRUE(told(2, 2min).empty()) << "it is the slowest of two minutes at most";
  EXPECT_TRUE(told(0.01, 1h).empty());
  const auto fires = told(2, 6min);
  ASSERT_EQ(fires.size(), 1u);
  EXPECT_EQ(fires[0].alert.subject.job, "");
  EXPECT_EQ(summary(fires[0].alert),
            "A write of the journal of controller took 2s: all that it records waits for this "
            "disk.");
  EXPECT_EQ(told(0.4, kEvery).size(), 1u) << "over";
}

TEST(AlertWatch, ADiskIsNearlyFullBelowATwentiethAndTenGigabytes) {
  Watched watched("TandemDiskNearlyFull");
  const auto told = [&](double size_gb, double free_gb) {
    const std::string labels = "directory=\"/home/u/.tandem\"";
    return watched.look({{"tandem_disk_size_bytes", labels, size_gb * 1e9},
                         {"tandem_disk_free_bytes", labels, free_gb * 1e9}},
                        2min);
  };
  EXPECT_TRUE(told(10'000, 300).empty()) << "a large disk";
  EXPECT_TRUE(told(20, 1.1).empty()) << "a small one";
  const auto fires = told(100, 4.5);
  ASSERT_EQ(fires.size(), 1u);
  EXPECT_EQ(fires[0].alert.subject.directory, "/home/u/.tandem");
  EXPECT_EQ(summary(fires[0].alert),
            "The disk of /home/u/.tandem has 4.191 GiB left, less than a twentieth: the jobs on "
            "it stand still once it is full.");
  EXPECT_EQ(told(100, 50).size(), 1u) << "over";
}

TEST(AlertWatch, EnginesThatComputeOtherwiseThanTheLearnerAreTold) {
  Watched watched("TandemLogprobsDiffer");
  const auto told = [&](double nats, Duration later) {
    return watched.look({of_job("tandem_logprob_diff_mean", nats), of_job("tandem_step", 50)},
                        later);
  };
  EXPECT_TRUE(told(0.02, 1min).empty());
  for (int i = 0; i < 15; ++i) EXPECT_TRUE(told(0.02, 1min).empty());
  int fired = 0;
  for (int i = 0; i < 20; ++i)
    for (const auto& change : told(0.5, 1min)) {
      ++fired;
      EXPECT_EQ(summary(change.alert).rfind("The log-probabilities of ", 0), 0u);
    }
  EXPECT_EQ(fired, 1);
}

TEST(AlertWatch, UnknownValuesRaiseNothing) {
  Watched watched;
  EXPECT_TRUE(watched.look(idle(std::nan("")), 1h).empty());
  Watched aged("TandemSampleTooOld");
  EXPECT_TRUE(aged.look({of_job("tandem_oldest_sample_age_steps", 9)}, 1h).empty())
      << "its bound is not known";
}

TEST(AlertWatch, RemembersNoMoreThanItMay) {  // AW-3
  AlertWatch watch;
  std::vector<MetricSample> samples;
  for (std::size_t i = 0; i < kAlertsKept + 500; ++i)
    samples.push_back(of_job("tandem_disk_waits", 1, "j-" + std::to_string(i)));
  EXPECT_TRUE(watch.look(samples, Time{1}).empty());
  EXPECT_EQ(watch.series_remembered(), kAlertsKept);
  EXPECT_EQ(watch.look(samples, Time{1} + 2min).size(), kAlertsKept);
}

// Against a model that keeps every look.
TEST(AlertWatch, FiresOnlyWhatHeldAllTheTime) {  // AW-1, AW-2
  for_seeds(100, [](std::uint64_t seed) {
    Rng rng(seed);
    const AlertRule& rule = rule_of("TandemStepsSkipped");
    AlertWatch watch;
    std::optional<Time> held_since;
    bool fires = false;
    Time now{1};
    for (int i = 0; i < 500; ++i) {
      now = now + Duration(rng.below(static_cast<std::uint64_t>(Duration(30s).count())) + 1);
      const bool there = rng.below(20) > 0;
      const double value = rng.below(8) > 0 ? 3 : 2;
      const bool holds = there && value >= rule.threshold;
      if (!holds)
        held_since.reset();
      else if (!held_since)
        held_since = now;
      const bool should = held_since && now - *held_since >= rule.lasts;
      const auto news = watch.look(there ? std::vector{of_job("tandem_steps_skipped_in_row", value)}
                                         : std::vector<MetricSample>{},
                                   now);
      ASSERT_EQ(news.size(), should != fires ? 1u : 0u);
      if (!news.empty()) {
        ASSERT_EQ(news[0].fires, should);
      }
      ASSERT_EQ(watch.firing().size(), should ? 1u : 0u);
      fires = should;
    }
  });
}

TEST(AlertWatch, ReadsLabelsAsTheyAreWritten) {
  const std::string labels = R"(tandem_job="a \"b\" \\ c\nd",actor="x",role="")";
  EXPECT_EQ(label_in(labels, "tandem_job"), "a \"b\" \\ c\nd");
  EXPECT_EQ(label_in(labels, "actor"), "x");
  EXPECT_EQ(label_in(labels, "role"), "");
  EXPECT_EQ(label_in(labels, "job"), std::nullopt);
  EXPECT_EQ(label_in("", "job"), std::nullopt);
  EXPECT_EQ(label_in("a=\"", "b"), std::nullopt);
}

}  // namespace
}  // namespace tandem::api
