// Whether signals end a node (NodeCommand::joins_run). Used by the node's main thread.
#pragma once

#include <csignal>
#include <functional>
#include <utility>

#include "runtime/base/log.h"

namespace tandem::app {

class Told {
 public:
  enum class End {
    kNo,
    kAtOnce,  // by a signal that is for this node alone
    kGiven,   // its host is taken back, and there is no link by which its actors could be moved
  };

  // `pass_on` tells the controller, while there is a link; false: not yet.
  Told(bool joins_run, std::function<bool()> pass_on)
      : joins_run_(joins_run), pass_on_(std::move(pass_on)) {}

  // Called at each look, also without a signal: 0.
  End end(int signal, bool linked) {
    if (signal != 0 && !(joins_run_ && signal == SIGTERM)) return End::kAtOnce;
    told_ = told_ || signal != 0;
    if (told_ && !linked) return End::kGiven;
    if (told_ && !passed_on_ && pass_on_()) {
      log::info("event=told_to_end consequence=\"its actors move to other nodes\"");
      passed_on_ = true;
    }
    return End::kNo;
  }

 private:
  const bool joins_run_;
  const std::function<bool()> pass_on_;
  bool told_ = false, passed_on_ = false;
};

}  // namespace tandem::app
