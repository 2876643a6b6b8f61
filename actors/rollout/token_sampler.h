// Draws the next token of each row of logits on the device that holds them: moves what rows need
// there and what was drawn back. One thread.
#pragma once

#include <cstdint>
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

  struct Drawn {
    std::span<const std::int32_t> tokens;
    std::span<const float> log_probs;
  };
  // logits [L, V] on the device; at most rows_max draws. `rows` is the host's; its `banned` are
  // empty or equal to `bannable`. Waits for the stream; valid until the next call.
  Drawn draw(const runtime::Stream& stream, const runtime::TensorView& logits,
             std::span<const kernels::RowSampling> rows);

  std::int64_t rows_max() const { return rows_max_; }

 private:
  std::int64_t rows_max_ = 0;
  std::size_t bannable_ = 0;   // how many
  runtime::Staged ids_;        // of them
  runtime::Staged rows_;       // [rows_max] RowSampling
  runtime::Staged tokens_;     // [rows_max] i32
  runtime::Staged log_probs_;  // [rows_max] f32
};

}  // namespace tandem::actors
