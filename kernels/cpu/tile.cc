#include "kernels/cpu/tile.h"

#include "kernels/cpu/simd.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

// One tile: R rows by V vectors of columns; with kTail the last vector has `lanes` columns in c.
template <int R, int V, bool kTail>
void tile(const Product& product, const float* a, const float* b, float* c, int lanes) {
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
    F32x16 row[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) row[v] = load(b + (v / 2) * b_group + (v % 2) * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const F32x16 factor = set(a[r * a_row]);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[r][v] = fma(factor, row[v], sum[r][v]);
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

using TileFunction = void (*)(const Product&, const float*, const float*, float*, int);

// The tiles of one width, by rows - 1; null where the registers would not hold the sums.
struct Tiles {
  TileFunction rows[kTileRowsMax] = {};
};

template <int R, int V, bool kTail>
constexpr void fill(Tiles& tiles) {
  if constexpr (R * V <= kTileVectors) {
    tiles.rows[R - 1] = tile<R, V, kTail>;
    if constexpr (R < kTileRowsMax) fill<R + 1, V, kTail>(tiles);
  }
}

template <int V, bool kTail>
constexpr Tiles tiles() {
  Tiles table;
  fill<1, V, kTail>(table);
  return table;
}

constexpr Tiles kTail = tiles<1, true>();
constexpr Tiles kOne = tiles<1, false>();
constexpr Tiles kTwo = tiles<2, false>();
constexpr Tiles kFour = tiles<4, false>();
constexpr Tiles kEight = tiles<8, false>();

// Row counts from which a wider tile no longer fits.
constexpr std::int64_t rows_max(int vectors) { return kTileVectors / vectors; }

// Rows per tile: where two vectors at full height do not fit (AVX2), one vector and more rows.
constexpr std::int64_t kRows = kTileRowsMax;

void multiply_rows(const Product& p, const float* a, float* c, std::int64_t rows) {
  const std::int64_t index = rows - 1;
  std::int64_t j = 0;
  const auto run = [&](TileFunction function, int lanes) {
    function(p, a, p.b + j / 32 * p.b_group + j % 32, c + j, lanes);
  };
  while (j < p.columns) {
    const std::int64_t left = p.columns - j;
    if (left >= 8 * kLanes && rows <= rows_max(8)) {
      run(kEight.rows[index], 0);
      j += 8 * kLanes;
    } else if (left >= 4 * kLanes && rows <= rows_max(4)) {
      run(kFour.rows[index], 0);
      j += 4 * kLanes;
    } else if (left >= 2 * kLanes && rows <= rows_max(2)) {
      run(kTwo.rows[index], 0);
      j += 2 * kLanes;
    } else if (left >= kLanes) {
      run(kOne.rows[index], 0);
      j += kLanes;
    } else {
      run(kTail.rows[index], static_cast<int>(left));
      j += left;
    }
  }
}

}  // namespace

void multiply(const Product& p) {
  // Blocks of nearly equal height: a last block of one row would leave the multipliers idle.
  const std::int64_t blocks = (p.rows + kRows - 1) / kRows;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t begin = p.rows * block / blocks;
    const std::int64_t end = p.rows * (block + 1) / blocks;
    multiply_rows(p, p.a + begin * p.a_row, p.c + begin * p.c_row, end - begin);
  }
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
