// Gangs whose ranks share AdamW's work, against gangs in which every rank does all of it: the same
// weights and moments, bit for bit, but for the norm's roundings where it scales. Ranks are
// threads.
//
// Tests actors/learner/sharded_update.h, actors/learner/native_trainer.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>

#include "actors/learner/sharded_update.h"
#include "actors/learner/trainer_setup.h"
#include "actors/model/parameters.h"
#include "runtime/base/rng.h"
#include "tests/actors/learner/sharded_gang.h"
#include "tests/actors/model/tiny_model.h"
#include "tests/runtime/collective/local_shards.h"

namespace tandem::learner {
namespace {

using collective::ShardRange;
using model::testing::scratch_folder;
using testing::config_of;
using testing::expect_one_end;
using testing::few_records;
using testing::GangShape;
using testing::Kept;
using testing::kept_in;
using testing::kSmall;
using testing::random_batch;
using testing::RankEnd;
using testing::replicated;
using testing::run_gang;
using testing::save;
using testing::sharing;
using testing::train_to;
using testing::Watched;

struct Outcome {
  std::vector<double> norms;
  Kept kept;
  std::vector<RankEnd> ends;
};

Outcome run(const TrainerConfig& config, GangShape gang, std::int64_t steps,
            const testing::BatchShape& batch = {}) {
  Outcome outcome;
  outcome.ends = run_gang(config.checkpoints.directory.parent_path(), config, std::move(gang),
                          [&](NativeTrainer& trainer) {
                            outcome.norms = train_to(trainer, steps, batch);
                            outcome.kept = save(trainer);
                          });
  expect_one_end(outcome.ends);
  std::filesystem::remove_all(config.checkpoints.directory);
  return outcome;
}

model::ModelConfig random_model(Rng& rng) {
  model::ModelConfig model = testing::learner_model();
  model.layers = 1 + static_cast<std::int64_t>(rng.below(5));
  model.vocab_size = 2 + static_cast<std::int64_t>(rng.below(400));
  model.tie_word_embeddings = rng.below(2) == 0;
  return model;
}

TEST(ShardedUpdate, BucketsTileTheArenaFromItsEnd_SU1) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const model::ModelConfig model = random_model(rng);
    const BucketLimits limits{.floats_min = static_cast<std::int64_t>(rng.below(20'000)),
                              .floats_max = 64 + static_cast<std::int64_t>(rng.below(20'000))};
    const auto floats = static_cast<std::int64_t>(make_manifest(model).bytes_total / sizeof(float));
    const std::vector<ShardRange> buckets = cut_buckets(model, limits);
    std::int64_t end = floats;
    for (const ShardRange& bucket : buckets) {
      EXPECT_EQ(bucket.end, end);
      EXPECT_GT(bucket.size(), 0);
      EXPECT_LE(bucket.size(), limits.floats_max);
      end = bucket.begin;
    }
    EXPECT_EQ(end, 0);
    // Shards tile buckets, whatever the number of ranks.
    const int ranks = 1 + static_cast<int>(rng.below(9));
    std::vector<std::vector<ShardRange>> shards;
    for (int rank = 0; rank < ranks; ++rank) shards.push_back(shards_of_rank(buckets, rank, ranks));
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      std::int64_t at = buckets[b].begin;
      for (const auto& of_rank : shards) {
        EXPECT_EQ(of_rank[b].begin, at);
        at = of_rank[b].end;
      }
      EXPECT_EQ(at, buckets[b].end);
    }
  }
}

TEST(ShardedUpdate, BucketsEndWhereLayersDo) {
  const model::ModelConfig model = testing::learner_model();
  const device::Manifest manifest = make_manifest(model);
  std::vector<std::int64_t> borders{0};
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    borders.push_back(static_cast<std::int64_t>(
        manifest.find(model::LayerNames(layer).input_norm)->offset_bytes / sizeof(float)));
  for (const ShardRange& bucket : cut_buckets(model, {.floats_min = 1000, .floats_max = 1 << 20}))
    EXPECT_NE(std::ranges::find(borders, bucket.begin), borders.end()) << bucket.begin;
  EXPECT_EQ(cut_buckets(model, {}).size(), 1u) << "a tiny model is one bucket";
}

TEST(ShardedUpdate, ABucketLeavesAsSoonAsItIsFinished) {
  const model::ModelConfig model = testing::learner_model();
  const std::vector<ShardRange> buckets = cut_buckets(model, kSmall);
  ASSERT_GE(buckets.size(), 4u);
  std::size_t sums = 0;
  ShardedUpdate update(std::make_unique<Watched>(std::move(collective::make_local_shards(1)[0]),
                                                 Watched::Ear{.on_sum = [&] { ++sums; }}),
                       buckets);
  const auto gradients = device::Arena::allocate(make_manifest(model), "gradients");
  ASSERT_TRUE(gradients);
  update.begin();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    update.finished({}, *gradients, buckets[i].begin + 1);
    EXPECT_EQ(sums, i) << "one of its floats is not finished";
    update.finished({}, *gradients, buckets[i].begin);
    EXPECT_EQ(sums, i + 1);
  }
}

TEST(Optimizer, AnyCutGivesTheSameBits_OP1) {
  const model::ModelConfig model = testing::learner_model();
  const device::Manifest manifest = make_manifest(model);
  const auto floats = static_cast<std::int64_t>(manifest.bytes_total / sizeof(float));
  struct State {
    std::vector<float> weights, m, v;
    bool operator==(const State&) const = default;
  };
  const auto after = [&](std::vector<ShardRange> parts) {
    auto optimizer = Optimizer::allocate(floats, std::move(parts), device::DeviceKind::kCpu);
    EXPECT_TRUE(optimizer);
    const device::Arena weights = model::testing::random_weights(model, 1);
    auto moments = device::Arena::allocate(manifest, "moments");
    EXPECT_TRUE(moments);
    const auto copy = [](const device::Arena& arena) {
      return std::vector<float>(arena.f32().begin(), arena.f32().end());
    };
    for (std::uint64_t step = 0; step < 3; ++step) {
      const device::Arena gradients = model::testing::random_weights(model, 2 + step);
      EXPECT_TRUE(optimizer->begin_step({.weight_decay = 0.1, .grad_clip = 1}, 1e-2, 25));
      for (std::size_t i = 0; i < optimizer->parts(); ++i)
        optimizer->update({}, i, weights, gradients);
    }
    State state{.weights = copy(weights), .m = {}, .v = {}};
    optimizer->lay_out({}, Optimizer::Moment::kFirst, *moments);
    state.m = copy(*moments);
    optimizer->lay_out({}, Optimizer::Moment::kSecond, *moments);
    state.v = copy(*moments);
    return state;
  };
  const State whole = after({{.begin = 0, .end = floats}});
  EXPECT_NE(whole.m, std::vector<float>(whole.m.size()));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    std::vector<ShardRange> parts;
    for (std::int64_t end = floats; end > 0;) {
      const auto size = std::min(end, static_cast<std::int64_t>(rng.below(5000)));
      parts.push_back({.begin = end - size, .end = end});
      end -= size;
    }
    EXPECT_EQ(after(std::move(parts)), whole) << "seed " << seed;
  }
}

TEST(ShardedTrainer, HasTheBitsOfAReplicatedGang_SU2) {
  const auto folder = scratch_folder("bits");
  const TrainerConfig config = config_of(folder);
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const Outcome all = run(config, replicated(ranks), 4);
    for (const BucketLimits& buckets : {kSmall, BucketLimits{}}) {
      const Outcome own = run(config, sharing(ranks, buckets), 4);
      EXPECT_EQ(own.kept, all.kept);
      EXPECT_EQ(own.ends[0].weights, all.ends[0].weights);
      ASSERT_EQ(own.norms.size(), 4u);
      for (std::size_t i = 0; i < own.norms.size(); ++i) {
        EXPECT_GT(own.norms[i], 0);
        EXPECT_NEAR(own.norms[i], all.norms[i], 1e-12 * all.norms[i]);
      }
    }
  }
}

// Where the norm scales, its last bits are in the weights.
TEST(ShardedTrainer, RepeatsToTheBitWhereItClips_TR1_SU3) {
  const auto folder = scratch_folder("clip");
  const TrainerConfig config = config_of(folder, 1e-2);
  const Outcome single = run(config, replicated(1), 3);
  for (const int ranks : {1, 2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const Outcome first = run(config, sharing(ranks), 3), again = run(config, sharing(ranks), 3);
    EXPECT_EQ(first.norms, again.norms);
    EXPECT_EQ(first.kept, again.kept);
    EXPECT_GT(first.norms[0], config.optimizer.grad_clip);
    EXPECT_NEAR(first.norms[0], single.norms[0], 1e-5 * single.norms[0]);
  }
}

// Ranks sum gradients in another order than one rank does. A step moves a weight by up to 1e-2.
TEST(ShardedTrainer, ComesToWhatOneRankComesTo) {
  const auto folder = scratch_folder("close");
  TrainerConfig config = config_of(folder, 1.0);
  config.optimizer.eps = 1e-2;  // a gradient that is rounding noise takes no whole step
  const auto floats = [](const RankEnd& end) {
    std::vector<float> weights(end.weights.size() / sizeof(float));
    std::memcpy(weights.data(), end.weights.data(), end.weights.size());
    return weights;
  };
  const std::vector<float> single = floats(run(config, replicated(1), 3).ends[0]);
  for (const int ranks : {2, 3, 4}) {
    const std::vector<float> shared = floats(run(config, sharing(ranks), 3).ends[0]);
    ASSERT_EQ(shared.size(), single.size());
    for (std::size_t i = 0; i < single.size(); ++i)
      ASSERT_NEAR(shared[i], single[i], 1e-5) << i << " of " << ranks << " ranks";
  }
}

// One live group, of which three ranks have none; none at all; and shares of several micro-batches
// beside shares of one.
TEST(ShardedTrainer, RanksMayHaveUnequalShares_SU2) {
  const auto folder = scratch_folder("unequal");
  TrainerConfig config = config_of(folder);
  for (const std::int64_t groups : {1, 2, 6, 8}) {
    SCOPED_TRACE(groups);
    const testing::BatchShape batch{.groups = groups};
    config.rows_max = groups > 2 ? 34 : 64;  // a group has 34 rows at most
    const Outcome all = run(config, replicated(4), 2, batch),
                  own = run(config, sharing(4), 2, batch);
    EXPECT_EQ(own.kept, all.kept);
    if (groups == 1) {
      EXPECT_EQ(own.norms, (std::vector<double>{0, 0}));
    }
  }
}

TEST(ShardedTrainer, MoreRanksThanShards_SU2) {
  const auto folder = scratch_folder("crumbs");
  const TrainerConfig config = config_of(folder);
  const BucketLimits crumbs{.floats_min = 1, .floats_max = 64};  // the last rank has every shard
  EXPECT_EQ(run(config, sharing(3, crumbs), 2).kept, run(config, replicated(3), 2).kept);
}

TEST(ShardedTrainer, WarmStartsWithRanksThatHaveNoRecord) {
  const auto folder = scratch_folder("warm");
  TrainerConfig config = config_of(folder);
  config.warm_start =
      WarmStartConfig{.lr = 1e-2, .batch_size = 2, .max_steps = 3, .until = std::nullopt};
  const auto losses_of = [&](GangShape gang) {
    gang.records = few_records();
    std::vector<double> losses;
    expect_one_end(run_gang(folder, config, std::move(gang), [&](NativeTrainer& trainer) {
      for (bool done = false; !done;) {
        const auto slice = trainer.warm_start();
        ASSERT_TRUE(slice) << slice.error().message;
        losses.push_back(slice->loss);
        done = slice->done;
      }
      train_to(trainer, 1);
    }));
    return losses;
  };
  const std::vector<double> all = losses_of(replicated(3)), own = losses_of(sharing(3));
  ASSERT_EQ(own.size(), 3u);
  EXPECT_EQ(own[0], all[0]);
  EXPECT_LT(own[2], own[0]);
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(own[i], all[i], 1e-5);
}

TEST(ShardedTrainer, ResumesToTheBit_TR2) {
  const auto folder = scratch_folder("resume");
  const TrainerConfig config = config_of(folder, 1e-2);
  std::vector<double> rest;
  const auto first = run_gang(folder, config, sharing(3), [&](NativeTrainer& trainer) {
    train_to(trainer, 2);
    save(trainer);
    rest = train_to(trainer, 4);
    ASSERT_TRUE(trainer.restore()) << "the one that ran on can go back";
    EXPECT_EQ(trainer.step(), StepId{2});
    EXPECT_EQ(train_to(trainer, 4), rest);
  });
  const auto second = run_gang(folder, config, sharing(3), [&](NativeTrainer& trainer) {
    EXPECT_EQ(trainer.step(), StepId{2});
    EXPECT_EQ(train_to(trainer, 4), rest);
  });
  expect_one_end(first);
  expect_one_end(second);
  EXPECT_EQ(second[0].weights, first[0].weights);
}

// A gang of any size that reads a checkpoint has its weights and moments, and goes on as a gang of
// that size whose ranks all do the whole update.
TEST(ShardedTrainer, ACheckpointDoesNotDependOnTheRanks_TR2) {
  const auto folder = scratch_folder("checkpoint");
  TrainerConfig config = config_of(folder);
  for (const bool shared : {true, false}) {
    SCOPED_TRACE(shared ? "written by two ranks with shards" : "written by one rank");
    config.checkpoints.directory = folder / (shared ? "shards" : "whole");
    config.checkpoints.resume = ResumeMode::kAuto;
    Kept written;
    expect_one_end(
        run_gang(folder, config, shared ? sharing(2) : replicated(1), [&](NativeTrainer& trainer) {
          train_to(trainer, 2);
          written = save(trainer);
        }));
    EXPECT_NE(written.m, std::string(written.m.size(), '\0'));
    const auto goes_on = [&](GangShape gang) {
      Kept after;
      TrainerConfig other = config;
      other.checkpoints.resume = ResumeMode::kPath;
      other.checkpoints.resume_path = config.checkpoints.directory / "step-2";
      other.checkpoints.directory = folder / "rewritten";
      expect_one_end(run_gang(folder, other, std::move(gang), [&](NativeTrainer& trainer) {
        EXPECT_EQ(trainer.step(), StepId{2});
        EXPECT_EQ(save(trainer), written);
        train_to(trainer, 4);
        after = save(trainer);
      }));
      return after;
    };
    for (const int ranks : {1, 3, 4}) {
      SCOPED_TRACE(ranks);
      EXPECT_EQ(goes_on(sharing(ranks)), goes_on(replicated(ranks)));
    }
  }
}

TEST(ShardedTrainer, AFailedSaveLeavesEverybodyAbleToGoOn_TR3) {
  const auto folder = scratch_folder("unsaved");
  const TrainerConfig config = config_of(folder);
  Kept last;
  expect_one_end(run_gang(folder, config, sharing(2), [&](NativeTrainer& trainer) {
    train_to(trainer, 1);
    const Kept first = save(trainer);
    train_to(trainer, 2);
    // The folder of checkpoints is a file for a while.
    const auto earlier = config.checkpoints.directory;
    std::filesystem::rename(earlier, folder / "kept");
    std::ofstream(earlier) << "not a directory";
    EXPECT_FALSE(trainer.save());
    std::filesystem::remove(earlier);
    std::filesystem::rename(folder / "kept", earlier);
    EXPECT_EQ(kept_in(earlier / "step-1"), first);
    train_to(trainer, 3);
    last = save(trainer);
  }));
  std::filesystem::remove_all(config.checkpoints.directory);
  EXPECT_EQ(last, run(config, replicated(2), 3).kept);
}

// One rank's link is cut at each of its calls in turn, those of a save included: everybody gets an
// Error, and gets it again.
TEST(ShardedTrainer, ACutLinkEndsTheGangForEveryRank) {
  const auto folder = scratch_folder("cut");
  const TrainerConfig config = config_of(folder);
  const auto buckets = static_cast<int>(cut_buckets(testing::learner_model(), kSmall).size());
  // Sums, weights, and both moments.
  for (const int cut_at : {0, 1, buckets, 2 * buckets - 1, 2 * buckets, 4 * buckets - 1}) {
    SCOPED_TRACE(cut_at);
    GangShape gang = sharing(3);
    gang.shards[1] =
        std::make_unique<Watched>(std::move(gang.shards[1]), Watched::Ear{.cut_at = cut_at});
    const auto ends = run_gang(folder, config, std::move(gang), [&](NativeTrainer& trainer) {
      const auto trained = trainer.train(random_batch(1, StepId{0}));
      std::optional<Error> error;
      if (!trained) error = trained.error();
      if (cut_at >= 2 * buckets) {
        EXPECT_TRUE(trained);
        const auto saved = trainer.save();
        ASSERT_FALSE(saved);
        error = saved.error();
      }
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, ErrorCode::kFailed);
      EXPECT_NE(error->message.find("gang broke"), std::string::npos) << error->message;
      EXPECT_FALSE(trainer.save());
      EXPECT_FALSE(std::filesystem::exists(config.checkpoints.directory / "step-1"));
    });
    for (std::size_t rank = 1; rank < ends.size(); ++rank)
      EXPECT_NE(ends[rank].error.find("gang broke"), std::string::npos) << ends[rank].error;
    EXPECT_NE(ends[1].error.find("the test's link is cut"), std::string::npos) << ends[1].error;
  }
}

TEST(ShardedTrainer, RanksWaitForSlowerOnesInTheGang_SU4) {
  const auto folder = scratch_folder("patience");
  const auto buckets = static_cast<int>(cut_buckets(testing::learner_model(), kSmall).size());
  std::atomic<int> sums = 0, waits = 0, early = 0;
  GangShape gang = sharing(3);
  for (auto& exchange : gang.shards)
    exchange = std::make_unique<Watched>(std::move(exchange),
                                         Watched::Ear{.on_sum = [&] { ++sums; },
                                                      .on_wait =
                                                          [&] {
                                                            ++waits;
                                                            early += sums % (3 * buckets) != 0;
                                                          }});
  expect_one_end(run_gang(folder, config_of(folder), std::move(gang),
                          [](NativeTrainer& trainer) { train_to(trainer, 3, {.groups = 2}); }));
  EXPECT_EQ(sums, 3 * 3 * buckets);
  // Rank 0 publishes each step, the others wait for all weights when they stop.
  EXPECT_EQ(waits, 3 * 3 + 3 + 2) << "for the sums, and for the weights";
  EXPECT_EQ(early, 0);
}

TEST(ShardedTrainer, AGradientThatMayNotBeSkippedIsTheSameErrorOnAllRanks_SK1) {
  const auto folder = scratch_folder("infinite");
  TrainerConfig config = config_of(folder);
  config.optimizer.lr = 1e30;
  config.optimizer.lr_warmup_steps = 0;
  config.nonfinite_steps_max = 0;
  std::string message;
  const auto ends = run_gang(folder, config, sharing(3), [&](NativeTrainer& trainer) {
    for (std::int64_t step = 0; step < 3 && message.empty(); ++step) {
      const auto trained = trainer.train(random_batch(1, StepId{step}));
      if (trained) continue;
      EXPECT_EQ(trained.error().code, ErrorCode::kInvalid);
      message = trained.error().message;
    }
  });
  EXPECT_NE(message.find("not finite"), std::string::npos) << message;
  for (std::size_t rank = 1; rank < ends.size(); ++rank) EXPECT_EQ(ends[rank].error, message);
}

TEST(ShardedTrainer, IsToldToNeedItsShareOfTheMoments) {
  const auto moments = [](int sharing) {
    for (const MemoryPart& part :
         trainer_memory(testing::learner_model(), testing::trainer_config("unused"),
                        device::DeviceKind::kCuda, sharing))
      if (std::string_view(part.name) == "moments") return part.bytes;
    return std::size_t{0};
  };
  EXPECT_EQ(moments(1), 2 * make_manifest(testing::learner_model()).bytes_total);
  EXPECT_EQ(moments(4), moments(1) / 4);
}

}  // namespace
}  // namespace tandem::learner
