// The tiles of tile.h: R rows by V vectors of columns, whose sums stay in registers over all steps.
//
// A tile exists for each shape that the registers hold; multiply_rows takes the widest one for its
// number of rows, so that a step loads few operands for many multiply-adds. While a tile computes,
// it prefetches: its own columns of later steps, the sums of the tile after it, and a share of the
// memory that is copied or packed next (Ahead).
#include "kernels/cpu/tile.h"

#include "kernels/cpu/simd.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

// The instruction for products of bf16 pairs (simd_avx512bf16.h) takes denormals for zeros. While
// an object of this class exists, all arithmetic of the thread does so too.
class FlushDenormals {
 public:
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
  }
  ~FlushDenormals() { _mm_setcsr(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned before_;
};

// The parts of one step: the terms of b for 16 columns, the terms of a for one row, and the
// products of both added to 16 sums.
TANDEM_INLINE F32x16 step_of_columns(const float* b) { return load(b); }
TANDEM_INLINE Pairs16 step_of_columns(const Bf16* b) { return load_pairs(b); }
TANDEM_INLINE F32x16 step_of_row(const float* a) { return set(*a); }
TANDEM_INLINE Pairs16 step_of_row(const Bf16* a) { return set_pair(a); }
TANDEM_INLINE F32x16 add_step(F32x16 a, F32x16 b, F32x16 sum) { return fma(a, b, sum); }
TANDEM_INLINE F32x16 add_step(Pairs16 a, Pairs16 b, F32x16 sum) { return dot(a, b, sum); }

// A panel and the rows that it meets do not fit the L1 cache together, so each step prefetches the
// columns of a later step. That step is 4 KiB further on in the panel, or 1 KiB in the wide tiles
// for few rows, which read up to four panels at once. Wide tiles of f32 prefetch nothing: products
// of 1 to 8 rows were slower with it.
constexpr int kAheadSteps = 32, kAheadStepsWide = 8;

// One tile: R rows by V vectors of columns; with kTail the last vector has `lanes` columns in c.
template <class T, int R, int V, bool kTail>
void tile(const Product<T>& product, const T* a, const T* b, float* c, int lanes) {
  F32x16 sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      const float* from = c + r * product.c_row + v * kLanes;
      sum[r][v] = product.sum != Sum::kContinue ? zero()
                  : kTail && v == V - 1         ? load(from, lanes)
                                                : load(from);
    }
  }
  const std::int64_t a_row = product.a_row, a_step = product.a_step;
  const std::int64_t b_step = product.b_step, b_group = product.b_group;
  for (std::int64_t t = product.steps; t > 0; --t, a += a_step, b += b_step) {
    decltype(step_of_columns(b)) row[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      const T* columns = b + (v / 2) * b_group + (v % 2) * kLanes * kTerms<T>;
      if constexpr (V <= 2 || kTerms<T> == 2)
        _mm_prefetch(columns + (V <= 2 ? kAheadSteps : kAheadStepsWide) * b_step, _MM_HINT_T0);
      row[v] = step_of_columns(columns);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto factor = step_of_row(a + r * a_row);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[r][v] = add_step(factor, row[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      float* to = c + r * product.c_row + v * kLanes;
      const bool tail = kTail && v == V - 1;
      if (product.sum == Sum::kAdd) sum[r][v] = (tail ? load(to, lanes) : load(to)) + sum[r][v];
      if (tail) {
        store(to, sum[r][v], lanes);
      } else {
        store(to, sum[r][v]);
      }
    }
  }
}

// The most sums of a tile, in vectors, and the most rows.
template <class T>
inline constexpr int kVectors = kTerms<T> == 1 ? kTileVectors : kPairTileVectors;
template <class T>
inline constexpr int kRows = kTerms<T> == 1 ? kTileRowsMax : kPairTileRowsMax;

template <class T>
using TileFunction = void (*)(const Product<T>&, const T*, const T*, float*, int);

// The tiles of one width, by rows - 1; null where the registers would not hold the sums.
template <class T>
struct Tiles {
  TileFunction<T> rows[kRows<T>] = {};
};

template <class T, int R, int V, bool kTail>
constexpr void fill(Tiles<T>& tiles) {
  if constexpr (R * V <= kVectors<T>) {
    tiles.rows[R - 1] = tile<T, R, V, kTail>;
    if constexpr (R < kRows<T>) fill<T, R + 1, V, kTail>(tiles);
  }
}

template <class T, int V, bool kTail = false>
constexpr Tiles<T> tiles() {
  Tiles<T> table;
  fill<T, 1, V, kTail>(table);
  return table;
}

template <class T>
constexpr Tiles<T> kTail = tiles<T, 1, true>();
template <class T, int V>
constexpr Tiles<T> kTiles = tiles<T, V>();

// The most rows of a tile that is this many vectors wide. Where two vectors at full height do not
// fit the registers (AVX2), blocks of many rows are multiplied in tiles of one vector.
template <class T>
constexpr std::int64_t rows_max(int vectors) {
  return kVectors<T> / vectors;
}

void prefetch(Ahead& ahead) {
  const std::int64_t rows = ahead.rows_per_tile < ahead.rows ? ahead.rows_per_tile : ahead.rows;
  for (std::int64_t r = 0; r < rows; ++r, ahead.data += ahead.row)
    for (std::int64_t i = 0; i < ahead.row_lines; ++i)
      _mm_prefetch(ahead.data + i * kLineBytes, _MM_HINT_T1);
  ahead.rows -= rows;
}

// Prefetches the sums that the same columns of the next block of rows begin with, as if that block
// had as many rows.
template <class T>
void prefetch_sums(const Product<T>& p, const float* next, std::int64_t rows, std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r, next += p.c_row)
    for (std::int64_t j = 0; j < width; j += kLanes) _mm_prefetch(next + j, _MM_HINT_T0);
}

