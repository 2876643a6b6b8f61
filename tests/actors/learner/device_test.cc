// The learner on a GPU: its results equal the CPU's to within roundings and repeat to the bit, and
// any device can go on from its checkpoints.
//
// Where a tolerance is not zero, the devices sum in other orders: a row of rms_norm, a row of
// logits, and a product that is added to its output. That is some ten roundings of 6e-8 from
// embedding to log-probability; other products, attention and AdamW have the CPU's bits there.
//
// Tests actors/learner/native_trainer.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "actors/learner/loss_pass.h"
#include "actors/learner/trainer_checkpoint.h"
#include "actors/learner/trainer_setup.h"
#include "actors/model/parameters.h"
#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "runtime/wire/codec.h"
#include "tests/actors/learner/learner_builder.h"
#include "tests/actors/learner/one_pass.h"
#include "tests/actors/model/tiny_model.h"
#include "tests/runtime/collective/local_shards.h"
#include "tests/runtime/device/cuda_case.h"

namespace tandem::learner {
namespace {

using device::DeviceKind;
using device::DType;
using LearnerOnAGpu = device::CudaCase;

class LearnerOnAGpuIn : public device::CudaCase, public ::testing::WithParamInterface<DType> {};
INSTANTIATE_TEST_SUITE_P(Of, LearnerOnAGpuIn, ::testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& test) { return device::name(test.param); });
using model::testing::must;
using model::testing::scratch_folder;
using testing::furthest;
using testing::kBf16GradientTolerance;
using testing::kBf16LogprobTolerance;
using testing::make_trainer;
using testing::one_pass_config;
using testing::Pass;
using testing::pass_on;
using testing::random_batch;
using testing::relative_error;

constexpr testing::BatchShape kShape{.groups = 3, .n = 3, .prompt_max = 5, .completion_max = 6};
constexpr double kLogprobTolerance = 1e-5;   // for numbers around 3
constexpr double kGradientTolerance = 2e-5;  // relative to the greatest element
constexpr double kWeightTolerance = 1e-5;

TEST_F(LearnerOnAGpu, LogProbabilitiesAndGradientsAreTheCpus) {
  const TrainBatch batch = random_batch(11, StepId{4}, kShape);
  const Pass cpu = pass_on(DeviceKind::kCpu, batch), gpu = pass_on(DeviceKind::kCuda, batch);
  ASSERT_FALSE(cpu.logprobs.empty());
  EXPECT_LE(furthest(gpu.logprobs, cpu.logprobs), kLogprobTolerance);
  EXPECT_NEAR(gpu.loss, cpu.loss, kLogprobTolerance * std::max(1.0, std::abs(cpu.loss)));
  double greatest = 0;
  for (const float g : cpu.gradients) greatest = std::max(greatest, std::abs(double{g}));
  ASSERT_GT(greatest, 1e-3);
  EXPECT_LE(furthest(gpu.gradients, cpu.gradients), kGradientTolerance * greatest);
}

TEST_F(LearnerOnAGpu, Bf16IsF32ToWithinItsRoundings) {
  const TrainBatch batch = random_batch(11, StepId{4}, kShape);
  const Pass f32 = pass_on(DeviceKind::kCpu, batch);
  const Pass bf16 = pass_on(DeviceKind::kCuda, batch, DType::kBF16);
  ASSERT_FALSE(f32.logprobs.empty());
  EXPECT_LE(furthest(bf16.logprobs, f32.logprobs), kBf16LogprobTolerance);
  EXPECT_GT(furthest(bf16.logprobs, f32.logprobs), 1e-4) << "was it computed in bf16?";
  EXPECT_LE(relative_error(bf16.gradients, f32.gradients), kBf16GradientTolerance);
}

TEST_F(LearnerOnAGpu, ComputesEveryFamily) {
  const TrainBatch batch = random_batch(11, StepId{4}, kShape);
  for (const model::Family family : {model::Family::kQwen2, model::Family::kLlama}) {
    SCOPED_TRACE(architecture(family));
    const auto pass = [&](DeviceKind device, DType dtype, bool checkpointing) {
      return pass_on(device, batch, dtype, checkpointing, kernels::Rows::kInvariant, family);
    };
    const Pass cpu = pass(DeviceKind::kCpu, DType::kF32, false);
    const Pass f32 = pass(DeviceKind::kCuda, DType::kF32, false);
    const Pass bf16 = pass(DeviceKind::kCuda, DType::kBF16, false);
    ASSERT_FALSE(cpu.logprobs.empty());
    EXPECT_LE(furthest(f32.logprobs, cpu.logprobs), kLogprobTolerance);
    EXPECT_LE(relative_error(f32.gradients, cpu.gradients), kGradientTolerance);
    // Scores that no norm of q and k bounds are larger, and a rounding moves them further.
    EXPECT_LE(furthest(bf16.logprobs, cpu.logprobs), 2 * kBf16LogprobTolerance);
    EXPECT_LE(relative_error(bf16.gradients, cpu.gradients), kBf16GradientTolerance);
    EXPECT_EQ(pass(DeviceKind::kCuda, DType::kBF16, true).gradients, bf16.gradients);
  }
}

TEST_F(LearnerOnAGpu, CheckpointingChangesNoBit) {
  const TrainBatch batch = random_batch(12, StepId{4}, kShape);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Pass kept = pass_on(DeviceKind::kCuda, batch, dtype);
    const Pass computed = pass_on(DeviceKind::kCuda, batch, dtype, true);
    EXPECT_EQ(computed.logprobs, kept.logprobs);
    EXPECT_EQ(computed.gradients, kept.gradients);
  }
}

