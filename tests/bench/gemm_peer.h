// The benchmark's peer: one matrix product by oneDNN, on one thread, with b in the layout that
// oneDNN prefers (reordered once, outside the measured call). Where oneDNN is not installed the
// peer does nothing and kPresent is false.
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
  };
  struct Operands {
    float *a, *b, *c;  // c = a . b, row-major
  };
  static const bool kPresent;

  GemmPeer(const Shape& shape, const Operands& operands);
  ~GemmPeer();
  GemmPeer(GemmPeer&&) noexcept;
  void multiply();

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace tandem::bench
