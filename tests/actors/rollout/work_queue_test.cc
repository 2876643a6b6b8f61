// WQ-1 to WQ-5 on a queue alone, example by example, and then for random work under random offers
// of versions.
#include "actors/rollout/work_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "runtime/base/rng.h"
#include "tests/actors/rollout/versions.h"

namespace tandem::rollout {
namespace {

Request group(std::uint64_t id, std::int64_t due,
              std::optional<PolicyVersion> pinned = std::nullopt) {
  return request_of(messages::GroupWork{
      .group = GroupId{id}, .due = StepId{due}, .n = 2, .prompt = "p", .version = pinned});
}

Request evaluation(std::int32_t index, PolicyVersion version) {
  return request_of({.version = version}, 1, {index, "p"});
}

void install(WorkQueue& queue, PolicyVersion version) {
  queue.begin_update(version);
  ASSERT_TRUE(queue.may_finish_update());
  EXPECT_EQ(queue.finish_update(), version);
}

std::uint64_t id_of(const Request* request) {
  return request ? std::get<GroupKey>(request->key).group.value : 0;
}

TEST(WorkQueue, EarliestDueFirstThenArrivalAndEvaluationsBeforeAll) {
  WorkQueue queue(true);
  queue.push(group(1, 9));
  queue.push(group(2, 7));
  queue.push(group(3, 7));
  EXPECT_EQ(queue.next(), nullptr) << "nothing is installed";
  install(queue, kV0);
  queue.push(evaluation(0, kV0));
  EXPECT_EQ(queue.sequences(), 7);
  EXPECT_TRUE(queue.take().of_evaluation());
  EXPECT_EQ(id_of(queue.next()), 2u);
  queue.take();
  EXPECT_EQ(id_of(queue.next()), 3u);
  queue.take();
  EXPECT_EQ(id_of(queue.next()), 1u);
}

TEST(WorkQueue, FreeRequestsSurviveAnUpdate) {  // WQ-3
  WorkQueue queue(true);
  install(queue, kV0);
  queue.push(group(1, 2));
  const Request running = queue.take();
  EXPECT_EQ(queue.wants({kV1, kV0}), kV1);
  install(queue, kV1);
  EXPECT_EQ(queue.wants({kV1, kV0}), std::nullopt);
  queue.ended(running);
}

TEST(WorkQueue, WithoutPartialRolloutTheyEndFirstAndNoneStarts) {  // WQ-3
  WorkQueue queue(false);
  install(queue, kV0);
  queue.push(group(1, 2));
  queue.push(group(2, 2));
  const Request running = queue.take();
  queue.begin_update(kV1);
  EXPECT_FALSE(queue.may_finish_update());
  EXPECT_EQ(queue.next(), nullptr);
  queue.ended(running);
  EXPECT_TRUE(queue.may_finish_update());
  queue.finish_update();
  EXPECT_EQ(id_of(queue.next()), 2u);
}

TEST(WorkQueue, PinnedRequestsHoldTheirVersion) {  // WQ-1
  WorkQueue queue(true);
  install(queue, kV0);
  queue.push(evaluation(0, kV0));
  queue.push(group(1, 2));
  queue.wants({kV1, kV0});
  queue.begin_update(kV1);
  EXPECT_FALSE(queue.may_finish_update()) << "an evaluation of this version waits";
  const Request first = queue.take();
  EXPECT_TRUE(first.of_evaluation());
  EXPECT_FALSE(queue.may_finish_update()) << "and runs";
  EXPECT_EQ(id_of(queue.next()), 1u) << "free requests may start meanwhile";
  const Request second = queue.take();
  queue.ended(first);
  EXPECT_TRUE(queue.may_finish_update());
  queue.ended(second);
}

TEST(WorkQueue, GoingBackWaitsForFreeRequestsAndNoneStartsBelowTheHighestVersion) {  // WQ-2
  WorkQueue queue(true);
  install(queue, kV0);
  install(queue, kV1);
  queue.push(group(1, 3));
  const Request running = queue.take();
  queue.push(evaluation(0, kV0));
  queue.push(group(2, 3));
  EXPECT_EQ(queue.wants({kV1, kV0}), kV0);
  queue.begin_update(kV0);
  EXPECT_FALSE(queue.may_finish_update());
  EXPECT_EQ(queue.next(), nullptr);
  queue.ended(running);
  install(queue, kV0);
  const Request judged = queue.take();
  EXPECT_TRUE(judged.of_evaluation());
  EXPECT_EQ(queue.next(), nullptr) << "the group was dated by version 1";
  EXPECT_EQ(queue.wants({kV1, kV0}), kV1);
  queue.ended(judged);
  install(queue, kV1);
  EXPECT_EQ(id_of(queue.next()), 2u);
}

TEST(WorkQueue, NothingOvertakesTheFirstWhoseVersionIsOnOffer) {  // WQ-4
  WorkQueue queue(true);
  install(queue, kV0);
  queue.push(group(1, 1, kV0));
  const Request running = queue.take();
  queue.push(group(2, 2, kV1));
  queue.push(group(3, 3, kV0));
  queue.push(group(4, 0, kV2));  // not published yet
  EXPECT_EQ(queue.wants({kV1, kV0}), kV1);
  EXPECT_EQ(queue.next(), nullptr);
  queue.begin_update(kV1);
  EXPECT_FALSE(queue.may_finish_update());
  queue.ended(running);
  install(queue, kV1);
  EXPECT_EQ(id_of(queue.next()), 2u);
  queue.ended(queue.take());
  EXPECT_EQ(queue.wants({kV1, kV0}), kV0);
  EXPECT_EQ(queue.wants({kV2, kV0}), kV2) << "now it is, and comes first";
}

TEST(WorkQueue, AnEvaluationLeavesTheRestToGroupsOfItsVersion) {  // WQ-5
  WorkQueue queue(true, 2);
  install(queue, kV0);
  for (std::int32_t prompt = 0; prompt < 4; ++prompt) queue.push(evaluation(prompt, kV0));
  std::deque<Request> judged;
  for (int of_two = 0; of_two < 2; ++of_two) judged.push_back(queue.take());
  ASSERT_TRUE(judged[0].of_evaluation() && judged[1].of_evaluation());
  EXPECT_TRUE(queue.next()->of_evaluation()) << "no group waits";
  queue.push(group(1, 5, kV1));
  queue.wants({kV1, kV0});
  EXPECT_TRUE(queue.next()->of_evaluation()) << "a group of another version cannot start";
  queue.push(group(2, 9));
  EXPECT_EQ(queue.wants({kV1, kV0}), std::nullopt) << "the evaluation holds its version";
  ASSERT_EQ(id_of(queue.next()), 2u);
  const Request beside = queue.take();
  queue.push(group(3, 9));
  queue.ended(judged.front());
  judged.pop_front();
  EXPECT_TRUE(queue.next()->of_evaluation()) << "below its share it comes first";
  judged.push_back(queue.take());
  ASSERT_EQ(id_of(queue.next()), 3u);
  queue.ended(queue.take());
  judged.push_back(queue.take());
  queue.begin_update(kV1);
  for (const Request& request : judged) {
    EXPECT_FALSE(queue.may_finish_update());
    queue.ended(request);
  }
  EXPECT_TRUE(queue.may_finish_update());
  queue.ended(beside);
}

TEST(WorkQueue, GroupsThatAnUpdateWaitsForDoNotStartPastAnEvaluation) {  // WQ-3, WQ-5
  WorkQueue queue(false, 1);
  install(queue, kV0);
  queue.begin_update(kV1);
  queue.push(evaluation(0, kV0));
  queue.push(evaluation(1, kV0));
  queue.push(group(1, 3));
  const Request judged = queue.take();
  EXPECT_TRUE(queue.next()->of_evaluation()) << "the group would put the update off";
  queue.ended(judged);
}

TEST(WorkQueue, AFirstVersionIsFinishedThoughNewerOnesCome) {
  WorkQueue queue(true);
  EXPECT_EQ(queue.wants({kV0, kV0}), kV0);
  queue.begin_update(kV0);
  EXPECT_EQ(queue.wants({kV1, kV0}), kV0);
  EXPECT_EQ(queue.wants({kV2, kV1}), kV2) << "the publisher has it no longer";
}

TEST(WorkQueue, APublisherFasterThanTheCopyingDoesNotStarveIt) {
  WorkQueue queue(true);
  install(queue, kV0);
  EXPECT_EQ(queue.wants({kV1, kV0}), kV1);
  queue.begin_update(kV1);
  EXPECT_EQ(queue.wants({kV2, kV1}), kV1) << "still retained";
  EXPECT_EQ(queue.wants({kV2, kV2}), kV2) << "gone";
}

TEST(WorkQueue, PinnedJobsDoNotFollowTheNewestVersionWhenIdle) {
  WorkQueue queue(true);
  install(queue, kV0);
  queue.push(group(1, 1, kV0));
  queue.ended(queue.take());
  EXPECT_EQ(queue.wants({kV2, kV0}), std::nullopt);
}

// Whatever comes, in whatever order: everything is served, by its version, and nothing gets stuck.
TEST(WorkQueue, RandomWorkIsAllServed) {  // WQ-1, WQ-2, WQ-4, WQ-5
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const bool partial_rollout = rng.below(2) == 0;
    WorkQueue queue(partial_rollout, 1 + static_cast<std::int64_t>(rng.below(4)));
    VersionOffer offer{kV0, kV0};
    std::deque<std::pair<Request, PolicyVersion>> running;
    std::uint64_t pushed = 0, served = 0;
    PolicyVersion highest = kV0;
    for (int turn = 0; turn < 400; ++turn) {
      if (turn < 200 && rng.below(3) == 0) {
        const PolicyVersion some{static_cast<std::int64_t>(
            rng.below(static_cast<std::uint64_t>(offer.newest.value + 1)))};
        ++pushed;
        switch (rng.below(3)) {
          case 0:
            queue.push(evaluation(static_cast<std::int32_t>(pushed), some));
            break;
          case 1:
            queue.push(group(pushed, static_cast<std::int64_t>(rng.below(9)), some));
            break;
          default:
            queue.push(group(pushed, static_cast<std::int64_t>(rng.below(9))));
        }
      }
      if (turn < 200 && rng.below(10) == 0) ++offer.newest.value;
      if (const auto wanted = queue.wants(offer)) queue.begin_update(*wanted);
      if (queue.may_finish_update()) {
        const bool all_pinned_are_done = std::ranges::none_of(
            running, [](const auto& item) { return item.first.pinned.has_value(); });
        ASSERT_TRUE(all_pinned_are_done);
        highest = std::max(highest, queue.finish_update());
      }
      while (running.size() < 4 && queue.next() != nullptr) {
        Request request = queue.take();
        if (request.pinned) {
          ASSERT_EQ(request.pinned, queue.version());
        } else {
          ASSERT_EQ(queue.version(), highest);
        }
        running.emplace_back(std::move(request), *queue.version());
      }
      if (!running.empty() && rng.below(2) == 0) {
        queue.ended(running.front().first);
        running.pop_front();
        ++served;
      }
    }
    for (int turn = 0; turn < 2000 && served < pushed; ++turn) {
      if (const auto wanted = queue.wants(offer)) queue.begin_update(*wanted);
      if (queue.may_finish_update()) queue.finish_update();
      while (queue.next() != nullptr) running.emplace_back(queue.take(), *queue.version());
      if (running.empty()) continue;
      queue.ended(running.front().first);
      running.pop_front();
      ++served;
    }
    ASSERT_EQ(served, pushed) << "stuck";
  }
}

TEST(OpenEvaluations, EachPromptHasItsSamplesAndOneGreedyCompletion) {
  OpenEvaluations evaluations;
  std::vector<Request> requests;
  const messages::EvaluationSampling sampling{.n = 3, .temperature = 0.5, .greedy = true};
  evaluations.open({.evaluation = messages::EvaluationId{4},
                    .version = kV1,
                    .sampling = sampling,
                    .prompts = {{7, "a", 70}, {9, "b", 90}, {11, "c", 110}}},
                   [&](Request request) { requests.push_back(std::move(request)); });
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].n, 4);
  EXPECT_EQ(requests[0].pinned, kV1);
  EXPECT_EQ(requests[1].trajectory_seed(2), derive_seed(90, {2}));
  for (const std::int32_t sample : {0, 1, 2}) EXPECT_FALSE(is_greedy(sampling, sample));
  EXPECT_TRUE(is_greedy(sampling, 3));
  const auto key = [&](std::size_t i) { return std::get<EvaluationKey>(requests[i].key); };
  std::vector<messages::Trajectory> four(4);
  for (std::size_t i = 0; i < four.size(); ++i) four[i].text = std::to_string(i);
  evaluations.completed(key(1), four);
  evaluations.unservable(key(2));
  EXPECT_TRUE(evaluations.take_done().empty());
  evaluations.completed(key(0), four);
  const auto done = evaluations.take_done();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].evaluation, messages::EvaluationId{4});
  EXPECT_EQ(done[0].unservable, std::vector<std::int32_t>{11});
  ASSERT_EQ(done[0].completions.size(), 8u);
  EXPECT_EQ(done[0].completions[2].index, 9);
  EXPECT_EQ(done[0].completions[2].sample, 2);
  EXPECT_EQ(done[0].completions[2].text, "2");
}

}  // namespace
}  // namespace tandem::rollout
