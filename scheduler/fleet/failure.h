// Failures that a rank reports by itself, sorted by what another start may do about them. How often
// it is started again is restart_budget.h's.
#pragma once

#include "runtime/base/result.h"

namespace tandem::scheduler {

enum class FailureClass {
  kMendable,  // an I/O error, a rendezvous that came too late, a lost peer: another start may do
  kMemory,    // too little memory
  kInput,     // the job, or a file that it names, is wrong: every start meets it again
};

FailureClass class_of(ErrorCode code);

// Whether a rank that failed is to be started again (RB-4). Memory that is short comes back with
// the end of what holds it: the incarnation before, a neighbour's peak. An actor that never had
// enough asks for more than there is, and a person must hear of it.
bool worth_another_start(ErrorCode code, bool was_ready);

}  // namespace tandem::scheduler
