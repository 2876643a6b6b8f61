// Reads a run's journal, or its last image and the events after it, for an exchange that goes on
// with the run. Pure.
#pragma once

#include "actors/exchange/exchange_core.h"
#include "actors/exchange/figure_history.h"
#include "actors/exchange/run_image.h"
#include "actors/exchange/state/journal_replay.h"

namespace tandem::exchange {

class RunReplay {
 public:
  RunReplay() = default;
  explicit RunReplay(const RunImage& image)
      : replay_(facts_of(image.state, image.later, image.broadcasts)), figures_(image.figures) {}

  void take(const JournalEntry& entry) {
    replay_.take(entry);
    figures_.take(entry.event);
  }
  const JournalReplay& replay() const { return replay_; }
  const RunFacts& facts() const { return replay_.state().facts(); }
  Predecessor predecessor() const { return {replay_.state(), figures_}; }

 private:
  JournalReplay replay_;
  FigureHistory figures_;
};

}  // namespace tandem::exchange
