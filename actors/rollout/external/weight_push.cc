#include "actors/rollout/external/weight_push.h"

#include "runtime/base/check.h"

namespace tandem::rollout {
namespace {

constexpr int kTriesMax = 2;  // of a pause or a resumption

}  // namespace

bool WeightPush::may_be_skipped() const {
  const PushPhase phase = phases_[at_];
  const bool connects =
      phase == PushPhase::kRanks || phase == PushPhase::kMeet || phase == PushPhase::kConnect;
  // A first push has nothing to abandon.
  return phase == PushPhase::kAbandon || (connects && connected_);
}

std::optional<PushPhase> WeightPush::next() {
  if (under_way_ || done() || failure_) return {};
  while (pushes_ == 1 && may_be_skipped()) ++at_;
  under_way_ = true;
  return phases_[at_];
}

void WeightPush::succeeded() {
  CHECK(under_way_);
  under_way_ = false;
  tries_ = 1;
  ++at_;
}

void WeightPush::failed(const Error& error) {
  CHECK(under_way_);
  const PushPhase phase = phases_[at_];
  if (phase == PushPhase::kAbandon) return succeeded();
  under_way_ = false;
  const bool at_an_end = phase == PushPhase::kPause || phase == PushPhase::kResume;
  const bool over = at_an_end ? tries_++ >= kTriesMax : pushes_++ >= kPushesMax;
  if (!over && !at_an_end) at_ = phase == PushPhase::kProbe ? 0 : 1;
  if (over)
    failure_ = Error{error.code,
                     "the server's weights could not be updated (" + std::string(spelling(phase)) +
                         "): " + error.message,
                     error.where, error.help};
}

}  // namespace tandem::rollout
