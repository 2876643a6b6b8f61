// Weights that are on their way between ranks while the next forward computes: the same bits as
// without, and an end for everybody when a rank dies. Ranks are threads.
//
// Tests actors/learner/sharded_update.h.
#include <gtest/gtest.h>

#include <deque>

#include "actors/learner/sharded_update.h"
#include "tests/actors/learner/sharded_gang.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::learner {
namespace {

using model::testing::scratch_folder;
using testing::config_of;
using testing::expect_one_end;
using testing::few_records;
using testing::GangShape;
using testing::Kept;
using testing::kSmall;
using testing::run_gang;
using testing::save;
using testing::sharing;
using testing::train_to;
using testing::Watched;

// An exchange of shards whose first `held_max` gathers begin as late as possible: each when it is
// waited for. Counts how many gathers wait() has waited for, how many hold_back(), and how often
// hold_back() came back before the others had begun.
class Late final : public collective::ShardExchange {
 public:
  struct Counts {
    int all = 0, part = 0, early_returns = 0;
  };
  Late(std::unique_ptr<collective::ShardExchange> of, int held_max, Counts& counts)
      : exchange_(std::move(of)), left_(held_max), counts_(counts) {}
  int rank() const override { return exchange_->rank(); }
  int size() const override { return exchange_->size(); }
  Result<void> reduce_scatter(const device::TensorView& bucket,
                              const device::Stream& producer) override {
    EXPECT_TRUE(held_.empty());
    return exchange_->reduce_scatter(bucket, producer);
  }
  Result<void> all_gather(const device::TensorView& bucket,
                          const device::Stream& producer) override {
    if (left_ == 0) return exchange_->all_gather(bucket, producer);
    --left_;
    held_.push_back({bucket, producer});
    return {};
  }
  Result<void> hold_back(const device::Stream& consumer, std::uint64_t calls) override {
    while (made_ < calls && !held_.empty())
      if (auto sent = send(counts_.part); !sent) return sent;
    counts_.early_returns += !held_.empty();
    return exchange_->hold_back(consumer, calls);
  }
  Result<void> wait() override {
    while (!held_.empty())
      if (auto sent = send(counts_.all); !sent) return sent;
    made_ = 0;
    return exchange_->wait();
  }

 private:
  struct Gather {
    device::TensorView bucket;
    device::Stream producer;
  };
  Result<void> send(int& count) {
    const Gather gather = held_.front();
    held_.pop_front();
    ++count;
    ++made_;
    return exchange_->all_gather(gather.bucket, gather.producer);
  }

  std::unique_ptr<collective::ShardExchange> exchange_;
  int left_;
  Counts& counts_;
  std::deque<Gather> held_;
  std::uint64_t made_ = 0;  // held gathers made since the last wait()
};

// An exchange of shards whose gathers are complete as soon as they are asked for, so that nothing
// overlaps.
class Early final : public collective::ShardExchange {
 public:
  explicit Early(std::unique_ptr<collective::ShardExchange> of) : exchange_(std::move(of)) {}
  int rank() const override { return exchange_->rank(); }
  int size() const override { return exchange_->size(); }
  Result<void> reduce_scatter(const device::TensorView& bucket,
                              const device::Stream& producer) override {
    return exchange_->reduce_scatter(bucket, producer);
  }
  Result<void> all_gather(const device::TensorView& bucket,
                          const device::Stream& producer) override {
    if (auto queued = exchange_->all_gather(bucket, producer); !queued) return queued;
    return exchange_->wait();
  }
  Result<void> hold_back(const device::Stream&, std::uint64_t) override { return {}; }
  Result<void> wait() override { return exchange_->wait(); }

