// Parity of the CUDA kernels with the CPU's: the CPU operator, in f32, on the operands that the GPU
// reads (rounded to its dtype), against the GPU's result.
//
// Tests go through the operators (ops/), not the table, so their checks are tested too.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ops/adamw.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/attention_input.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/embedding.h"
#include "kernels/ops/global_norm.h"
#include "kernels/ops/kv_cache.h"
#include "kernels/ops/log_prob.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/policy_loss.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"
#include "kernels/ops/sample.h"
#include "kernels/ops/sum_pieces.h"
#include "kernels/ops/swiglu.h"
#include "runtime/device/memory.h"
#include "runtime/device/queue.h"
#include "tests/kernels/operands.h"
#include "tests/runtime/device/cuda_case.h"

namespace tandem::kernels {

using device::emulated;

// A block in the GPU's memory.
class BytesOnGpu {
 public:
  BytesOnGpu(const Stream& stream, std::span<const std::byte> bytes);
  void* data() const { return memory_.data(); }
  void read(std::span<std::byte> to) const;  // all of it; waits for the stream

 private:
  Stream stream_;
  device::Buffer memory_;
};

// A dense tensor in the GPU's memory, a block of its own, so that a step past its end is caught.
class Operand {
 public:
  Operand(const Stream& stream, DType dtype, std::initializer_list<std::int64_t> shape,
          std::span<const float> values);
  Operand(const Stream& stream, std::initializer_list<std::int64_t> shape,
          std::span<const std::int32_t> values);
  // An operand without values: every element is NaN, or for i32 a number that no operator writes.
  static Operand poisoned(const Stream& stream, DType dtype,
                          std::initializer_list<std::int64_t> shape);

  const TensorView& view() const { return view_; }
  operator TensorView() const { return view_; }
  // Both wait for the stream. values() is for a floating dtype, integers() for i32.
  Floats values() const;
  std::vector<std::int32_t> integers() const;

 private:
  Operand(const Stream& stream, TensorView view, std::span<const std::byte> bytes);

  BytesOnGpu memory_;
  std::size_t size_;
  TensorView view_;
};

// Plain values in the GPU's memory: what operators take as spans and pointers.
template <class T>
class OnGpu {
 public:
  OnGpu(const Stream& stream, const std::vector<T>& values)
      : bytes_(stream, std::as_bytes(std::span(values))), count_(values.size()) {}

  std::span<T> span() const { return {static_cast<T*>(bytes_.data()), count_}; }
  std::vector<T> values() const {  // waits for the stream
    std::vector<T> values(count_);
    bytes_.read(std::as_writable_bytes(std::span(values)));
    return values;
  }

 private:
  BytesOnGpu bytes_;
  std::size_t count_;
};

using CudaTest = device::CudaCase;

// A CudaTest with the dtype as parameter.
class CudaDTypeTest : public CudaTest, public testing::WithParamInterface<DType> {};

}  // namespace tandem::kernels
