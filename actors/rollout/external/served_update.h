// One update of a server's weights under way: the phases of WeightPush (weight_push.h), each by a
// call to the server, by this side's part of the transfer, or both.
//
// One thread at a time. What is borrowed outlives it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "actors/rollout/external/dialect.h"
#include "actors/rollout/external/served_versions.h"
#include "actors/rollout/external/weight_push.h"
#include "actors/rollout/external/weight_source.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "runtime/http/http.h"

namespace tandem::rollout {

class ServedUpdate {
 public:
  struct Parts {
    const Dialect* dialect = nullptr;            // borrowed, as the next two
    WeightSource* weights = nullptr;             // a member of the server's link
    ServedVersions* versions = nullptr;          // the version has begun there
    std::function<void(const ServerCall&)> ask;  // the answer comes by take()
    std::size_t call_bytes = 0;                  // as ServedConfig has it
  };
  // What has happened in a step.
  struct Step {
    bool heard = false;    // the server has answered well
    bool refuted = false;  // the probe has failed: what runs there may be of no version
  };

  // `arena`, laid out by facts.manifest, stays as it is until this is destroyed.
  ServedUpdate(Parts parts, PushFacts facts, std::span<const std::byte> arena);
  ~ServedUpdate();
  ServedUpdate(const ServedUpdate&) = delete;
  ServedUpdate& operator=(const ServedUpdate&) = delete;

  void take(Result<http::HttpResponse> answer);  // to the newest call
  Step step();  // does what can be done; again soon, until it is over

  bool done() const { return push_.done(); }
  std::optional<Error> failure() const;

 private:
  using Offer = Guarded<std::optional<Result<OfferedWeights>>>;

  bool is_offered();
  void start_phase();
  void ask();
  bool ask_for_more();
  Result<void> both(Result<void> answer, const Result<void>& ours) const;
  Result<void> outcome(const Result<http::HttpResponse>& answer);
  Step phase_over(const Result<void>& fine);

  const Parts parts_;
  WeightPush push_;
  PushFacts facts_;
  const std::shared_ptr<Offer> offer_ = std::make_shared<Offer>();
  bool offered_ = false;
  std::optional<Error> not_offered_;
  PushPhase phase_ = PushPhase::kPause;  // under way, by call_
  ServerCall call_;
  bool cut_ = false;                                  // this side, as the server had failed
  std::optional<Result<http::HttpResponse>> answer_;  // to it
};

}  // namespace tandem::rollout