// Products that may depend on their rows, with every layer computed twice.
TEST_F(LearnerOnAGpu, FastestProductsDifferByRoundings) {
  const TrainBatch batch = random_batch(12, StepId{4}, kShape);
  const Pass invariant = pass_on(DeviceKind::kCuda, batch);
  const Pass fastest =
      pass_on(DeviceKind::kCuda, batch, DType::kF32, true, kernels::Rows::kFastest);
  EXPECT_LE(furthest(fastest.logprobs, invariant.logprobs), kLogprobTolerance);
  EXPECT_LE(relative_error(fastest.gradients, invariant.gradients), kGradientTolerance);
  if (!device::emulated()) return;  // a real library may find the same algorithms fastest
  EXPECT_NE(fastest.logprobs, invariant.logprobs);
  EXPECT_NE(fastest.gradients, invariant.gradients);
}

std::unique_ptr<NativeTrainer> trainer_on(DeviceKind device, const std::filesystem::path& folder,
                                          DType dtype = DType::kF32) {
  return make_trainer(folder, one_pass_config(folder), nullptr, {}, device, dtype);
}

std::vector<TrainedStep> train_to(NativeTrainer& trainer, std::int64_t end) {
  std::vector<TrainedStep> steps;
  while (trainer.step().value < end) {
    const auto seed = 100 + static_cast<std::uint64_t>(trainer.step().value);
    steps.push_back(must(trainer.train(random_batch(seed, trainer.step(), kShape))));
    EXPECT_EQ(steps.back().checksum, checksum64(trainer.weights()));
  }
  return steps;
}

std::string fingerprint(const std::vector<TrainedStep>& steps) {
  std::string prints;
  for (const TrainedStep& step : steps)
    prints += wire::encode(step.report) + std::to_string(step.checksum);
  return prints;
}

std::vector<float> weights_of(const NativeTrainer& trainer) {
  const std::span<const std::byte> bytes = trainer.weights();
  std::vector<float> weights(bytes.size() / sizeof(float));
  std::memcpy(weights.data(), bytes.data(), bytes.size());
  return weights;
}

