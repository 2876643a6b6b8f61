#include "actors/controller/durable.h"

#include <gtest/gtest.h>

#include "runtime/base/rng.h"
#include "runtime/wire/codec.h"
#include "tests/seeds.h"

namespace tandem::controller {
namespace {

DurableEvent random_event(Rng& rng) {
  const std::string job = "job-" + std::to_string(rng.below(4));
  const std::string node = "node-" + std::to_string(rng.below(3));
  const std::string actor = job + "/counter/" + std::to_string(rng.below(3));
  const Incarnation incarnation{1 + rng.below(4)};
  switch (rng.below(16)) {
    case 0:
      return JobTaken{.job = job,
                      .run_dir = "/runs/" + job,
                      .yaml = "name: job\n",
                      .submitted_ms = static_cast<std::int64_t>(rng.below(1'000'000)),
                      .wanted = {{"rollout", 2}, {"learner", 1}}};
    case 1:
      return RoleScaled{job, messages::Role::kRollout, static_cast<std::int32_t>(rng.below(9))};
    case 2:
      return JobLeft{job};
    case 3:
      return IncarnationsReserved{rng.below(5000)};
    case 4:
      return NodeJoined{node};
    case 5:
      return NodeCordoned{node, "new driver"};
    case 6:
      return NodeUncordoned{node};
    case 7:
      return JobOver{job, messages::JobOutcome::kFailed, "it died too often", true};
    case 8:
      return ActorStarted{
          actor, {"counter"}, 1, incarnation, {{node, {"GPU-0", "GPU-2"}, {500, 2000, 1 << 20}}}};
    case 9:
      return ActorLeaves{actor, incarnation, static_cast<Leaving>(rng.below(4)), node};
    case 10:
      return ActorEnded{.actor = actor,
                        .incarnation = incarnation,
                        .how = static_cast<ActorEnd>(rng.below(4)),
                        .cause = "killed",
                        .started = {},
                        .died = Time{static_cast<std::int64_t>(rng.below(1000))},
                        .memory_kill = rng.below(2) == 0};
    case 11:
      return JobServes{job, {"ipc:///s" + std::to_string(rng.below(3))}};
    case 12:
      return GpuUncordoned{node, "GPU-" + std::to_string(rng.below(3))};
    case 13:
      return GpuCordoned{node, "GPU-" + std::to_string(rng.below(3)), "actors die there"};
    case 14:
      return AllocationKept{
          .job = job,
          .automatic = rng.below(2) == 0,
          .before = {{"rollout", static_cast<std::int32_t>(rng.below(3))}},
          .changed = Time{static_cast<std::int64_t>(rng.below(3))},
          .raised = rng.below(2) == 0,
          .too_few =
              scheduler::AutoscaleRaised{.rollouts = static_cast<std::int64_t>(rng.below(3))},
          .delivered = {.share = rng.unit()}};
    default:
      return NodeLeft{node};
  }
}

// What an earlier row says may come again behind a later one: the rows are replaced by others while
// the former ones are still there (ClusterJournal::replace_state).
TEST(DurableState, ItsFewestEventsGiveItAlsoBehindAllOthers) {
  for_seeds(200, [](std::uint64_t seed) {
    Rng rng(seed);
    DurableState state;
    std::uint64_t incarnation = 0;
    for (std::uint64_t i = rng.below(60); i > 0; --i) {
      const DurableEvent event = random_event(rng);
      state.apply(event);
      EXPECT_GE(state.incarnation_last(), incarnation);
      incarnation = state.incarnation_last();
    }
    DurableState again, behind = state;
    for (const DurableEvent& event : state.events()) {
      const auto read = wire::decode<DurableEvent>(wire::encode(event));
      ASSERT_TRUE(read.has_value());
      EXPECT_EQ(kind_of(*read), kind_of(event));
      EXPECT_EQ(subject_of(*read), subject_of(event));
      again.apply(*read);
      behind.apply(*read);
    }
    EXPECT_EQ(again, state);
    EXPECT_EQ(behind, state);
    EXPECT_EQ(again.hash(), state.hash()) << "CC-7";
    EXPECT_EQ(behind.hash(), state.hash()) << "CC-7";
  });
}

TEST(DurableState, CC7EveryEventThatChangesItChangesItsHash) {
  for_seeds(200, [](std::uint64_t seed) {
    Rng rng(seed);
    DurableState state;
    for (int i = 0; i < 60; ++i) {
      const DurableState before = state;
      state.apply(random_event(rng));
      EXPECT_EQ(state == before, state.hash() == before.hash()) << "event " << i;
      const std::uint64_t hash = state.hash();
      state.apply(StateHashed{hash});
      EXPECT_EQ(state.hash(), hash);
    }
  });
}

TEST(DurableState, EventsAboutWhatIsNotThereChangeNothing) {
  DurableState state;
  state.apply(RoleScaled{"job-1", messages::Role::kRollout, 3});
  state.apply(JobLeft{"job-1"});
  state.apply(NodeLeft{"a"});
  EXPECT_EQ(state, DurableState());
  EXPECT_TRUE(state.events().empty());
}

// Else the fewest events give another state, without the actor or the death.
TEST(DurableState, AnActorWithTheNameOfItsJobAndADeathOfWhatHasFinishedChangeNothing) {
  DurableState state;
  state.apply(JobTaken{.job = "job-1", .run_dir = "/runs/job-1", .yaml = {}, .wanted = {}});
  const DurableState before = state;
  state.apply(ActorStarted{"job-1", {"counter"}, 0, Incarnation{1}, {}});
  EXPECT_EQ(state, before);

  const std::string actor = "job-1/counter/0";
  state.apply(ActorStarted{actor, {"counter"}, 0, Incarnation{1}, {}});
  state.apply(
      ActorEnded{.actor = actor, .incarnation = Incarnation{1}, .how = ActorEnd::kFinished});
  state.apply(ActorEnded{.actor = actor, .incarnation = Incarnation{2}, .how = ActorEnd::kDied});
  EXPECT_TRUE(state.deaths_of("job-1").empty());
  DurableState again;
  for (const DurableEvent& event : state.events()) again.apply(event);
  EXPECT_EQ(again, state);
}

TEST(DurableState, KeepsJobsInTheirOrderWithTheNewestWishes) {
  DurableState state;
  for (const char* job : {"b", "a", "c"})
    state.apply(JobTaken{.job = job, .run_dir = job, .yaml = {}, .wanted = {{"rollout", 1}}});
  state.apply(RoleScaled{"a", messages::Role::kRollout, 5});
  state.apply(JobLeft{"b"});
  state.apply(JobTaken{.job = "a", .run_dir = "a", .yaml = {}, .wanted = {{"rollout", 5}}});
  ASSERT_EQ(state.jobs().size(), 2u);
  EXPECT_EQ(state.jobs()[0].job, "a");
  EXPECT_EQ(state.job("a")->wanted.at("rollout"), 5);
  EXPECT_EQ(state.job("b"), nullptr);
}

}  // namespace
}  // namespace tandem::controller
