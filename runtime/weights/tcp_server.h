// Serves the shared memory of a publisher to subscribers of other hosts, over TCP with CURVE. It
// reads the segment as any subscriber does, on a thread of its own: publishing never waits for the
// network, save that a slot which somebody copies is not replaced (WT-2). Not here: what is
// published, and when. Internal to runtime/weights.
//
// TW-3  A subscriber holds at most one slot, and none after it has been silent for silence_max;
//       its messages can end its own service, and nothing else.
#pragma once

#include <memory>

#include "runtime/base/result.h"
#include "runtime/weights/weights.h"

namespace tandem::runtime {

class WeightServer {
 public:
  // Of the segment of that name, which must exist; with new keys. Errors: the place is taken, the
  // segment has too many readers.
  static Result<std::unique_ptr<WeightServer>> listen(const WeightsConfig& config,
                                                      const Serving& serving);
  ~WeightServer();

  const WeightSource& source() const;
  void announce();  // tells the subscribers what the segment offers now; does not wait for it

 private:
  struct State;
  explicit WeightServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::runtime
