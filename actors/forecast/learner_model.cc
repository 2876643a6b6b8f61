#include "actors/forecast/learner_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::forecast {
namespace {

Duration seconds_long(double s) { return Duration(std::llround(s * 1e9)); }

}  // namespace

LearnerModel::LearnerModel(ActorId self, LearnerCosts costs, double threads, SharedFleet shared,
                           std::shared_ptr<double> trained_s,
                           actor::Ref<messages::LearnerEvents> exchange)
    : self_(std::move(self)),
      costs_(costs),
      threads_(threads),
      shared_(shared),
      trained_s_(std::move(trained_s)),
      exchange_(std::move(exchange)) {}

LearnerModel::~LearnerModel() { shared_.host.leave(self_.name); }

void LearnerModel::send(messages::LearnerEvents event) {
  CHECK(exchange_.tell(std::move(event)) != actor::Delivery::kFull);
}

void LearnerModel::handle(actor::Context& cx, Begin) {
  shared_.host.join(self_.name, [this, post = cx.turn_poster()] {
    post([this](actor::Context& later) { resume(later); });
  });
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
  CHECK(!step_);
  shared_.host.work(self_.name, threads_);
  step_ = Step{.what = std::move(step),
               .begun = cx.now(),
               .since = cx.now(),
               .left_s = costs_.step_s + costs_.token_s * static_cast<double>(tokens_)};
  resume(cx);
}

void LearnerModel::resume(actor::Context& cx) {
  if (!step_) return;
  if (step_->timer != actor::TimerId{}) {
    cx.cancel(step_->timer);
    step_->left_s -= seconds(cx.now() - step_->since) / step_->slowdown;
  }
  step_->since = cx.now();
  step_->slowdown = shared_.host.slowdown();
  step_->timer = cx.after(seconds_long(std::max(0.0, step_->left_s) * step_->slowdown),
                          [this](actor::Context& then) { end_step(then); });
}

void LearnerModel::end_step(actor::Context& cx) {
  const Step step = *std::exchange(step_, std::nullopt);
  shared_.host.work(self_.name, 0);
  *trained_s_ += seconds(cx.now() - step.begun);
  cx.after(seconds_long(costs_.turnaround_s), [this, step, took = seconds(cx.now() - step.begun)](
                                                  actor::Context&) { commit(step.what, took); });
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
  cx.after(seconds_long(costs_.save_s), [this, step = save.step](actor::Context&) {
    send(messages::CheckpointSaved{self_, step, "", ""});
  });
}

}  // namespace tandem::forecast