TEST_F(LearnerOnAGpu, TrainsAsOnACpu) {
  const auto folder = scratch_folder("train");
  const auto cpu = trainer_on(DeviceKind::kCpu, folder);
  const auto gpu = trainer_on(DeviceKind::kCuda, folder);
  const std::vector<float> begin = weights_of(*cpu);
  EXPECT_EQ(weights_of(*gpu), begin);
  const std::vector<TrainedStep> here = train_to(*cpu, 3), there = train_to(*gpu, 3);
  for (std::size_t i = 0; i < here.size(); ++i) {
    SCOPED_TRACE(i);
    const messages::StepReport &a = there[i].report, &b = here[i].report;
    ASSERT_GT(b.grad_norm, 0);
    EXPECT_NEAR(a.grad_norm, b.grad_norm, kGradientTolerance * b.grad_norm);
    EXPECT_NEAR(a.loss, b.loss, kLogprobTolerance);
    EXPECT_NEAR(*a.entropy, *b.entropy, kLogprobTolerance);
    EXPECT_NEAR(a.logprob_diff_mean, b.logprob_diff_mean, kLogprobTolerance);
    EXPECT_EQ(a.advantages, b.advantages);
  }
  EXPECT_GT(furthest(weights_of(*cpu), begin), 100 * kWeightTolerance) << "nothing was trained";
  EXPECT_LE(furthest(weights_of(*gpu), weights_of(*cpu)), kWeightTolerance);
}

TEST_P(LearnerOnAGpuIn, RepeatsToTheBit_TR1) {
  const auto folder = scratch_folder("repeat");
  const auto once = [&] {
    return fingerprint(train_to(*trainer_on(DeviceKind::kCuda, folder, GetParam()), 3));
  };
  EXPECT_EQ(once(), once());
}

// The host's copy of the weights that a GPU updates: the published weights are the checkpoint's,
// rounded.
TEST_P(LearnerOnAGpuIn, PublishesItsMasterWeights) {
  const auto folder = scratch_folder("published");
  const auto trainer = trainer_on(DeviceKind::kCuda, folder, GetParam());
  for (const std::int64_t end : {0, 2}) {
    train_to(*trainer, end);
    testing::expect_publishes_its_checkpoint(*trainer, GetParam());
  }
}

// Everything that a checkpoint keeps besides the model's directory.
std::vector<std::string> arrays_of(const std::filesystem::path& checkpoint) {
  std::vector<std::string> arrays;
  for (const auto& file : {m_file(checkpoint), v_file(checkpoint), reference_file(checkpoint)})
    arrays.push_back(must(read_file(file)));
  return arrays;
}

TEST_P(LearnerOnAGpuIn, ACheckpointGoesOnAnywhere_TR2) {
  const auto folder = scratch_folder("checkpoint");
  const auto trained = trainer_on(DeviceKind::kCuda, folder, GetParam());
  train_to(*trained, 2);
  const SavedCheckpoint saved = must(trained->save());
  const std::vector<std::string> arrays = arrays_of(saved.directory);
  EXPECT_NE(arrays[0], std::string(arrays[0].size(), '\0')) << "no moments were fetched";
  const std::uint64_t weights = checksum64(trained->weights());
  const std::string rest = fingerprint(train_to(*trained, 4));
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    SCOPED_TRACE(static_cast<int>(device));
    const auto resumed = trainer_on(device, folder, GetParam());
    EXPECT_EQ(must(resumed->restore()), StepId{2});
    EXPECT_EQ(checksum64(resumed->weights()), weights);
    // A checkpoint that is saved at once equals the one that was read.
    EXPECT_EQ(arrays_of(must(resumed->save()).directory), arrays);
    if (device == DeviceKind::kCpu) continue;
    EXPECT_EQ(fingerprint(train_to(*resumed, 4)), rest);
  }
}

