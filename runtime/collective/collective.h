// Operations that a gang of ranks performs together. All ranks make the same calls in the same
// order. Not here: arithmetic (the sum is handed in), and who is in the gang.
//
// Invariants, for every implementation (tests/runtime/collective/conformance_test.cc)
//   CO-1  all_reduce_sum gives ((rank 0 + rank 1) + rank 2) + … elementwise: the same bits on all
//         ranks, whatever the timing, the chunks or the implementation.
//   CO-2  No call outlasts its timeout by more than kAbortGrace.
//   CO-3  If a rank dies, leaves or makes another call, every other rank's call fails promptly and
//         says which rank it was.
//   CO-4  After an error the gang is broken: each further call returns that error at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::runtime {

inline constexpr int kRanksMax = 256;
inline constexpr std::size_t kBlobBytesMax = std::size_t{256} << 10;  // of one rank's all_gather
inline constexpr Duration kAbortGrace = std::chrono::milliseconds(250);

// accumulator[i] += addend[i], each a single float addition.
using AddFloats = void (*)(float* accumulator, const float* addend, std::size_t count);
void add_floats(float* accumulator, const float* addend, std::size_t count);  // the plain loop

// One thread at a time. Errors: kTimedOut names the rank waited for; kInvalid where ranks disagree
// about the call or its size; kFailed where a rank has gone. After an error the data is
// unspecified.
class Collective {
 public:
  virtual ~Collective() = default;  // leaves the gang: the others' calls fail from then on

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // In place; the same count on every rank.
  virtual Result<void> all_reduce_sum(std::span<float> values, Duration timeout) = 0;

  // `bytes` of rank `root` replace those of the others; the same size and root on every rank.
  virtual Result<void> broadcast(std::span<std::byte> bytes, int root, Duration timeout) = 0;

  // Every rank's blob, by rank; sizes may differ, each at most kBlobBytesMax.
  virtual Result<std::vector<std::string>> all_gather(std::string_view blob, Duration timeout) = 0;

  virtual Result<void> barrier(Duration timeout) = 0;
};

// `size` members of one gang inside this process, each for a thread of its own. With size 1 every
// call is a no-op.
std::vector<std::unique_ptr<Collective>> make_local_collectives(int size,
                                                                AddFloats add = add_floats);

}  // namespace tandem::runtime
