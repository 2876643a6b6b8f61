// The exchange that a new controller follows, from the journal and the payloads of its run.
#include "actors/main/submission.h"

#include <gtest/gtest.h>

#include <fstream>

#include "actors/main/job_shape.h"
#include "actors/main/roles/role_config.h"
#include "actors/runs/run_files.h"
#include "actors/runs/run_journal.h"
#include "runtime/base/digest.h"
#include "runtime/payload/segment_store.h"
#include "tests/actors/job/job_folder.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using exchange::JournalEvent;

// The run of one group, which is generated and has its payload.
class Predecessor : public testing::Test {
 protected:
  Predecessor() {
    fs::create_directories(run_);
    const auto store = std::move(payload::open_file_segments(run_ / "payload", {})).value();
    const std::string tokens = "the tokens of a group";
    const std::uint64_t size = tokens.size();
    const payload::Extent at = store->reserve(std::span(&size, 1)).value().at(0);
    const auto bytes = std::as_bytes(std::span(tokens.data(), tokens.size()));
    EXPECT_TRUE(store->write(at, 0, bytes));
    store->commit(at, checksum64(bytes));
    payload_ = {"job-1", at.segment, at.offset, at.bytes, checksum64(bytes)};
  }

  // The first `count` events of the run.
  void journal(const scheduler::Budget& budget, std::size_t count = SIZE_MAX) const {
    const ActorId learner{"job-1/learner/0", Incarnation{5}};
    const ActorId rollout{"job-1/rollout/0", Incarnation{3}};
    const messages::Publication first{.version = PolicyVersion{0}, .checksum = 1, .broadcast = {}};
    std::vector<JournalEvent> events{
        exchange::RunBegan{budget, has_fixed_lag(spec_), 17, Epoch{1}},
        exchange::LearnerCameUp{learner, {}},
        exchange::LearnerAsked{exchange::LearnerTask::kPublish, {}},
        exchange::VersionPublished{learner, first, {}},
        exchange::StageEntered{exchange::RunStage::kRunning, "training"},
        exchange::WorkerCameUp{messages::Role::kRollout, rollout, 8},
        exchange::VersionInstalled{rollout, PolicyVersion{0}},
        exchange::GroupAdmitted{GroupId{1}, 0, {}},
        exchange::RolloutLeased{GroupId{1}, scheduler::LeaseId{1}, rollout, PolicyVersion{0}},
        exchange::GroupGenerated{
            rollout,
            {.group = GroupId{1}, .attempt = 1, .trajectories = {{}}, .payload = payload_}}};
    events.resize(std::min(count, events.size()));
    journal(events);
  }
  void journal(const std::vector<JournalEvent>& events) const {
    const auto files = runs::RunFiles::open(run_.string());
    ASSERT_TRUE(files);
    ASSERT_TRUE((*files)->journal(events, sqlite::Durability::kKill));
  }
  NextExchange next(std::int64_t earlier_rows = 0) const {
    return next_exchange(job_shape(spec_), run_, earlier_rows);
  }
  bool is_followed() const { return next().before.has_value(); }

  const job::JobFolder folder_;
  const job::JobSpec spec_ = folder_.full();
  const fs::path run_ = folder_.root() / "run";
  wire::PayloadRef payload_;
};

TEST(Submission, AJobsOwnPricesWinOverThoseOfTheCluster) {
  const job::JobFolder folder;
  job::JobSpec job = folder.full();
  const scheduler::Pricing own{.rollout = 1, .learner = 2}, cluster{.rollout = 3, .learner = 4};
  job.pricing = own;
  add_pricing(cluster, job);
  EXPECT_EQ(job.pricing, own);
  job.pricing.reset();
  add_pricing({}, job);
  EXPECT_FALSE(job.pricing);
  add_pricing(cluster, job);
  EXPECT_EQ(job.pricing, cluster);
  job::JobSpec alone;
  alone.actors["counter"].command = {"/bin/true"};
  add_pricing(cluster, alone);
  EXPECT_FALSE(alone.pricing) << "such a job has no other section";
}

TEST_F(Predecessor, IsFollowedWhereItsJournalAndPayloadsAreThere) {
  EXPECT_TRUE(next().follows) << "there is no journal: nobody was told anything";
  EXPECT_FALSE(is_followed());
  journal(budget_of(spec_));
  EXPECT_TRUE(is_followed());
  fs::remove_all(run_ / "payload");
  EXPECT_FALSE(next().follows);
}

TEST_F(Predecessor, OfWhichNothingIsJournalledLeavesItsActorsToTheNext) {
  ASSERT_TRUE(runs::RunFiles::open(run_.string()));
  EXPECT_TRUE(next().follows);
  EXPECT_FALSE(is_followed());
}

