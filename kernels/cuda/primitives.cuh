// The parts of CUDA C++ that a C++ compiler does not understand: inline assembly and dynamic shared
// memory. The emulator has a header of this name with the same functions
// (tests/kernels/cuda_emulator/include), and finds its own first; all other kernel sources compile
// with both. A function added here is added there.
//
// Matrices of bf16, as the PTX ISA lays them out over the lanes l of a warp ("Warp-level matrix
// instructions": mma.m16n8k16 with .bf16, ldmatrix). A register holds two neighbours of a row, the
// first in its low half; all lanes of a warp call together.
//
//   A 16 x 16   a[0]  row l/4      columns l%4*2, +1     a[2]  the same 8 columns on
//               a[1]  row l/4 + 8                        a[3]
//   B 16 x 8    b0    rows l%4*2, +1     column l/4      b1    the same 8 rows on
//   C 16 x 8    c[0], c[1]  row l/4  columns l%4*2, +1   c[2], c[3]  8 rows on
#pragma once

#include <cuda_runtime.h>

namespace tandem::kernels::cuda {

// Goes before a loop over an array that is to be in registers. Registers have no addresses, so the
// compiler must know every index.
#define TANDEM_UNROLL _Pragma("unroll")

// The block's dynamic shared memory (Launch::shared_bytes of it), aligned to 16 bytes.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ uint4 tandem_dynamic_shared[];
  return reinterpret_cast<T*>(tandem_dynamic_shared);
}

// The address within shared memory, 32 bits wide, that instructions for shared memory take.
__device__ __forceinline__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// Begins to copy kBytes (4 or 16, both addresses aligned to as many) from global to shared memory.
// With `zeros` it writes zeros and does not read `from`. The thread itself sees the bytes after
// copy_async_wait, other threads after a barrier behind that.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from, bool zeros) {
  const int bytes = zeros ? 0 : kBytes;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
                 "l"(from), "n"(kBytes), "r"(bytes)
                 : "memory");
  }
}

// Writes 8 or 16 bytes, aligned to as many, of global or shared memory in one access. The compiler
// would split an assignment into one write per element.
template <class Bits>
__device__ __forceinline__ void store_whole(void* to, const Bits& bits) {
  static_assert(sizeof(Bits) == 8 || sizeof(Bits) == 16);
  if constexpr (sizeof(Bits) == 16) {
    const uint4 words = *reinterpret_cast<const uint4*>(&bits);
    asm volatile("st.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y),
                 "r"(words.z), "r"(words.w)
                 : "memory");
  } else {
    const uint2 words = *reinterpret_cast<const uint2*>(&bits);
    asm volatile("st.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words.x), "r"(words.y) : "memory");
  }
}

// Ends a group: the thread's copies since the group before, if any.
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits for all of the thread's groups except the latest kGroups.
template <int kGroups>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

// Loads four matrices of 8 x 8 from shared memory. Lane l passes the address of row l % 8, which is
// 16 bytes, of matrix l / 8. In to[i] the lane gets row l / 4, columns l % 4 * 2 and +1, of matrix
// i; with kTransposed, of the transposed matrix.
template <bool kTransposed>
__device__ __forceinline__ void load_matrices(const void* row, unsigned (&to)[4]) {
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
  }
}

// c += a * b with sums in f32. The order of the 16 terms is the hardware's and is not documented.
__device__ __forceinline__ void multiply_matrices(const unsigned (&a)[4], unsigned b0, unsigned b1,
                                                  float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace tandem::kernels::cuda
