// Operations that a gang of ranks performs together. All ranks make the same calls in the same
// order. Not here: arithmetic (the sum is handed in), and who is in the gang.
//
// Invariants, for every implementation (tests/runtime/collective/conformance_test.cc)
//   CO-1  all_reduce_sum gives ((rank 0 + rank 1) + rank 2) + … elementwise: the same bits on all
//         ranks, whatever the timing, the chunks or the implementation.
//   CO-2  No call outlasts its timeout, where it has one, by more than kAbortGrace.
//   CO-3  If a rank ends, leaves or makes another call, every other rank's call fails promptly and
//         says which rank it was.
//   CO-4  After an error the gang is broken: each further call returns that error at once.
//   CO-5  A rank that waits for rank 0 in await_broadcast waits as long as rank 0 is at work or
//         idle, and fails once rank 0 hangs, with an Error that names it. Between processes this
//         holds in every call, by the limits of GangLiveness (gang_spec.h); within one, where a
//         rank cannot hang alone, await_broadcast has a timeout of its own.
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

namespace tandem::collective {

inline constexpr int kRanksMax = 256;
inline constexpr std::size_t kBlobBytesMax = std::size_t{256} << 10;  // per rank in an all_gather
inline constexpr Duration kAbortGrace = std::chrono::milliseconds(250);  // see CO-2

// accumulator[i] += addend[i], each a single float addition.
using AddFloats = void (*)(float* accumulator, const float* addend, std::size_t count);
void add_floats(float* accumulator, const float* addend, std::size_t count);  // the plain loop

// One thread at a time may call. Errors: kTimedOut names the rank waited for; kInvalid where ranks
// disagree about the call or its size; kFailed where a rank has gone. After an error the data is
// unspecified.
class Collective {
 public:
  virtual ~Collective() = default;  // leaves the gang: the others' calls fail from then on

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Sums in place; the count is the same on every rank.
  virtual Result<void> all_reduce_sum(std::span<float> values, Duration timeout) = 0;

  // `bytes` of rank `root` replace those of the others; the same size and root on every rank.
  virtual Result<void> broadcast(std::span<std::byte> bytes, int root, Duration timeout) = 0;

  // The receiving end of rank 0's broadcast(), for a wait without a timeout (CO-5). CHECKed: not on
  // rank 0. `awaited` completes the Error: "rank 0's next command".
  virtual Result<void> await_broadcast(std::span<std::byte> bytes, std::string_view awaited) = 0;

  // Every rank's blob, by rank; sizes may differ, each at most kBlobBytesMax.
  virtual Result<std::vector<std::string>> all_gather(std::string_view blob, Duration timeout) = 0;

  // Returns once every rank has made this call.
  virtual Result<void> barrier(Duration timeout) = 0;
};

inline constexpr Duration kLocalAwaitMax = std::chrono::minutes(15);

// `size` members of one gang inside this process, by rank, each for a thread of its own. With size
// 1 every call returns at once. An await_broadcast times out after `await_max`.
std::vector<std::unique_ptr<Collective>> make_local_collectives(
    int size, AddFloats add = add_floats, Duration await_max = kLocalAwaitMax);

}  // namespace tandem::collective
