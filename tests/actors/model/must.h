// The value of a Result, for tests of actors. An error is reported, with its text, as a failure of
// the test, and then aborts the process.
#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "runtime/base/result.h"

namespace tandem::model::testing {

template <class T>
T must(Result<T> result) {
  if (!result) ADD_FAILURE() << render(result.error());
  return *std::move(result);
}

}  // namespace tandem::model::testing