// `more`: other rows of the product follow.
template <class T>
void multiply_rows(const Product<T>& p, const T* a, float* c, std::int64_t rows, bool more) {
  const std::int64_t index = rows - 1;
  std::int64_t j = 0;
  const auto run = [&](TileFunction<T> function, std::int64_t width, int lanes) {
    if (more) prefetch_sums(p, c + rows * p.c_row + j, rows, width);
    if (p.ahead != nullptr) {
      prefetch(p.ahead[0]);
      prefetch(p.ahead[1]);
    }
    function(p, a, p.b + j / 32 * p.b_group + j % 32 * kTerms<T>, c + j, lanes);
    j += width;
  };
  while (j < p.columns) {
    const std::int64_t left = p.columns - j;
    if (left >= 8 * kLanes && rows <= rows_max<T>(8)) {
      run(kTiles<T, 8>.rows[index], 8 * kLanes, 0);
    } else if (left >= 4 * kLanes && rows <= rows_max<T>(4)) {
      run(kTiles<T, 4>.rows[index], 4 * kLanes, 0);
    } else if (left >= 2 * kLanes && rows <= rows_max<T>(2)) {
      run(kTiles<T, 2>.rows[index], 2 * kLanes, 0);
    } else if (left >= kLanes) {
      run(kTiles<T, 1>.rows[index], kLanes, 0);
    } else {
      run(kTail<T>.rows[index], left, static_cast<int>(left));
    }
  }
}

template <class T>
void multiply_blocks(const Product<T>& p) {
  // Blocks of nearly equal height: a last block of one row would leave the multipliers idle.
  const std::int64_t blocks = (p.rows + kRows<T> - 1) / kRows<T>;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t begin = p.rows * block / blocks;
    const std::int64_t end = p.rows * (block + 1) / blocks;
    multiply_rows(p, p.a + begin * p.a_row, p.c + begin * p.c_row, end - begin, end < p.rows);
  }
}

}  // namespace

void multiply(const Product<float>& product) { multiply_blocks(product); }

void multiply(const Product<Bf16>& product) {
  // Tiles are called through pointers, so the compiler moves none of their arithmetic out of here.
  const FlushDenormals flush;
  multiply_blocks(product);
}

void multiply_widened(const Product<float>& product) {
  const FlushDenormals flush;
  multiply_blocks(product);
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
