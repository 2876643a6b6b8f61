// The value of a Result, for benchmarks: an Error ends the process with the Error's text.
#pragma once

#include <cstdlib>
#include <iostream>
#include <utility>

#include "runtime/base/result.h"

namespace tandem::bench {

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::cerr << render(result.error()) << "\n";
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace tandem::bench
