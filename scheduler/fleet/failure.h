// Failures that a rank reports by itself, sorted by whether another start may help.
// restart_budget.h says how often and how soon a rank is started again. Pure functions.
#pragma once

#include "runtime/base/result.h"

namespace tandem::scheduler {

enum class FailureClass {
  kMendable,  // an I/O error, a rendezvous that came too late, a lost peer: another start may help
  kMemory,    // too little memory
  kInput,     // the job, or a file that it names, is wrong: every start fails again
};

FailureClass class_of(ErrorCode code);

// Whether a rank that failed is to be started again (RB-4). `was_ready`: the actor has been ready
// before. Memory that is short for an actor that worked may become free with the end of its holder:
// the incarnation before, or a neighbour's peak. An actor that never had enough asks for more than
// there is, and a person must hear of it.
bool worth_another_start(ErrorCode code, bool was_ready);

}  // namespace tandem::scheduler