TEST_F(LearnerOnAGpu, WarmStartsAsOnACpu) {
  const auto folder = scratch_folder("warm");
  TrainerConfig config = one_pass_config(folder);
  config.warm_start = WarmStartConfig{
      .batch_size = 4, .max_steps = 2, .until = WarmStartUntil{WarmStartMetric::kLoss, 0.0}};
  std::vector<WarmStartRecord> records;  // one of them is held out
  for (std::int32_t a = 2; a < 12; ++a) records.push_back({{a, a + 1}, {a, 1}});
  struct Warm {
    WarmStartSlice last;
    std::vector<float> before, after;
  };
  const auto warm_on = [&](DeviceKind device) {
    const auto trainer = make_trainer(folder, config, nullptr, records, device);
    Warm warm{.last = {}, .before = weights_of(*trainer), .after = {}};
    while (!warm.last.done) warm.last = must(trainer->warm_start());
    warm.after = weights_of(*trainer);
    return warm;
  };
  const Warm cpu = warm_on(DeviceKind::kCpu), gpu = warm_on(DeviceKind::kCuda);
  EXPECT_EQ(gpu.last.step, 2);
  EXPECT_NEAR(gpu.last.loss, cpu.last.loss, 1e-4);
  ASSERT_TRUE(cpu.last.metric && gpu.last.metric);
  // AdamW's usual eps (see one_pass_config): where a gradient is noise, weights are 2e-4 apart at
  // most.
  EXPECT_NEAR(*gpu.last.metric, *cpu.last.metric, 1e-4);
  // RL starts from these weights, on the host as on the device.
  const double moved = furthest(gpu.after, gpu.before);
  EXPECT_GT(moved, 2e-4);
  EXPECT_LE(furthest(gpu.after, cpu.after), moved / 100);
}

// Ranks on one GPU here; where they have one each, only the exchange is another.
constexpr BucketLimits kBuckets{.floats_min = 1000, .floats_max = 2500};

testing::GangShape two_ranks(DeviceKind device, DType dtype) {
  return {.ranks = 2,
          .shards = collective::make_local_shards(2),
          .buckets = kBuckets,
          .device = device,
          .dtype = dtype};
}

TEST_P(LearnerOnAGpuIn, RanksThatShareTheUpdateHaveTheSameWeights_SU2_TR1) {
  const auto folder = scratch_folder("shared");
  const TrainerConfig config = one_pass_config(folder);
  const auto run = [&](DeviceKind device) {
    std::string print;
    const auto ends = testing::run_gang(
        folder, config, two_ranks(device, GetParam()),
        [&](NativeTrainer& trainer) { print = fingerprint(train_to(trainer, 3)); });
    for (const testing::RankEnd& end : ends) {
      EXPECT_EQ(end.error, "");
      EXPECT_EQ(end.weights, ends[0].weights);
    }
    return std::pair(print, ends[0].weights);
  };
  const auto gpu = run(DeviceKind::kCuda);
  EXPECT_EQ(run(DeviceKind::kCuda), gpu);
  if (GetParam() != DType::kF32) return;
  const auto floats = [](const std::vector<std::byte>& bytes) {
    return std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
  };
  EXPECT_LE(furthest(floats(gpu.second), floats(run(DeviceKind::kCpu).second)), kWeightTolerance);
}

// Steps of a warm start publish nothing: the weights of one are on their way in the forward of the
// next.
TEST_P(LearnerOnAGpuIn, RanksThatShareTheUpdateWarmStartToTheSameWeights_SU2_TR1) {
  const auto folder = scratch_folder("shared-warm");
  TrainerConfig config = one_pass_config(folder);
  config.warm_start = WarmStartConfig{.batch_size = 4, .max_steps = 4, .until = std::nullopt};
  const auto run = [&](testing::GangShape gang) {
    for (std::int32_t a = 2; a < 12; ++a) gang.records.push_back({{a, a + 1}, {a, 1}});
    const auto ends =
        testing::run_gang(folder, config, std::move(gang), [](NativeTrainer& trainer) {
          while (!must(trainer.warm_start()).done) {
          }
          train_to(trainer, 1);
        });
    for (const testing::RankEnd& end : ends) {
      EXPECT_EQ(end.error, "");
      EXPECT_EQ(end.weights, ends[0].weights);
    }
    return ends[0].weights;
  };
  const auto gpu = run(two_ranks(DeviceKind::kCuda, GetParam()));
  EXPECT_EQ(run(two_ranks(DeviceKind::kCuda, GetParam())), gpu);
}