TEST_F(Predecessor, IsFollowedAlsoInItsStartAndByRanksOfNccl) {
  journal(budget_of(spec_), 3);
  ASSERT_TRUE(is_followed());
  EXPECT_FALSE(next().before->has_earlier_attempt);
  controller::JobShape shape = job_shape(spec_);
  shape.nccl_roles = {messages::Role::kLearner, messages::Role::kRollout};
  EXPECT_TRUE(next_exchange(shape, run_, 0).before.has_value());
}

TEST_F(Predecessor, KnowsInItsStartThatItsRunIsResumed) {
  journal(budget_of(spec_));
  journal(budget_of(spec_), 1);
  ASSERT_TRUE(is_followed());
  EXPECT_EQ(next().before->state.facts().stage, exchange::RunStage::kStarting);
  EXPECT_TRUE(next().before->has_earlier_attempt);
}

// The controller dies before its own journal has the job's end. Payloads are for the living.
TEST_F(Predecessor, ThatHasEndedIsFollowedToItsResult) {
  journal(budget_of(spec_));
  journal({exchange::LiveDiscarded{scheduler::DiscardReason::kCancelled, {GroupId{1}}},
           exchange::RunEnded{"its learner died", messages::JobOutcome::kFailed}});
  fs::remove_all(run_ / "payload");
  ASSERT_TRUE(is_followed());
  EXPECT_EQ(next().before->state.facts().end.ended->reason, "its learner died");
}

// A user goes on with the run, and the controller dies before the job has begun.
TEST_F(Predecessor, OfAJobThatWasOverBeforeIsNot) {
  journal(budget_of(spec_));
  journal({exchange::LiveDiscarded{scheduler::DiscardReason::kCancelled, {GroupId{1}}},
           exchange::RunEnded{"cancelled by the user", messages::JobOutcome::kCancelled}});
  const std::int64_t rows = runs::RunJournal::last_row_of(run_.string()).value();
  EXPECT_TRUE(next(rows).follows) << "nobody was told anything yet";
  EXPECT_FALSE(next(rows).before.has_value());
  EXPECT_EQ(next(rows).earlier_rows, rows);
  journal(budget_of(spec_));
  EXPECT_TRUE(next(rows).before.has_value());
}

// The attempt that begins in its place is not mistaken for it by the controller after the next.
TEST_F(Predecessor, ThatIsNotFollowedIsEarlierFromThenOn) {
  journal(budget_of(spec_));
  fs::remove_all(run_ / "payload");
  const NextExchange another = next();
  EXPECT_FALSE(another.follows);
  EXPECT_EQ(another.earlier_rows, runs::RunJournal::last_row_of(run_.string()).value());
  EXPECT_TRUE(next(another.earlier_rows).follows) << "it has not begun";
  EXPECT_FALSE(next(another.earlier_rows).before.has_value());
  journal(budget_of(spec_), 3);
  EXPECT_TRUE(next(another.earlier_rows).before.has_value());
}

// The run had ended and its user went on with it, when a power cut took the newest rows: its number
// of rows is what the journal has now, which the rows of the attempt that begins come after.
TEST_F(Predecessor, WhoseJournalHasLostRowsIsNot) {
  journal(budget_of(spec_), 5);
  const std::int64_t rows = runs::RunJournal::last_row_of(run_.string()).value();
  const NextExchange another = next(rows + 8);
  EXPECT_FALSE(another.follows) << "actors may have been told things by an attempt that is lost";
  EXPECT_EQ(another.earlier_rows, rows);
  journal(budget_of(spec_), 3);
  EXPECT_TRUE(next(another.earlier_rows).before.has_value());
}

TEST_F(Predecessor, ThatHasNotMadeItsTablesHasToldNobodyAnything) {
  std::ofstream(run_ / "journal.sqlite").close();
  EXPECT_TRUE(next().follows);
  EXPECT_FALSE(is_followed());
}

TEST_F(Predecessor, OfAnotherJobsSettingsIsNot) {
  scheduler::Budget other = budget_of(spec_);
  ++other.groups_per_step;
  journal(other);
  EXPECT_FALSE(next().follows);
}

// The journal names more bytes than any machine has: they are looked for, and not made room for.
TEST_F(Predecessor, WhosePayloadHasAbsurdlyManyBytesIsNot) {
  payload_.bytes = std::uint64_t{1} << 60;
  journal(budget_of(spec_));
  EXPECT_FALSE(next().follows);
}

}  // namespace
}  // namespace tandem::app
