// The benchmark's peer: one matrix product by oneDNN, on one thread, with b in the layout that
// oneDNN prefers (reordered once, outside the measured call). Where oneDNN is not installed the
// peer computes nothing.
#pragma once

#include <cstdint>
#include <memory>

namespace tandem::bench {

class GemmPeer {
 public:
  struct Shape {
    std::int64_t rows, columns, depth;
    bool a_transposed = false;
    bool b_transposed = false;
    bool bf16 = false;      // a and b
    bool bf16_out = false;  // c
  };
  struct Operands {
    void *a, *b, *c;  // c = a . b, row-major; f32 where the shape does not say bf16
  };
  // Whether oneDNN is installed and multiplies operands of bf16, or of f32, on this processor.
  // Below AVX-512 it may have no product of bf16. Where it has none, no peer of such a shape may be
  // made.
  static bool computes(bool bf16);

  GemmPeer(const Shape& shape, const Operands& operands);
  ~GemmPeer();
  GemmPeer(GemmPeer&&) noexcept;
  void multiply();

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace tandem::bench