// The policy's weights become numbers in parts, by work of the stream that the pass is computed on.
TEST_P(LearnerOnAGpuIn, APassWaitsForEachPartOfItsWeights_DE5) {
  model::ModelConfig model = testing::learner_model();
  ASSERT_TRUE(compute_in(GetParam(), model));
  const TrainerConfig config = one_pass_config("unused");
  const device::Arena host = model::testing::random_weights(model, 3);
  const auto on_gpu = [&](const char* purpose) {
    return must(device::Arena::allocate(make_manifest(model), purpose,
                                        device::operand_memory(DeviceKind::kCuda)));
  };
  const device::Arena master = on_gpu("weights"), sums = on_gpu("gradients");
  const std::size_t bytes = host.bytes().size();
  model::Weights weights =
      must(model::Weights::allocate(model, model::WeightsUse::kTraining, DeviceKind::kCuda));
  LossPass pass = must(LossPass::make(model, config, DeviceKind::kCuda, {}));
  const device::Queue queue(DeviceKind::kCuda);
  const TrainBatch batch = random_batch(11, StepId{4}, kShape);
  const auto micro = must(
      pack(share_of(batch, compute_advantages(config.algorithm, config.batch, batch).learns, 0, 1),
           config.rows_max));
  const auto gradients_of = [&](const model::WeightsNeeded& needed) {
    device::zero(queue.stream(), sums.flat().data, bytes);
    pass.add_supervised(queue.stream(), weights, micro.front(), 10, sums, {.needed = needed});
    std::vector<float> gradients(bytes / sizeof(float));
    device::copy(queue.stream(), gradients.data(), sums.flat().data, bytes);
    device::synchronize(queue.stream());
    return gradients;
  };
  const auto put = [&](std::span<const std::byte> from, std::int64_t begin, std::int64_t end) {
    device::copy(queue.stream(), master.flat().f32() + begin,
                 from.data() + static_cast<std::size_t>(begin) * sizeof(float),
                 static_cast<std::size_t>(end - begin) * sizeof(float));
    weights.install_master(queue.stream(), master, {.begin = begin, .end = end});
  };
  const auto floats = static_cast<std::int64_t>(bytes / sizeof(float));
  put(host.bytes(), 0, floats);
  const std::vector<float> whole = gradients_of({});
  const std::vector<std::byte> none(bytes, std::byte{0xff});  // NaNs
  put(none, 0, floats);
  std::int64_t begin = 0;
  EXPECT_EQ(gradients_of([&](std::int64_t end) {
              put(host.bytes(), begin, end);
              begin = end;
            }),
            whole);
  EXPECT_EQ(begin, floats);
}

TEST_P(LearnerOnAGpuIn, RanksThatShareTheUpdateSaveWhatOneRankGoesOnFrom_TR2) {
  const auto folder = scratch_folder("rejoined");
  const TrainerConfig config = one_pass_config(folder);
  std::vector<std::string> arrays;
  std::string rest;
  const auto gang = [&](const std::function<void(NativeTrainer&)>& drive) {
    for (const auto& end :
         testing::run_gang(folder, config, two_ranks(DeviceKind::kCuda, GetParam()), drive))
      EXPECT_EQ(end.error, "");
  };
  gang([&](NativeTrainer& trainer) {
    train_to(trainer, 2);
    arrays = arrays_of(must(trainer.save()).directory);
    rest = fingerprint(train_to(trainer, 4));
  });
  EXPECT_NE(arrays[0], std::string(arrays[0].size(), '\0')) << "no moments were gathered";
  const auto alone = trainer_on(DeviceKind::kCuda, folder, GetParam());
  EXPECT_EQ(must(alone->restore()), StepId{2});
  EXPECT_EQ(arrays_of(must(alone->save()).directory), arrays);
  gang([&](NativeTrainer& trainer) {
    EXPECT_EQ(trainer.step(), StepId{2});
    EXPECT_EQ(fingerprint(train_to(trainer, 4)), rest);
  });
}

