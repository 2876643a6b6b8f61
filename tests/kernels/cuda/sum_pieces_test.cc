#include "kernels/ops/sum_pieces.h"

#include <deque>

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::rows;
using device::tensor;

using CudaSumPieces = CudaTest;

// The pieces lie on packs and off their alignment; out is a piece, and nothing beside it is
// touched.
TEST_F(CudaSumPieces, GivesTheCpusBits) {
  for (const std::int64_t count : {1, 2, 3, kSumPiecesMax}) {
    for (const std::int64_t n : {0, 1, 4, 7, 1025, 5000}) {
      for (const std::int64_t offset : {0, 1}) {
        SCOPED_TRACE(testing::Message() << count << " of " << n << " from " << offset);
        Rng rng(static_cast<std::uint64_t>(n));
        std::deque<Operand> operands;
        std::vector<Floats> values;
        std::vector<TensorView> on_gpu, on_cpu;
        for (std::int64_t i = 0; i < count; ++i) {
          values.push_back(normals(rng, n + offset));
          operands.emplace_back(gpu(), DType::kF32, std::initializer_list<std::int64_t>{n + offset},
                                values.back());
          on_gpu.push_back(rows(operands.back(), offset, n));
          on_cpu.push_back(rows(tensor(values.back().data(), {n + offset}), offset, n));
        }
        const auto into = static_cast<std::size_t>(count / 2);
        sum_pieces(gpu(), {.pieces = on_gpu, .out = on_gpu[into]});
        sum_pieces(Stream{}, {.pieces = on_cpu, .out = on_cpu[into]});
        for (std::size_t i = 0; i < values.size(); ++i)
          EXPECT_TRUE(same_bits(operands[i].values(), values[i])) << i;
      }
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
