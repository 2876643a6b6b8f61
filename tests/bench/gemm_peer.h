// The benchmark's peer: one matrix product by oneDNN. Where oneDNN is not installed the peer
// computes nothing.
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
    bool adds = false;      // to c
    int threads = 1;        // threads of libgomp (CMakeLists.txt)
  };
  enum class Layout {
    kReordered,   // the layout of b that oneDNN prefers, made outside the measured call
    kReordering,  // the same, made anew in every call
    kPlain,       // b is read where it lies
  };
  struct Operands {
    void *a, *b, *c;  // c = a . b, or c + a . b, row-major; f32 where the shape does not say bf16
  };
  // Whether oneDNN is installed and multiplies operands of bf16, or of f32, on this processor.
  // Below AVX-512 it may have no product of bf16. Where it has none, no peer of such a shape may be
  // made.
  static bool computes(bool bf16);
  // Whether a product on one thread is computed by the thread that asks for it, so that this
  // thread's CPU time is the product's. oneDNN's builds with SYCL or TBB have threads of their own.
  static bool uses_the_callers_thread();

  GemmPeer(const Shape& shape, const Operands& operands, Layout layout);
  ~GemmPeer();
  GemmPeer(GemmPeer&&) noexcept;
  void multiply();

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace tandem::bench