TEST_F(LearnerOnAGpu, IsRefusedWithTheArithmeticWhereItCannotFit) {
  const auto folder = scratch_folder("memory");
  TrainerConfig config = one_pass_config(folder);
  model::testing::write_model_folder(folder / "model", testing::learner_model());
  config.rows_max = 1 << 30;
  const std::size_t before = device::memory_info(DeviceKind::kCuda).free_bytes;
  const auto made = NativeTrainer::make(
      {.config = config,
       .model = must(model::load_model(folder / "model", {model::InitMode::kRandom, 3})),
       .device = DeviceKind::kCuda});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(made.error().where, "learner.max_token_len");
  for (const char* part : {"weights ", "gradients ", "moments ", "activations ", " are free"})
    EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
  EXPECT_EQ(device::memory_info(DeviceKind::kCuda).free_bytes, before) << "nothing was taken";
}

std::size_t told(const model::ModelConfig& model, const TrainerConfig& config, int sharing = 1) {
  std::size_t bytes = 0;
  for (const MemoryPart& part : trainer_memory(model, config, DeviceKind::kCuda, sharing))
    bytes += part.bytes;
  return bytes;
}

TEST(TrainerSetup, CountsWhatBroadcastsTake) {
  TrainerConfig config = one_pass_config(scratch_folder("broadcasts"));
  const std::size_t without = told(testing::learner_model(), config);
  config.broadcast_bytes = 4096;
  EXPECT_EQ(told(testing::learner_model(), config), without + 4096);
}

// The memory that is allocated is the memory that was planned, except for tables.
TEST_P(LearnerOnAGpuIn, TakesTheMemoryThatWasTold) {
  if (!device::emulated()) GTEST_SKIP() << "a driver hands memory out in pages of 2 MiB";
  const auto folder = scratch_folder("told");
  model::ModelConfig model = testing::learner_model();
  ASSERT_TRUE(compute_in(GetParam(), model));
  TrainerConfig config = one_pass_config(folder);
  for (const bool checkpointing : {false, true}) {
    config.enable_gradient_checkpointing = checkpointing;
    const std::size_t before = device::memory_info(DeviceKind::kCuda).free_bytes;
    const auto trainer = make_trainer(folder, config, nullptr, {}, DeviceKind::kCuda, GetParam());
    const std::size_t taken = before - device::memory_info(DeviceKind::kCuda).free_bytes;
    EXPECT_GE(taken, told(model, config));
    EXPECT_LE(static_cast<double>(taken), 1.1 * static_cast<double>(told(model, config)));
  }
  TrainerConfig publishing = config;  // by CUDA IPC, which takes so many arenas more
  publishing.versions_on_device = 3;
  EXPECT_EQ(told(model, publishing) - told(model, config),
            3 * published_manifest(model).bytes_total);
}

TEST_F(LearnerOnAGpu, RanksThatShareTheUpdateTakeTheMemoryThatWasTold) {
  if (!device::emulated()) GTEST_SKIP() << "a driver hands memory out in pages of 2 MiB";
  const auto folder = scratch_folder("told");
  const TrainerConfig config = one_pass_config(folder);
  auto collectives = collective::make_local_collectives(2);
  auto shards = collective::make_local_shards(2);
  const std::size_t before = device::memory_info(DeviceKind::kCuda).free_bytes;
  std::vector<std::unique_ptr<NativeTrainer>> ranks;
  for (std::size_t rank = 0; rank < 2; ++rank)
    ranks.push_back(make_trainer(folder, config, std::move(collectives[rank]), {},
                                 DeviceKind::kCuda, DType::kF32,
                                 {.shards = std::move(shards[rank]), .buckets = kBuckets}));
  const std::size_t taken = before - device::memory_info(DeviceKind::kCuda).free_bytes;
  const model::ModelConfig model = testing::learner_model();
  EXPECT_GE(taken, 2 * told(model, config, 2));
  EXPECT_LE(static_cast<double>(taken), 1.1 * 2 * static_cast<double>(told(model, config, 2)));
  EXPECT_LT(told(model, config, 2), told(model, config));
}

}  // namespace
}  // namespace tandem::learner
