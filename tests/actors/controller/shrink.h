// Makes a plan of faults that fails smaller: leaves out whatever it fails without (delta debugging
// of Zeller and Hildebrandt, over the list), then makes what is left shorter.
#pragma once

#include <functional>

#include "tests/actors/controller/fault.h"

namespace tandem::controller {

// `fails` runs a plan. The plan that is given fails; the result fails too, and would not with any
// one of its faults left out. `fails` is called with the same plan at most once.
FaultPlan shrink(FaultPlan plan, const std::function<bool(const FaultPlan&)>& fails);

}  // namespace tandem::controller
