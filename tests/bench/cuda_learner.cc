// The learner on a GPU, with random weights, on groups of 8 that are one packed forward of 4096
// rows each:
//   cuda/learner/pass/…   forward, loss and backward of one such group
//   cuda/learner/step/…   whole steps of NativeTrainer: that for every group of a batch, the norm,
//                         AdamW, and the weights' way to the host, where they are checked
//
// tokens_per_second counts rows, of which the prompt's are computed once for the group. Operations
// are 6 for each row and element of a layer's matrices, 6 for each row with a loss and element of
// the head, and 12 for each pair of query and key under the mask and channel of the queries, in
// each layer: a forward's 2 or 4 and twice that backward, nothing for what is computed again. Their
// rate over that of large bf16 products is the MFU.
#include <algorithm>

#include "actors/learner/advantage.h"
#include "actors/learner/loss_pass.h"
#include "actors/learner/native_trainer.h"
#include "actors/learner/packing.h"
#include "actors/model/parameters.h"
#include "tests/bench/cuda_model.h"
#include "tests/bench/workload.h"

namespace tandem::bench {
namespace {

using device::DeviceKind;
using learner::TrainBatch;
using learner::TrainerConfig;

constexpr std::int64_t kGroup = 8;

std::int64_t rows_of_group() {
  return sizes().learner_prompt + kGroup * (sizes().learner_completion - 1);
}

double operations_of_group(const DecoderShape& s) {
  const auto prompt = static_cast<double>(sizes().learner_prompt);
  const auto own = static_cast<double>(sizes().learner_completion - 1);
  const double pairs = prompt * (prompt + 1) / 2 + kGroup * (own * prompt + own * (own + 1) / 2);
  const double with_loss = kGroup * own + 1;
  return 6 * layer_elements(s) * static_cast<double>(rows_of_group()) +
         6 * with_loss * static_cast<double>(s.vocab * s.hidden) +
         12 * pairs * static_cast<double>(s.q_width() * s.layers);
}

TrainBatch batch_of(const DecoderShape& shape, StepId step, std::int64_t groups) {
  return random_batch(step, {.groups = groups,
                             .trajectories = kGroup,
                             .prompt = sizes().learner_prompt,
                             .completion = sizes().learner_completion,
                             .vocab = shape.vocab});
}

TrainerConfig trainer_config() {
  TrainerConfig config;
  config.optimizer.lr = 1e-6;
  config.steps_total = 1000;
  config.rows_max = rows_of_group();
  config.positions_max = sizes().learner_prompt + sizes().learner_completion;
  config.checkpoints.resume = learner::ResumeMode::kDisable;
  return config;
}

device::Arena host_weights(const model::ModelConfig& config, const device::Manifest& manifest) {
  device::Arena arena = must(device::Arena::allocate(manifest, "the model's weights"));
  fill_weights(config, manifest, arena.bytes());
  return arena;
}

void report_training(benchmark::State& state, const DecoderShape& shape, double seconds_per_group) {
  const double rows = static_cast<double>(rows_of_group());
  // The limit is the tokens per second if the operations of a group ran at the products' rate.
  report(state, {.counter = "tokens_per_second",
                 .rate = rows / seconds_per_group,
                 .limit = rows * limits().gemm_items_per_second / operations_of_group(shape),
                 .aim = 0.4});
}

void pass(benchmark::State& state, const DecoderShape& shape) {
  const model::ModelConfig model = model_config(shape);
  const TrainerConfig config = trainer_config();
  const device::Arena weights = host_weights(model, model::published_manifest(model));
  const device::Arena gradients = must(device::Arena::allocate(
      model::make_manifest(model), "gradients", device::MemoryKind::kDevice));
  model::Weights policy =
      must(model::Weights::allocate(model, model::WeightsUse::kTraining, DeviceKind::kCuda));
  learner::LossPass loss = must(learner::LossPass::make(model, config, DeviceKind::kCuda, {}));
  policy.install(gpu(), weights.bytes());
  device::synchronize(gpu());

  const TrainBatch batch = batch_of(shape, StepId{0}, 1);
  const learner::BatchAdvantages advantages =
      learner::compute_advantages(config.algorithm, config.batch, batch);
  const auto micro_batches =
      must(learner::pack(learner::share_of(batch, advantages.learns, 0, 1), config.rows_max));
  if (micro_batches.size() != 1) return fail(state, "the group is not one forward");
  loss.begin(batch, advantages);
  const auto call = [&](std::size_t) {
    loss.add(gpu(), {policy, nullptr}, micro_batches.front(), gradients);
  };
  double seconds = 0;
  for (auto _ : state) {
    seconds = seconds_per_call(call, 1);
    state.SetIterationTime(seconds);
  }
  report_training(state, shape, seconds);
}

void step(benchmark::State& state, const DecoderShape& shape) {
  const model::ModelConfig model = model_config(shape);
  const auto trainer = must(learner::NativeTrainer::make(
      {.config = trainer_config(),
       .model = {.directory = {},
                 .config = model,
                 .tokenizer = tokenizer(),
                 .weights = host_weights(model, model::make_manifest(model))},
       .records = {},
       .gang = nullptr,
       .device = DeviceKind::kCuda,
       .threads = nullptr,
       .beat = nullptr}));
  const auto seconds_of = [&](std::int64_t groups) {
    const TrainBatch batch = batch_of(shape, trainer->step(), groups);
    const double began = now();
    must(trainer->train(batch));
    return now() - began;
  };
  seconds_of(1);  // a warm-up
  // The batch has as many groups as a step of about the given time has, so that a slow learner is
  // measured too. A step of one is mostly what every step has once: the optimizer, and the copy of
  // the weights.
  const double one = seconds_of(1), each = std::max(seconds_of(2) - one, one / 10);
  const auto groups =
      std::clamp<std::int64_t>(1 + static_cast<std::int64_t>((sizes().slow_seconds - one) / each),
                               1, sizes().learner_groups_max);
  double seconds = 0;
  for (auto _ : state) {
    seconds = seconds_of(groups);
    state.SetIterationTime(seconds);
  }
  report_training(state, shape, seconds / static_cast<double>(groups));
  state.counters["groups"] = static_cast<double>(groups);
}

}  // namespace

void add_learner() {
  for (const DecoderShape& shape : sizes().models) {
    add(std::string("learner/pass/") + shape.name,
        [shape](benchmark::State& state) { pass(state, shape); });
    add(std::string("learner/step/") + shape.name,
        [shape](benchmark::State& state) { step(state, shape); });
  }
}

}  // namespace tandem::bench
