// The part of a data set that a key of the job file wants of a folder.
#pragma once

namespace tandem::job {

enum class Split {
  kTrain,
  kHeldOut,  // the validation split or the test split
};

}  // namespace tandem::job
