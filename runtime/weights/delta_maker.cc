#include "runtime/weights/delta_maker.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/log.h"

namespace tandem::weights {
namespace {

constexpr std::uint64_t kBytesPerStep = std::uint64_t{4} << 20;
constexpr std::uint64_t kSkipMax = 63;

}  // namespace

bool DeltaTrials::next() {
  if (left_ == 0) return true;
  --left_;
  return false;
}

void DeltaTrials::done(bool worth_it) {
  skip_ = worth_it ? 0 : std::min(2 * skip_ + 1, kSkipMax);
  left_ = skip_;
}

DeltaMaker::DeltaMaker(const WeightsConfig& config, SharedPins& pins)
    : config_(config), pins_(pins), log_(delta_bytes_end(config)) {}

bool DeltaMaker::wants(bool wanted) {
  if (config_.delta == DeltaUse::kNever || config_.layout.tensors.empty() || !wanted) return false;
  return config_.delta == DeltaUse::kAlways || trials_.next();
}

void DeltaMaker::look(bool wanted) {
  wanted_ = wanted;
  if (work_ && !(pins_.offered(work_->base_slot) && pins_.offered(work_->next_slot))) stop();
  if (work_) return;
  std::vector<WeightOffer> there = pins_.offers();
  std::ranges::sort(there, {}, &WeightOffer::version);
  std::erase_if(settled_, [&](const WeightOffer& one) {
    return std::ranges::find(there, one) == there.end();
  });
  for (const WeightOffer& next : there) {
    if (std::ranges::find(settled_, next) != settled_.end()) continue;
    const auto base = base_of(next);
    if (base && wants(wanted) && begin(*base, next)) return;
    settled_.push_back(next);
  }
}

// The newest version before `next` that is offered.
std::optional<WeightOffer> DeltaMaker::base_of(const WeightOffer& next) const {
  std::optional<WeightOffer> base;
  for (const WeightOffer& one : settled_)
    if (one.version < next.version && (!base || base->version < one.version)) base = one;
  return base;
}

bool DeltaMaker::begin(const WeightOffer& base, const WeightOffer& next) {
  const auto base_slot = pins_.acquire(base);
  if (!base_slot) return false;
  const auto next_slot = pins_.acquire(next);
  if (!next_slot) {
    pins_.release(*base_slot);
    return false;
  }
  const DeltaName name{.base = base, .next = next};
  work_.emplace(Work{.name = name,
                     .base_slot = *base_slot,
                     .next_slot = *next_slot,
                     .encoder = DeltaEncoder(config_.layout, name, delta_bytes_end(config_) - 1),
                     .began = steady_now()});
  return true;
}

bool DeltaMaker::step() {
  if (!work_) return false;
  const auto base = pins_.bytes(work_->base_slot), next = pins_.bytes(work_->next_slot);
  if (!work_->encoder.step(base, next, kBytesPerStep)) finish();
  return work_.has_value();
}

void DeltaMaker::finish() {
  DeltaEncoder& encoder = work_->encoder;
  const bool worth_it = !encoder.gave_up();
  if (config_.delta == DeltaUse::kAuto) trials_.done(worth_it);
  if (worth_it) {
    const std::uint64_t changed = encoder.changed();
    Delta delta = encoder.take();
    if (log::worth_a_line(++made_))
      log::info(
          "event=weights_delta weights={} base={} version={} changed={} bytes={} of={} "
          "seconds={:.3f}",
          config_.name, delta.name.base.version.value, delta.name.next.version.value, changed,
          delta.bytes.size(), config_.layout.arena_bytes, seconds(steady_now() - work_->began));
    log_.add(std::move(delta));
  }
  settled_.push_back(work_->name.next);
  ++finished_;
  stop();
  look(wanted_);
}

void DeltaMaker::stop() {
  if (!work_) return;
  pins_.release(work_->base_slot);
  pins_.release(work_->next_slot);
  work_.reset();
}

std::vector<WeightOffer> DeltaMaker::offers() const {
  std::vector<WeightOffer> told = pins_.offers();
  std::erase_if(told, [this](const WeightOffer& one) {
    return std::ranges::find(settled_, one) == settled_.end();
  });
  return told;
}

}  // namespace tandem::weights
