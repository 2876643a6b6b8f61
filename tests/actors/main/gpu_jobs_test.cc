// The jobs of configs/gpu: that they load, are of the shapes that they are named for, and fit on
// one GPU with rollout and learner together, by the arithmetic that a learner is refused with.
//
// Tests actors/job/load_job.h, actors/main/job_inputs.h.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "actors/job/load_job.h"
#include "actors/learner/trainer_setup.h"
#include "actors/main/job_shape.h"
#include "actors/main/roles/role_config.h"
#include "actors/model/checkpoint.h"
#include "actors/model/kv_cache.h"
#include "actors/rollout/native_engine.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using device::DeviceKind;

const fs::path kConfigs = fs::path(TANDEM_SOURCE_DIR) / "configs";

Result<job::LoadedJob> load(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(kConfigs / "gpu" / name).rdbuf();
  return job::parse_job(
      {.yaml = text.str(), .origin = name, .base = kConfigs / "gpu", .set_base = kConfigs});
}

struct Shipped {
  const char* job;
  std::size_t parameters;
  std::int64_t hidden, intermediate;
  std::size_t gpu_gibibytes;  // the memory of the smallest GPU that the job is said to run on
};

class GpuJobs : public testing::TestWithParam<Shipped> {};

TEST_P(GpuJobs, AreOfTheShapeAndFitOneGpu) {
  const std::size_t gpu = GetParam().gpu_gibibytes << 30;
  const auto job = load(GetParam().job);
  ASSERT_TRUE(job) << render(job.error());
  const auto model = model::load_model_info(job->spec.model.path, dtype_of(job->spec.model));
  ASSERT_TRUE(model) << render(model.error());
  EXPECT_EQ(model->manifest.elements(), GetParam().parameters);
  EXPECT_EQ(model->config.hidden_size, GetParam().hidden);
  EXPECT_EQ(model->config.intermediate_size, GetParam().intermediate);
  EXPECT_EQ(model->config.dtype, device::DType::kBF16);
  EXPECT_EQ(model->config.layers, 28);
  EXPECT_EQ(model->config.vocab_size, 151936);

  const controller::JobShape shape = job_shape(job->spec);
  for (const auto& role : {messages::Role::kRollout, messages::Role::kLearner})
    EXPECT_EQ(shape.per_rank.at(role), scheduler::resources({.cpus = 0.5, .gpus = 0.5}));
  const auto rollout =
      static_cast<std::size_t>(job->spec.rollout.gpu_memory_utilization * static_cast<double>(gpu));
  const learner::TrainerConfig trainer = trainer_config(job->spec, {"job", "run"}, false);
  const auto parts = learner::trainer_memory(model->config, trainer, DeviceKind::kCuda);
  const auto fits = learner::check_trainer_memory(parts, gpu - rollout, gpu, trainer);
  EXPECT_TRUE(fits) << render(fits.error());
  // There must be pages for every sequence of the greatest length, beside weights and workspace.
  const rollout::EngineConfig engine = engine_config(job->spec, 0);
  const std::size_t beside =
      rollout::NativeEngine::bytes_beside_pages(model->config, engine, DeviceKind::kCuda);
  const std::int64_t positions = engine.max_prompt_length + engine.max_response_length;
  const std::int64_t pages =
      engine.args.max_num_seqs * ((positions - 1) / engine.args.block_size + 2);
  const std::size_t page = model::KvCache::page_bytes(model->config, engine.args.block_size);
  EXPECT_LE(beside + static_cast<std::size_t>(pages) * page, rollout);
}

// The parameters of transformers' models of these names, the tied head counted once.
INSTANTIATE_TEST_SUITE_P(
    Qwen3, GpuJobs,
    testing::Values(Shipped{"qwen3_0.6b.yaml", 596'049'920, 1024, 3072, 79},
                    Shipped{"qwen3_1.7b.yaml", 1'720'574'976, 2048, 6144, 139}),
    [](const auto& param) { return "hidden" + std::to_string(param.param.hidden); });

TEST(LearnerKeys, SayHowManyNonfiniteStepsTheTrainerSkips) {
  job::JobSpec job;
  const auto skipped = [&] {
    return trainer_config(job, {"job", "run"}, false).nonfinite_steps_max;
  };
  EXPECT_EQ(skipped(), learner::TrainerConfig{}.nonfinite_steps_max);
  for (const std::int64_t steps : {0, 2}) {
    job.learner.max_nonfinite_steps = steps;
    EXPECT_EQ(skipped(), steps);
  }
}

// Who takes part in communicators of NCCL, and where weights arrive.
TEST(NcclJobs, AreToldToTheControllerAndToTheActors) {
  job::JobSpec job;
  const controller::JobShape plain = job_shape(job);
  EXPECT_TRUE(plain.nccl_roles.empty());
  job.pools.learner.gpus_per_actor = 1;
  job.pools.rollout.gpus_per_actor = 1;
  EXPECT_TRUE(job_shape(job).nccl_roles.empty());
  job.learner.ranks = 2;
  EXPECT_EQ(job_shape(job).nccl_roles, std::set{messages::Role::kLearner});
  EXPECT_FALSE(engine_config(job, 1 << 30).weights_arrive_on_device);
  job.weight_broadcast.type = job::BroadcastType::kNccl;
  EXPECT_EQ(job_shape(job).nccl_roles,
            (std::set{messages::Role::kLearner, messages::Role::kRollout}));
  EXPECT_TRUE(engine_config(job, 1 << 30).weights_arrive_on_device);
  EXPECT_EQ(weights_family(job, {"job", "run"}).type, weights::WeightsType::kNccl);
  EXPECT_EQ(trainer_config(job, {"job", "run"}, false).versions_on_device,
            learner::TrainerConfig{}.versions_on_device);
  job.pools.learner.gpus_per_actor = 0;
  job.weight_broadcast.type = job::BroadcastType::kAuto;
  EXPECT_TRUE(job_shape(job).nccl_roles.empty()) << "ranks on CPUs need none";
}

}  // namespace
}  // namespace tandem::app
