// When somebody who waits for the reading of data is told how far it is, and in which words. The
// caller owns the clock and the place where the words appear.
#pragma once

#include <optional>
#include <string>

#include "actors/job/dataset.h"
#include "runtime/base/clock.h"

namespace tandem::job {

class ReadingNotice {
 public:
  static constexpr Duration kSilentFor = std::chrono::seconds(2);
  static constexpr Duration kEvery = std::chrono::seconds(5);

  explicit ReadingNotice(Time began) : next_(began + kSilentFor) {}

  // "reading train.jsonl: 1200000 records, 54 % of 651 MB", where a notice is due.
  std::optional<std::string> due(const ReadingProgress& progress, Time now);

 private:
  Time next_;
};

// Gives each notice that is due to `say`, by the machine's clock from now on.
TellReading tell_by(std::function<void(const std::string&)> say);

}  // namespace tandem::job
