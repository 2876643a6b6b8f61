// Serves the shared memory of a publisher to subscribers of other hosts, over TCP with CURVE. The
// server reads the segment as any subscriber does, on a thread of its own: publishing never waits
// for the network, except that a slot which a subscriber copies is not replaced (WT-2). Not
// responsible for the choice of versions that are published, and when. Internal to runtime/weights.
//
// TW-3  A subscriber holds at most one slot, and none after it has been silent for silence_max;
//       its messages can end its own service, and have no other effect on the server.
#pragma once

#include <memory>

#include "runtime/base/result.h"
#include "runtime/weights/weights_config.h"
#include "runtime/wire/weight_source.h"

namespace tandem::weights {

class WeightServer {
 public:
  // Serves the segment of config.name, which must exist, with new CURVE keys. Errors: the address
  // is taken, the segment has too many readers.
  static Result<std::unique_ptr<WeightServer>> listen(const WeightsConfig& config,
                                                      const Serving& serving);
  ~WeightServer();

  // Where subscribers dial, and with which keys; does not change. Any thread may call.
  const wire::WeightSource& source() const;
  void announce();  // tells all subscribers the versions on offer; returns at once

 private:
  struct State;
  explicit WeightServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::weights
