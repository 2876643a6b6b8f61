// The emulator's form of kernels/cuda/primitives.cuh: the same functions in plain C++.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace tandem::kernels::cuda {

#define TANDEM_UNROLL

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emulator::dynamic_shared());
}

template <int kBytes>
void copy_async(void* to, const void* from, bool zeros) {
  static_assert(kBytes == 4 || kBytes == 16);
  emulator::copy_async(to, zeros ? nullptr : from, kBytes);
}
template <class Bits>
void store_whole(void* to, const Bits& bits) {
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(Bits) != 0) {
    emulator::broken("a write of %zu bytes is not aligned", sizeof(Bits));
  }
  std::memcpy(to, &bits, sizeof bits);
}
inline void copy_async_commit() { emulator::commit_copies(); }
template <int kGroups>
void copy_async_wait() {
  emulator::wait_copies(kGroups);
}

inline constexpr int kEmulatedLanes = 32;

struct EmulatedMatrixLoad {
  const void* row;
  unsigned* to;
};

template <bool kTransposed>
void load_matrices(const void* row, unsigned (&to)[4],
                   EmulatedPlace where = EmulatedPlace::current()) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    emulator::broken("a row of a matrix is not aligned to 16 bytes");
  }
  EmulatedMatrixLoad own{.row = row, .to = to};
  emulator::together(
      &own,
      [](void* const* lanes) {
        const auto lane = [&](int l) { return static_cast<EmulatedMatrixLoad*>(lanes[l]); };
        for (int i = 0; i < 4; ++i) {
          std::uint16_t matrix[8][8];
          for (int r = 0; r < 8; ++r) std::memcpy(matrix[r], lane(i * 8 + r)->row, 16);
          for (int l = 0; l < kEmulatedLanes; ++l) {
            const int r = l / 4, c = l % 4 * 2;
            const unsigned low = kTransposed ? matrix[c][r] : matrix[r][c];
            const unsigned high = kTransposed ? matrix[c + 1][r] : matrix[r][c + 1];
            lane(l)->to[i] = low | high << 16;
          }
        }
      },
      where);
}

struct EmulatedProduct {
  const unsigned* a;
  unsigned b[2];
  float* c;
};

inline float emulated_half(unsigned pair, int half) {
  return __bfloat162float({static_cast<std::uint16_t>(pair >> (16 * half))});
}

// Rows of B ascending. A product of two bf16 is exact in f32, but for the smallest.
inline void emulate_product(void* const* lanes) {
  float a[16][16], b[16][8];
  for (int l = 0; l < kEmulatedLanes; ++l) {
    const auto* own = static_cast<const EmulatedProduct*>(lanes[l]);
    for (int half = 0; half < 2; ++half) {
      const int pair = l % 4 * 2 + half;
      for (int i = 0; i < 4; ++i) {
        a[l / 4 + i % 2 * 8][pair + i / 2 * 8] = emulated_half(own->a[i], half);
      }
      for (int i = 0; i < 2; ++i) b[pair + i * 8][l / 4] = emulated_half(own->b[i], half);
    }
  }
  for (int l = 0; l < kEmulatedLanes; ++l) {
    const auto* own = static_cast<const EmulatedProduct*>(lanes[l]);
    for (int i = 0; i < 4; ++i) {
      const int row = l / 4 + i / 2 * 8, column = l % 4 * 2 + i % 2;
      float sum = own->c[i];
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      own->c[i] = sum;
    }
  }
}

inline void multiply_matrices(const unsigned (&a)[4], unsigned b0, unsigned b1, float (&c)[4],
                              EmulatedPlace where = EmulatedPlace::current()) {
  EmulatedProduct own{.a = a, .b = {b0, b1}, .c = c};
  emulator::together(&own, emulate_product, where);
}

}  // namespace tandem::kernels::cuda
