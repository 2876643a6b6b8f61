// Builders for tests of gangs whose ranks share AdamW's work: small buckets, trainers that are
// driven for a few steps, and the state that they keep; and an exchange of shards that a test can
// listen to and cut.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/learner/trainer_checkpoint.h"
#include "runtime/base/file.h"
#include "tests/actors/learner/learner_builder.h"
#include "tests/runtime/collective/local_shards.h"

namespace tandem::learner::testing {

// The tiny model has 16,000 floats: about eight buckets, cut by both limits.
constexpr BucketLimits kSmall{.floats_min = 1000, .floats_max = 2500};

inline GangShape sharing(int ranks, const BucketLimits& buckets = kSmall) {
  return {.ranks = ranks, .shards = collective::make_local_shards(ranks), .buckets = buckets};
}

inline GangShape replicated(int ranks) { return {.ranks = ranks}; }

inline TrainerConfig config_of(const std::filesystem::path& folder, double grad_clip = 0) {
  TrainerConfig config = trainer_config(folder);
  config.optimizer.weight_decay = 0.01;
  config.optimizer.grad_clip = grad_clip;
  return config;
}

// Everything that a rank keeps between steps, as a checkpoint has it.
struct Kept {
  std::string weights, m, v;
  bool operator==(const Kept&) const = default;
};

inline Kept kept_in(const std::filesystem::path& checkpoint) {
  const auto content = [](const std::filesystem::path& file) {
    const auto bytes = read_file(file);
    EXPECT_TRUE(bytes) << file;
    return bytes ? *bytes : std::string();
  };
  return {content(checkpoint / "model.safetensors"), content(m_file(checkpoint)),
          content(v_file(checkpoint))};
}

inline Kept save(NativeTrainer& trainer) {
  const auto saved = trainer.save();
  EXPECT_TRUE(saved) << saved.error().message;
  return saved ? kept_in(saved->directory) : Kept{};
}

// The norms before clipping of the steps that it takes.
inline std::vector<double> train_to(NativeTrainer& trainer, std::int64_t end,
                                    const BatchShape& shape = {}) {
  std::vector<double> norms;
  while (trainer.step().value < end) {
    const auto seed = 100 + static_cast<std::uint64_t>(trainer.step().value);
    const auto trained = trainer.train(random_batch(seed, trainer.step(), shape));
    EXPECT_TRUE(trained) << trained.error().message;
    if (!trained) break;
    norms.push_back(trained->report.grad_norm);
  }
  return norms;
}

inline void expect_one_end(const std::vector<RankEnd>& ends) {
  for (const RankEnd& end : ends) {
    EXPECT_EQ(end.error, "");
    EXPECT_EQ(end.weights, ends.front().weights) << "ranks have different weights";
  }
}

inline std::vector<WarmStartRecord> few_records() {
  std::vector<WarmStartRecord> records;
  for (std::int32_t a = 2; a < 12; ++a) records.push_back({{a, a + 1}, {a, 1}});
  return records;
}

// Wraps another exchange and tells the Ear of the calls. From call number `cut_at` on they fail,
// and with them those of the other ranks.
class Watched final : public collective::ShardExchange {
 public:
  struct Ear {
    std::optional<int> cut_at = {};
    std::function<void()> on_sum = [] {};
    std::function<void()> on_wait = [] {};
  };
  Watched(std::unique_ptr<collective::ShardExchange> of, Ear ear)
      : exchange_(std::move(of)),
        ear_(std::move(ear)),
        rank_(exchange_->rank()),
        size_(exchange_->size()) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Result<void> reduce_scatter(const device::TensorView& bucket,
                              const device::Stream& producer) override {
    ear_.on_sum();
    return call() ? exchange_->reduce_scatter(bucket, producer) : cut();
  }
  Result<void> all_gather(const device::TensorView& bucket,
                          const device::Stream& producer) override {
    return call() ? exchange_->all_gather(bucket, producer) : cut();
  }
  Result<void> hold_back(const device::Stream& consumer, std::uint64_t calls) override {
    return exchange_ ? exchange_->hold_back(consumer, calls) : cut();
  }
  Result<void> wait() override {
    ear_.on_wait();
    return exchange_ ? exchange_->wait() : cut();
  }

 private:
  bool call() {
    if (ear_.cut_at && calls_++ >= *ear_.cut_at) exchange_.reset();
    return exchange_ != nullptr;
  }
  static Result<void> cut() { return Error{.message = "the test's link is cut"}; }

  std::unique_ptr<collective::ShardExchange> exchange_;
  const Ear ear_;
  const int rank_, size_;
  int calls_ = 0;
};

}  // namespace tandem::learner::testing
