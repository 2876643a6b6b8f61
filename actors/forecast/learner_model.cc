#include "actors/forecast/learner_model.h"

#include <utility>

#include "runtime/base/check.h"

namespace tandem::forecast {

LearnerModel::LearnerModel(ActorId self, LearnerCosts costs, double threads, SharedFleet shared,
                           std::shared_ptr<StateClock> training,
                           actor::Ref<messages::LearnerEvents> exchange)
    : self_(std::move(self)),
      costs_(costs),
      threads_(threads),
      shared_(shared),
      training_(std::move(training)),
      exchange_(std::move(exchange)) {}

LearnerModel::~LearnerModel() { shared_.host.leave(worker_); }

void LearnerModel::send(messages::LearnerEvents event) {
  CHECK(exchange_.tell(std::move(event)) != actor::Delivery::kFull);
}

void LearnerModel::handle(actor::Context& cx, Begin) {
  worker_ = shared_.host.join(cx, threads_);
  send(messages::LearnerUp{.from = self_, .checkpoint = {}, .source = {}, .offered = {}});
}

messages::Publication LearnerModel::publication(PolicyVersion version, PolicyVersion retain) {
  offered_.erase(offered_.begin(), offered_.lower_bound(retain));
  offered_.insert(version);
  return {.version = version,
          .oldest_retained = *offered_.begin(),
          .checksum = checksum_of(version),
          .bytes = 0,
          .seconds = 0,
          .broadcast = {},
          .offered = {offered_.begin(), offered_.end()}};
}

void LearnerModel::handle(actor::Context&, messages::PublishInitial publish) {
  const PolicyVersion version = offered_.empty() ? kInitialWeights : *offered_.rbegin();
  send(messages::Published{self_, publication(version, publish.retain)});
}

void LearnerModel::handle(actor::Context&, messages::WarmStart) {
  send(messages::WarmStarted{
      .from = self_, .steps = 0, .publication = publication(PolicyVersion{0}, kInitialWeights)});
  send(messages::CheckpointSaved{self_, StepId{0}, "", ""});
}

void LearnerModel::handle(actor::Context& cx, messages::TrainStep step) {
  for (const messages::TrainGroup& group : step.groups)
    tokens_ += static_cast<std::uint64_t>(shared_.payloads.tokens_of(group.payload));
  if (step.more) return;
  step.groups.clear();
  training_->begin(cx.now());
  shared_.host.begin(worker_, costs_.step_s + costs_.token_s * static_cast<double>(tokens_),
                     [this, step](actor::Context& then) { end_step(then, step); });
}

void LearnerModel::end_step(actor::Context& cx, const messages::TrainStep& step) {
  const double took_s = training_->end(cx.now());
  cx.after(duration_of(costs_.turnaround_s),
           [this, step, took_s](actor::Context&) { commit(step, took_s); });
}

void LearnerModel::commit(const messages::TrainStep& step, double took_s) {
  const PolicyVersion version{step.step.value + 1};
  messages::StepCommitted committed{
      .from = self_, .step = step.step, .checksum = checksum_of(version), .publication = {}};
  committed.report.seconds_update = took_s;
  committed.report.tokens_trained = std::exchange(tokens_, 0);
  if (step.publish) committed.publication = publication(version, step.retain);
  send(std::move(committed));
}

void LearnerModel::handle(actor::Context& cx, messages::SaveCheckpoint save) {
  cx.after(duration_of(costs_.save_s), [this, step = save.step](actor::Context&) {
    send(messages::CheckpointSaved{self_, step, "", ""});
  });
}

}  // namespace tandem::forecast
