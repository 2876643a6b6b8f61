// The sandbox of a reward's programs: what a job asks for, against what this machine has. How
// programs are kept in it is runtime/sandbox's business.
#pragma once

#include <string>
#include <vector>

#include "actors/reward/make_verifier.h"
#include "runtime/base/result.h"
#include "runtime/sandbox/layers.h"

namespace tandem::reward {

// Finds out which layers this machine has, where a verifier wants any, and gives each of these
// verifiers its plan and what its programs may see: the interpreter, the folder of each file that
// its command line names, and VerifierConfig::readable; never what is in `hidden`. kInvalid where
// the machine has too little.
Result<void> enter_sandboxes(RewardParts& reward, const std::vector<std::string>& hidden);

// What keeps the programs of these verifiers, for people; empty: they are in no sandbox.
std::string sandboxes_of(const RewardParts& reward);

}  // namespace tandem::reward
