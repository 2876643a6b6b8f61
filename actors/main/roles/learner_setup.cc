#include "actors/main/roles/learner_setup.h"

#include <utility>

#include "actors/main/roles/rank_resources.h"
#include "actors/main/roles/role_config.h"
#include "actors/model/checkpoint.h"
#include "actors/rank/rank_failure.h"
#include "runtime/base/rng.h"
#include "runtime/device/cuda_module.h"

namespace tandem::app {

Result<learner::NativeTrainerSetup> learner_setup(const job::JobSpec& job,
                                                  learner::TrainerConfig config,
                                                  device::DeviceKind device) {
  auto threads = make_threads(job.pools.learner.threads_per_actor);
  auto model = model::load_model(job.model.path,
                                 {.init = job.model.init,
                                  .seed = derive_seed(static_cast<std::uint64_t>(job.seed), "init"),
                                  .dtype = dtype_of(job.model),
                                  .threads = threads.get()});
  if (!model) return rank::of_input(model.error());
  auto records = warm_start_records(job, model->config, model->tokenizer);
  if (!records) return rank::of_input(records.error());
  return learner::NativeTrainerSetup{.config = std::move(config),
                                     .model = std::move(*model),
                                     .records = std::move(*records),
                                     .device = device,
                                     .threads = std::move(threads)};
}

std::string device_name(device::DeviceKind device) {
  if (device == device::DeviceKind::kCpu) return "cpu";
  const auto& module = device::cuda_module();
  return module ? (*module)->devices().name : "gpu";
}

void Follower::handle(actor::Context& cx, Follow) {
  const Result<void> ended = trainer_->follow();
  *follows_ = false;
  if (!ended) cx.fail(ended.error());
}

}  // namespace tandem::app
