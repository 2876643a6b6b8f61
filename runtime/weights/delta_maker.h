// Makes the deltas of a server: from each version that it has on offer to the next one. The
// versions are compared where they lie in shared memory, a few MiB at a time, on the server's
// thread, so that publishing never waits for it but for a slot that is being compared (WT-2). A new
// version is offered once its delta is made, or is known to be not worth it. Internal to
// runtime/weights; used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/weights/delta_log.h"
#include "runtime/weights/shared_pins.h"
#include "runtime/weights/weights_config.h"

namespace tandem::weights {

// Decides whether the next version is compared: with `auto`, after versions that changed too much,
// ever fewer are looked at, down to one of 64.
class DeltaTrials {
 public:
  bool next();               // whether to compare this version
  void done(bool worth_it);  // how the comparison ended

 private:
  std::uint64_t skip_ = 0;  // versions to skip after the next one that changed too much
  std::uint64_t left_ = 0;
};

class DeltaMaker {
 public:
  // Both are borrowed.
  DeltaMaker(const WeightsConfig& config, SharedPins& pins);

  // The versions in the slots have changed. `wanted`: a subscriber applies deltas.
  void look(bool wanted);
  // Does a part of the work, if there is any. Returns whether more is left.
  bool step();
  bool working() const { return work_.has_value(); }
  std::uint64_t finished() const { return finished_; }  // how many versions have been compared
  // Gives up the work under way.
  void stop();

  // The versions that subscribers may fetch: those in the slots, without the ones whose delta is
  // still being made.
  std::vector<WeightOffer> offers() const;
  const DeltaLog& log() const { return log_; }

 private:
  struct Work {
    DeltaName name;
    std::size_t base_slot = 0, next_slot = 0;  // pinned
    DeltaEncoder encoder;
    Time began;
  };

  bool wants(bool wanted);
  std::optional<WeightOffer> base_of(const WeightOffer& next) const;
  bool begin(const WeightOffer& base, const WeightOffer& next);
  void finish();

  const WeightsConfig& config_;
  SharedPins& pins_;
  DeltaLog log_;
  DeltaTrials trials_;
  bool wanted_ = false;
  std::vector<WeightOffer> settled_;  // versions that are offered
  std::optional<Work> work_;
  std::uint64_t finished_ = 0, made_ = 0;
};

}  // namespace tandem::weights
