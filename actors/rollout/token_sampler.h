// Draws the next token of each row of logits, on the device that holds the logits: copies the rows'
// parameters there, and the drawn tokens back. The next draw() may be queued before the results of
// the last one have been taken, and work queued after a draw() can read its tokens on the device,
// before the host knows them. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "kernels/ops/sample.h"
#include "runtime/base/result.h"
#include "runtime/device/staged.h"
#include "runtime/device/stream.h"

namespace tandem::rollout {

class TokenSampler {
 public:
  // `rows_max`: the most rows of one draw(). `bannable`: the tokens that a row may ban, all of them
  // or none. The Error means that there is not enough memory.
  static Result<TokenSampler> make(std::int64_t rows_max, std::span<const std::int32_t> bannable,
                                   const device::Stream& stream);

  // One draw that computes, and one that is queued behind it.
  static constexpr std::size_t kUntakenMax = 2;

  // Queues one draw for each row. logits: [L, V] on the device. `rows` is in the host's memory and
  // copied before the call returns; the `banned` of a row is empty or equal to `bannable`. CHECKs
  // at most rows_max rows, and at most kUntakenMax draws that were not taken.
  void draw(const device::Stream& stream, const device::TensorView& logits,
            std::span<const kernels::RowSampling> rows);

  struct Drawn {
    std::span<const std::int32_t> tokens;
    std::span<const float> log_probs;
  };
  // Waits for the oldest draw() that was not taken and returns its results, one per row. The spans
  // are valid until the next draw(). CHECKs that there is such a draw().
  Drawn take();

  // The tokens of the last draw(), on the device, [rows_max] i32: an operand for work that is
  // queued before the next draw(). On a GPU the address is always the same, as recorded steps need.
  device::TensorView drawing() const;

  std::int64_t rows_max() const { return rows_max_; }

 private:
  // A draw() whose results the host has not read.
  struct Untaken {
    std::size_t side;  // the host's side of drawn_ that gets the results
    std::size_t rows;
  };

  std::int64_t rows_max_ = 0;
  std::size_t bannable_ = 0;  // the number of bannable tokens
  device::Staged ids_;        // the bannable tokens, uploaded once
  device::Staged rows_;       // [rows_max] RowSampling
  device::Staged drawn_;      // [rows_max] i32 tokens, then [rows_max] f32 log-probabilities
  std::deque<Untaken> untaken_;
};

}  // namespace tandem::rollout
