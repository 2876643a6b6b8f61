// How many seeds a property is tried with, and a failure that names its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

namespace tandem {

// `usual`, TANDEM_SEED_FACTOR times as many where that is set. Under a sanitizer, which makes
// everything ten to twenty times slower, a tenth; of many a twentieth, but ten at least.
inline std::uint64_t seeds_of(std::uint64_t usual) {
  const char* const factor = std::getenv("TANDEM_SEED_FACTOR");
  if (factor) usual *= std::strtoull(factor, nullptr, 10);
  if (!TANDEM_SANITIZED) return std::max<std::uint64_t>(1, usual);
  return std::max({std::uint64_t{1}, usual / 20, std::min<std::uint64_t>(10, usual / 10)});
}

// Runs `scenario` for the seeds 1 … seeds_of(usual), up to the first failure, which names its seed;
// for TANDEM_SEED alone where that is set.
inline void for_seeds(std::uint64_t usual,
                      const std::function<void(std::uint64_t seed)>& scenario) {
  const char* const only = std::getenv("TANDEM_SEED");
  const std::uint64_t first = only ? std::strtoull(only, nullptr, 10) : 1;
  const std::uint64_t last = only ? first : seeds_of(usual);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, "seed " + std::to_string(seed));
    scenario(seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace tandem
