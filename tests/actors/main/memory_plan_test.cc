// The plan of a job's memory agrees with the functions that allocate it, and a change that the plan
// proposes takes less.
#include "actors/main/memory_plan.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "actors/controller/controller_core.h"
#include "actors/job/load_job.h"
#include "actors/learner/trainer_setup.h"
#include "actors/main/job_shape.h"
#include "actors/main/roles/role_config.h"
#include "actors/model/kv_cache.h"
#include "actors/model/parameters.h"
#include "actors/model/weights.h"
#include "actors/rollout/native_engine.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using device::DeviceKind;
using messages::Role;
using scheduler::MemoryDemand;
using scheduler::MemoryUse;

const fs::path kJobs = fs::path(TANDEM_SOURCE_DIR) / "configs";
constexpr std::int64_t kGib = std::int64_t{1} << 30;

job::JobSpec job_with(const std::vector<std::string>& sets = {}) {
  auto job = job::load_job(kJobs / "arithmetic.yaml", sets);
  EXPECT_TRUE(job) << render(job.error());
  return job->spec;
}

PlannedModel model_of(const job::JobSpec& job) {
  auto config = model::read_model_config(job.model.path);
  EXPECT_TRUE(config && model::compute_in(dtype_of(job.model), *config));
  return planned_model(*config, job.model.path);
}

MemoryDemand plan_of(const job::JobSpec& job, Role role) {
  return plan_memory(job, model_of(job), Hosts::kSeveral).at(role);
}

// The 0.6B job of configs/gpu in f32 on CPUs.
job::JobSpec job_of_0_6b() {
  const std::vector<std::string> sets{"model.dtype=float32", "pools.rollout.gpus_per_actor=0",
                                      "pools.learner.gpus_per_actor=0"};
  auto job = job::load_job(kJobs / "gpu/qwen3_0.6b.yaml", sets);
  EXPECT_TRUE(job) << render(job.error());
  return job->spec;
}

// 0 where there is no such row.
std::int64_t row_of(const MemoryDemand& demand, const std::string& name) {
  for (const scheduler::MemoryRow& row : demand.rows)
    if (row.name == name) return row.bytes;
  return 0;
}

std::int64_t signed_bytes(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

// Plans for CPUs; the parameter is the setting of model.dtype.
class MemoryPlanIn : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, MemoryPlanIn,
                         testing::Values("model.dtype=float32", "model.dtype=bfloat16"),
                         [](const auto& test) { return std::string(test.param).substr(12); });

TEST_P(MemoryPlanIn, ARolloutTakesWhatItsEngineAllocates) {
  const job::JobSpec job = job_with({GetParam()});
  const PlannedModel model = model_of(job);
  MemoryDemand plan = plan_memory(job, model, Hosts::kSeveral).at(Role::kRollout);
  scheduler::settle_pages(plan, 8 * kGib);
  rollout::EngineConfig engine = engine_config(job, 8 * kGib);
  const std::int64_t pages = rollout::NativeEngine::pages_taken(model.config, engine);
  EXPECT_EQ(plan.paged->pages, pages);
  EXPECT_GE(pages, plan.paged->pages_min);
  const std::int64_t published = signed_bytes(model::published_manifest(model.config).bytes_total);
  const std::int64_t allocated =
      published + signed_bytes(rollout::NativeEngine::bytes_beside_pages(model.config, engine,
                                                                         DeviceKind::kCpu) +
                               model::KvCache::page_bytes(model.config, engine.args.block_size) *
                                   static_cast<std::size_t>(pages));
  EXPECT_EQ(row_of(plan, "changes of weights"), published / 2) << "it fetches from another host";
  EXPECT_EQ(scheduler::reserved_bytes(plan),
            allocated + published / 2 + row_of(plan, "tokenizer") + kRankProcessBytes);
  EXPECT_EQ(
      row_of(plan, "tokenizer"),
      signed_bytes(fs::file_size(job.model.path / "tokenizer.json")) * kTokenizerBytesPerFileByte);
}

// Where all ranks share a host a rollout packs its weights from the published version.
TEST(MemoryPlan, VersionsArriveWhereTheyMayComeFromAnotherHost) {
  const auto arriving = [](const char* type, Hosts hosts) {
    const job::JobSpec job = job_with({std::string("weight_broadcast.type=") + type});
    return row_of(plan_memory(job, model_of(job), hosts).at(Role::kRollout), "weights that arrive");
  };
  const job::JobSpec job = job_with();
  const auto version = signed_bytes(model::published_manifest(model_of(job).config).bytes_total);
  EXPECT_EQ(arriving("auto", Hosts::kSeveral), version);
  EXPECT_EQ(arriving("auto", Hosts::kOne), 0);
  EXPECT_EQ(arriving("tcp", Hosts::kOne), version);
  EXPECT_EQ(arriving("disk", Hosts::kOne), 0);
  EXPECT_EQ(arriving("disk", Hosts::kSeveral), version) << "its file system may be a network's";
  EXPECT_EQ(arriving("shm", Hosts::kSeveral), 0);
}

TEST(MemoryPlan, PagesAreTheShareThatTheRolloutsDivide) {
  for (const std::int64_t replicas : {1, 3}) {
    const job::JobSpec job = job_with(
        {"rollout.replicas=" + std::to_string(replicas), "rollout.gpu_memory_utilization=0.002"});
    const PlannedModel model = model_of(job);
    MemoryDemand plan = plan_memory(job, model, Hosts::kSeveral).at(Role::kRollout);
    scheduler::settle_pages(plan, kGib);
    EXPECT_EQ(plan.paged->pages,
              rollout::NativeEngine::pages_taken(model.config, engine_config(job, kGib)))
        << replicas;
  }
}

