// Where a published version of the weights can be had, after learners or their hosts have ended.
//
// A publisher that ends may leave its versions to its successor or take them along: shared memory
// goes with its host, and GPU memory with its process. The learner that follows stands at a
// checkpoint. It can publish the weights that the checkpoint holds at once, and any later version
// once it has trained up to it again. Pure; not responsible for the question who needs a version.
//
// VS-1  A version that was published can be had again, unless it is older than all that the
//       learner's checkpoint holds and the publisher has lost it.
#pragma once

#include <cstdint>
#include <set>

#include "runtime/base/ids.h"

namespace tandem::scheduler {

enum class VersionSupply {
  kOffered,   // the publisher offers it
  kHeld,      // the learner holds it, and can publish it now
  kRepeated,  // the learner publishes it once it has trained up to it again
  kLost,      // it can be had no more
};

struct SupplyState {
  const std::set<PolicyVersion>& offered;  // by the publisher
  StepId next;                             // the step that the learner trains next
  std::int64_t older_held = 0;  // how many versions before the newest one the learner holds
};

VersionSupply supply_of(PolicyVersion version, const SupplyState& state);

// The lowest version that is not lost.
PolicyVersion oldest_to_be_had(const SupplyState& state);

}  // namespace tandem::scheduler
