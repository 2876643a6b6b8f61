// Draws the next token of each row of logits on the device that holds them: moves what rows need
// there and what was drawn back. The next draws may be queued before the last ones have been taken,
// and read their tokens where they are drawn. One thread.
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

namespace tandem::actors {

class TokenSampler {
 public:
  // `bannable`: what a row may ban, as a whole or not at all. The error is want of memory.
  static Result<TokenSampler> make(std::int64_t rows_max, std::span<const std::int32_t> bannable,
                                   const runtime::Stream& stream);

  static constexpr std::size_t kUntakenMax = 2;

  // logits [L, V] on the device; at most rows_max draws, and of calls that were not taken at most
  // kUntakenMax. `rows` is the host's; its `banned` are empty or equal to `bannable`.
  void draw(const runtime::Stream& stream, const runtime::TensorView& logits,
            std::span<const kernels::RowSampling> rows);

  struct Drawn {
    std::span<const std::int32_t> tokens;
    std::span<const float> log_probs;
  };
  // Of the first draw() that was not taken yet, when it is done. Valid until the next draw().
  Drawn take();

  // Where the last draw() puts its tokens, on the device [rows_max] i32: for work that is queued
  // before the next one. On a GPU always the same place.
  runtime::TensorView drawing() const;

  std::int64_t rows_max() const { return rows_max_; }

 private:
  struct Untaken {
    std::size_t side;  // of drawn_
    std::size_t rows;
  };

  std::int64_t rows_max_ = 0;
  std::size_t bannable_ = 0;  // how many
  runtime::Staged ids_;       // of them
  runtime::Staged rows_;      // [rows_max] RowSampling
  runtime::Staged drawn_;     // [rows_max] i32 tokens, then [rows_max] f32 log-probabilities
  std::deque<Untaken> untaken_;
};

}  // namespace tandem::actors