 private:
  std::unique_ptr<collective::ShardExchange> exchange_;
};

// The test has a warm start, RL, and a checkpoint right after a step. Gathers that begin as late as
// can be show that a forward's first layers are computed while the last weights have not even been
// sent.
TEST(ShardedTrainer, TheNextForwardBeginsBeforeTheWeightsHaveCome_SU2_SU5) {
  const auto folder = scratch_folder("overlap");
  TrainerConfig config = config_of(folder, 1e-2);
  config.algorithm.use_kl_loss = true;
  config.algorithm.kl_loss_coef = 0.1;
  const int warm_steps = 3;
  const auto buckets = static_cast<int>(cut_buckets(testing::learner_model(), kSmall).size());
  // The embedding and all layers except the last one, whose bucket may hold the final norm too.
  const auto parts = static_cast<int>(testing::learner_model().layers);
  enum class When { kEarly, kAsTheyCome, kLate };
  // A batch of one record leaves all ranks but one without work.
  for (const std::int64_t batch_size : {1, 4})
    for (int ranks = 1; ranks <= 4; ++ranks) {
      SCOPED_TRACE("batches of " + std::to_string(batch_size) + ", " + std::to_string(ranks));
      config.warm_start = WarmStartConfig{
          .lr = 1e-2, .batch_size = batch_size, .max_steps = warm_steps, .until = std::nullopt};
      const auto run_with = [&](When when) {
        GangShape gang = sharing(ranks);
        gang.records = few_records();
        std::vector<Late::Counts> counts(gang.shards.size());
        for (std::size_t rank = 0; rank < counts.size(); ++rank) {
          auto& shards = gang.shards[rank];
          if (when == When::kEarly) shards = std::make_unique<Early>(std::move(shards));
          if (when == When::kLate)
            shards = std::make_unique<Late>(std::move(shards), warm_steps * buckets, counts[rank]);
        }
        std::pair<std::vector<double>, Kept> outcome;
        expect_one_end(run_gang(folder, config, std::move(gang), [&](NativeTrainer& trainer) {
          for (bool done = false; !done;) {
            const auto slice = trainer.warm_start();
            ASSERT_TRUE(slice) << slice.error().message;
            outcome.first.push_back(slice->loss);
            done = slice->done;
          }
          for (const double norm : train_to(trainer, 3, {.groups = 3}))
            outcome.first.push_back(norm);
          outcome.second = save(trainer);
        }));
        std::filesystem::remove_all(config.checkpoints.directory);
        if (when != When::kLate) return outcome;
        for (std::size_t rank = 0; rank < counts.size(); ++rank) {
          const bool idle = std::ssize(counts) > batch_size && rank > 0;
          EXPECT_EQ(counts[rank].part, (warm_steps - 1) * buckets);
          EXPECT_EQ(counts[rank].all, buckets) << "RL begins with all weights";
          EXPECT_EQ(counts[rank].early_returns, idle ? 0 : (warm_steps - 1) * parts) << rank;
        }
        return outcome;
      };
      const auto early = run_with(When::kEarly);
      EXPECT_EQ(run_with(When::kAsTheyCome), early);
      EXPECT_EQ(run_with(When::kLate), early);
    }
}

// The neighbours of a dead rank learn of the death by the weights that do not come.
TEST(ShardedTrainer, ARankThatDiesWhileWeightsAreUnderWayEndsTheGang) {
  const auto folder = scratch_folder("dies");
  TrainerConfig config = config_of(folder);
  config.warm_start =
      WarmStartConfig{.lr = 1e-2, .batch_size = 6, .max_steps = 5, .until = std::nullopt};
  const auto buckets = static_cast<int>(cut_buckets(testing::learner_model(), kSmall).size());
  for (const int cut_at : {buckets, buckets + 1, 2 * buckets - 1, 2 * buckets}) {
    SCOPED_TRACE(cut_at);
    GangShape gang = sharing(3);
    gang.records = few_records();
    gang.shards[1] =
        std::make_unique<Watched>(std::move(gang.shards[1]), Watched::Ear{.cut_at = cut_at});
    const auto ends = run_gang(folder, config, std::move(gang), [&](NativeTrainer& trainer) {
      std::string error;
      int steps = 0;
      for (; steps < 5 && error.empty(); ++steps)
        if (const auto slice = trainer.warm_start(); !slice) error = slice.error().message;
      EXPECT_LE(steps, 2);
      EXPECT_NE(error.find("gang broke"), std::string::npos) << error;
      EXPECT_FALSE(trainer.save());
    });
    for (std::size_t rank = 1; rank < ends.size(); ++rank)
      EXPECT_NE(ends[rank].error.find("gang broke"), std::string::npos) << ends[rank].error;
  }
}

}  // namespace
}  // namespace tandem::learner