TEST_P(MemoryPlanIn, ALearnerTakesWhatItsTrainerAllocates) {
  const job::JobSpec job =
      job_with({"learner.max_token_len=64", "algorithm.use_kl_loss=true", GetParam()});
  const PlannedModel model = model_of(job);
  const MemoryDemand plan = plan_memory(job, model, Hosts::kSeveral).at(Role::kLearner);
  const learner::TrainerConfig trainer = trainer_config(job, {"job", "run"}, false);
  std::int64_t lasting = 0;
  for (const learner::MemoryPart& part :
       learner::trainer_memory(model.config, trainer, DeviceKind::kCpu)) {
    EXPECT_EQ(row_of(plan, part.name), signed_bytes(part.bytes)) << part.name;
    lasting += signed_bytes(part.bytes);
  }
  const std::int64_t published = signed_bytes(model::published_manifest(model.config).bytes_total);
  const bool rounded = job.model.dtype == job::ModelDtype::kBfloat16;
  EXPECT_EQ(row_of(plan, "weights in the published dtype"), rounded ? published : 0);
  EXPECT_EQ(row_of(plan, "the reference as published"), published);
  EXPECT_EQ(row_of(plan, "published versions"), (job.async.max_staleness + 2) * published);
  lasting += published + row_of(plan, "weights in the published dtype") +
             row_of(plan, "published versions") + published / 2 + row_of(plan, "batch") +
             row_of(plan, "tokenizer") + kRankProcessBytes;
  EXPECT_EQ(scheduler::reserved_bytes(plan), lasting) << "saving and restoring take nothing more";
}

// On a CPU a micro-batch ends at 512 rows, or with one group.
TEST(MemoryPlan, ActivationsAreThoseOfTheLargestForward) {
  const std::int64_t few =
      row_of(plan_of(job_with({"learner.max_token_len=512"}), Role::kLearner), "activations");
  EXPECT_EQ(row_of(plan_of(job_with(), Role::kLearner), "activations"), few);
  const job::JobSpec large = job_with({"rollout.n=128", "data.max_response_length=16"});
  EXPECT_GT(row_of(plan_of(large, Role::kLearner), "activations"), 3 * few);
}

TEST(MemoryPlan, VersionsAreWhereTheJobPutsThem) {
  const job::JobSpec files = job_with({"weight_broadcast.type=disk"});
  EXPECT_EQ(row_of(plan_of(files, Role::kLearner), "published versions"), 0);
  const job::JobSpec fixed = job_with({"async.schedule=fixed_lag", "async.max_staleness=3"});
  const MemoryDemand plan = plan_of(fixed, Role::kLearner);
  const std::int64_t published =
      signed_bytes(model::published_manifest(model_of(fixed).config).bytes_total);
  EXPECT_EQ(row_of(plan, "older versions"), 3 * published);
  EXPECT_EQ(row_of(plan, "published versions"), 5 * published);
}

TEST(MemoryPlan, OfARankOnAGpuWhatItKeepsOnTheHost) {
  auto job = job::load_job(kJobs / "gpu/qwen3_0.6b.yaml", {});
  ASSERT_TRUE(job) << render(job.error());
  const PlannedModel model = model_of(job->spec);
  const auto plan = plan_memory(job->spec, model, Hosts::kSeveral);
  EXPECT_FALSE(plan.at(Role::kRollout).paged);
  EXPECT_EQ(row_of(plan.at(Role::kRollout), "activations"), 0);
  const MemoryDemand& learner = plan.at(Role::kLearner);
  EXPECT_EQ(row_of(learner, "weights"),
            signed_bytes(model::make_manifest(model.config).bytes_total));
  EXPECT_EQ(row_of(learner, "gradients"), 0);
  EXPECT_EQ(row_of(learner, "weights in the published dtype"),
            signed_bytes(model::published_manifest(model.config).bytes_total));
}

TEST(MemoryPlan, OptionsKeepTheRulesAndTakeLess) {
  const job::JobSpec job = job_of_0_6b();
  const PlannedModel model = model_of(job);
  const auto asked = plan_memory(job, model, Hosts::kSeveral);
  const auto options = memory_options(job, model, Hosts::kSeveral);
  ASSERT_FALSE(options.empty());
  EXPECT_EQ(options.front().setting, "learner.enable_gradient_checkpointing=true");
  for (const scheduler::MemoryOption& option : options) {
    std::int64_t before = 0, after = 0;
    for (const auto& [role, demand] : asked) {
      before += scheduler::reserved_bytes(demand);
      after += scheduler::reserved_bytes(option.demand.at(name(role)));
    }
    EXPECT_LE(after, before) << option.setting;
  }
}

// The case is `tandem node --memory 12GiB` with the 0.6B job in f32.
TEST(MemoryPlan, The06BJobInF32IsRefusedOn12GiBWithTheTable) {
  const job::JobSpec job = job_of_0_6b();
  controller::JobShape shape = job_shape(job);
  add_memory_plan(job, model_of(job), Hosts::kSeveral, shape);
  const auto verdict_on = [&shape](std::int64_t bytes) {
    controller::ControllerCore core(1);
    const node::NodeUp node{
        .node = "a", .incarnation = {1}, .cpus = 8, .memory_bytes = bytes, .pid = 1};
    EXPECT_TRUE(core.step(node, Time{}).has_value());
    return core.accepted(shape);
  };
  const auto refused = verdict_on(12 * kGib);
  ASSERT_FALSE(refused);
  EXPECT_EQ(exit_code(refused.error().code), 2);
  for (const char* part :
       {"gradients", "moments", "activations", "published versions", "KV pages", "learner"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  EXPECT_FALSE(refused.error().help.empty());
  EXPECT_TRUE(verdict_on(256 * kGib).has_value());
}

}  // namespace
}  // namespace tandem::app
