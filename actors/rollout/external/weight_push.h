// One update of a server's weights, as the order of its phases: what is done next, and what after a
// phase that failed. Pure; the engine (served_engine.h) makes the calls.
//
//   WU-1  A server goes on only after a whole push: after an error it stays paused, and the push is
//         made once more, from its first phase after the pause.
//   WU-2  A version counts as installed only once the last phase has succeeded. A probe that fails
//         is the failure of the push: the server is paused again.
//   WU-3  After kPushesMax pushes, or a pause or resumption that fails twice, the update has
//         failed: the server is not to be used any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/base/enum_names.h"
#include "runtime/base/result.h"

namespace tandem::rollout {

inline constexpr int kPushesMax = 2;

enum class PushPhase : std::uint8_t {
  kPause,    // the server computes nothing from here on; what runs is kept
  kAbandon,  // ends what a push that failed has left; only before a second push, and may fail
  kRanks,    // the server says how many ranks it has
  kMeet,     // the rollout makes what they meet by; no call
  kConnect,  // the server learns where the tensors come from
  kStart,    // it takes tensors from now on
  kSend,     // it gets them all
  kFinish,   // it computes with them from now on, under their label
  kResume,
  kProbe,  // it proves that it does, by the learner's log-probabilities
};
constexpr auto enum_names(PushPhase) {
  using enum PushPhase;
  return enum_name_rows<PushPhase>({{kPause, "pause"},
                                    {kAbandon, "abandon"},
                                    {kRanks, "ranks"},
                                    {kMeet, "meet"},
                                    {kConnect, "connect"},
                                    {kStart, "start"},
                                    {kSend, "send"},
                                    {kFinish, "finish"},
                                    {kResume, "resume"},
                                    {kProbe, "probe"}});
}

class WeightPush {
 public:
  // `phases` begin with kPause and end with kResume, or kProbe behind it; borrowed. `connected`:
  // the first push needs no kRanks, kMeet and kConnect.
  explicit WeightPush(std::span<const PushPhase> phases, bool connected = false)
      : phases_(phases), connected_(connected) {}

  // The phase to perform now. Nothing: the one before has no outcome yet, or all is over.
  std::optional<PushPhase> next();
  void succeeded();  // the phase that next() gave
  void failed(const Error& error);

  bool done() const { return at_ == phases_.size(); }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  bool may_be_skipped() const;  // the phase at at_

  const std::span<const PushPhase> phases_;
  const bool connected_;
  std::size_t at_ = 0;
  bool under_way_ = false;
  int pushes_ = 1;
  int tries_ = 1;  // of this phase, where it is the pause or the resumption
  std::optional<Error> failure_;
};

}  // namespace tandem::rollout
