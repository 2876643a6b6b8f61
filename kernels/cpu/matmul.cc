// Matrix products on the tiles of tile.h. All four have the form
//   c[i, j] = (c[i, j] or 0) + sum_t a[i, t] * b[t, j]
// and differ in where b's columns come from: a packed weight's panels, or a matrix whose panels are
// read in place or packed here, block by block, on the stack. A block of steps of forward and of
// backward-input is one chain of kChainSteps (MM-1). The weight's gradient is one chain over all
// steps: between two blocks its unfinished sum waits in c, as an f32, so that the number of steps
// of a block does not change its bits.
#include <cstdint>

#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tile.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

using runtime::parallel_for;

constexpr std::int64_t kPanel = kPanelColumns;
// Steps that are taken at a time: a panel of them is 32 KiB, and c is visited once per block.
constexpr std::int64_t kBlockSteps = kChainSteps;
// Panels that are packed here fill 128 KiB of stack. A long row of b is read in one go, while a
// strip of it costs a cache miss per step. So eight panels of half a block are packed where the
// next block may continue the chain, and four panels of a whole block elsewhere.
constexpr std::int64_t kPackedHereElements = 128 * 8 * kPanel;
// Where operands are read in place, and where copied together first. Steps of b, or of a transposed
// a, that lie far apart fall on few cache sets and on a page each. Rows of a tile that lie a
// multiple of 4 KiB apart share one set of eight ways, so twelve of them evict each other.
constexpr std::int64_t kNearElements = 256;    // steps of b
constexpr std::int64_t kNearSteps = 512;       // steps of a transposed a
constexpr std::int64_t kAliasElements = 1024;  // 4 KiB
constexpr std::int64_t kWays = 8;
// Rows whose block is copied at a time, 204 KiB of stack.
constexpr std::int64_t kCopiedRows = 192;
// Rows of one part: few, so that c's columns stay in the cache from block to block; more where
// they spare packing b.
constexpr std::int64_t kPartRows = kCopiedRows;
constexpr std::int64_t kPackingPartRows = 3 * kCopiedRows;
// Multiply-adds that are worth a hand-over to another thread (about 10 us).
constexpr std::int64_t kWorkPerRange = std::int64_t{1} << 19;
constexpr std::int64_t kPrefetchSteps = 4;
// Parts that a large product is cut into: enough for as many threads.
constexpr std::int64_t kPartsWanted = 16;
// Parts begin at multiples of a tile's height.
constexpr std::int64_t kRowUnit = 12;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t clamp(std::int64_t x, std::int64_t low, std::int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// The matrix b that a product reads by panels.
struct Columns {
  const float* data = nullptr;
  std::int64_t step = 0;    // elements from step t to t + 1
  std::int64_t column = 0;  // elements from column j to j + 1; one of the two is 1
  bool packed = false;      // data is a packed weight's panels; step and column say nothing
};

// to = panels [steps][32] of the columns [first, first + count), from rows of columns. Zeros after
// the last column.
void pack_rows(const float* from, std::int64_t step, std::int64_t steps, std::int64_t count,
               float* to) {
  for (std::int64_t t = 0; t < steps; ++t, from += step, to += kPanel) {
    float* row = to;
    for (std::int64_t j = 0; j < count; j += kPanel, row += steps * kPanel) {
      // Rows far apart defeat the hardware's prefetcher; a prefetch past the end does nothing.
      _mm_prefetch(from + kPrefetchSteps * step + j, _MM_HINT_T0);
      _mm_prefetch(from + kPrefetchSteps * step + j + kLanes, _MM_HINT_T0);
      const std::int64_t left = count - j;
      store(row, load(from + j, lanes(left)));
      store(row + kLanes, left > kLanes ? load(from + j + kLanes, lanes(left - kLanes)) : zero());
    }
  }
}

// The same from columns of steps: the weight [N, K] of a forward product.
void pack_columns(const float* from, std::int64_t column, std::int64_t steps, std::int64_t count,
                  float* to) {
  for (std::int64_t j = 0; j < count; j += kPanel, to += steps * kPanel) {
    for (std::int64_t c = 0; c < kPanel; ++c) {
      const float* source = from + (j + c) * column;
      const bool inside = j + c < count;
      for (std::int64_t t = 0; t < steps; ++t) to[t * kPanel + c] = inside ? source[t] : 0.0f;
    }
  }
}

void pack_panels(const Columns& b, std::int64_t begin, std::int64_t steps,
                 std::int64_t first_column, std::int64_t count, float* to) {
  const float* from = b.data + begin * b.step + first_column * b.column;
  if (b.column == 1) {
    pack_rows(from, b.step, steps, count, to);
  } else {
    pack_columns(from, b.column, steps, count, to);
  }
}

bool is_near(const Product& product) {
  return product.a_step == 1 ? product.a_row % kAliasElements != 0 || product.rows <= kWays
                             : product.a_step <= kNearSteps;
}

// Copies a block of a, dense along the side that is contiguous already, and points `part` at it.
void copy_rows(Product& part, float* to) {
  const bool by_row = part.a_step == 1;
  const std::int64_t lines = by_row ? part.rows : part.steps;
  const std::int64_t length = by_row ? part.steps : part.rows;
  const std::int64_t from_stride = by_row ? part.a_row : part.a_step;
  // One cache line more than the length, so that rows do not share their sets either.
  const std::int64_t stride = by_row ? length + kLanes : length;
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t i = 0; i < length; i += kLanes) {
      const int n = lanes(length - i);
      store(to + line * stride + i, load(part.a + line * from_stride + i, n), n);
    }
  }
  part.a = to;
  (by_row ? part.a_row : part.a_step) = stride;
}

bool is_in_place(const Product& product, const Columns& b) {
  return b.column == 1 && b.step <= kNearElements &&
         product.columns % kLanes == 0;  // so that no row is read past its end
}

// Where a part's b lies for one block of steps.
struct PanelSource {
  const float* data = nullptr;  // panel 0 of the part's columns
  std::int64_t step = 0;
  std::int64_t group = 0;
};

// The rows of one block of steps, copied where they lie far apart, times the part's columns.
void multiply_block(Product block, const PanelSource& b, std::int64_t width) {
  alignas(64) float copied[(kBlockSteps + kLanes) * kCopiedRows];
  const Product whole = block;
  const bool near = is_near(whole);
  const std::int64_t height = near ? whole.rows : kCopiedRows;
  for (std::int64_t i = 0; i < whole.rows; i += height) {
    block = whole;
    block.rows = clamp(whole.rows - i, 0, height);
    block.a = whole.a + i * whole.a_row;
    block.b_step = b.step;
    block.b_group = b.group;
    if (!near) copy_rows(block, copied);
    for (std::int64_t j = 0; j < whole.columns; j += width) {
      block.columns = clamp(whole.columns - j, 0, width);
      block.b = b.data + j / kPanel * b.group;
      block.c = whole.c + i * whole.c_row + j;
      multiply(block);
    }
  }
}

// Steps of a block whose panels are packed here, and the columns that then fit.
std::int64_t packed_here_steps(Sum sum) {
  return sum == Sum::kContinue ? kBlockSteps / 2 : kBlockSteps;
}
std::int64_t packed_here_columns(Sum sum) { return kPackedHereElements / packed_here_steps(sum); }

// The part's columns, from column `first` of b on; at most packed_here_columns of them where they
// are packed here.
void multiply_part(const Product& part, const Columns& b, std::int64_t first_column) {
  alignas(64) float panels[kPackedHereElements];
  const bool in_place = is_in_place(part, b);
  const std::int64_t most = b.packed || in_place ? kBlockSteps : packed_here_steps(part.sum);
  // A few rows take several panels at a time; many rows keep one panel in the L1 cache.
  const std::int64_t width = b.packed && part.rows <= kRowUnit ? part.columns : kPanel;
  for (std::int64_t t = 0; t < part.steps || t == 0; t += most) {
    Product block = part;
    block.steps = clamp(part.steps - t, 0, most);
    block.a = part.a + t * part.a_step;
    if (t > 0 && part.sum == Sum::kWrite) block.sum = Sum::kAdd;
    PanelSource source{.data = panels, .step = kPanel, .group = block.steps * kPanel};
    if (b.packed) {
      source.group = part.steps * kPanel;
      source.data = b.data + first_column / kPanel * source.group + t * kPanel;
    } else if (in_place) {
      source = {.data = b.data + t * b.step + first_column, .step = b.step, .group = kPanel};
    } else {
      pack_panels(b, t, block.steps, first_column, part.columns, panels);
    }
    multiply_block(block, source, width);
  }
}

// How the outputs are cut: by their size alone, into about kPartsWanted parts of kWorkPerRange.
struct Cut {
  std::int64_t rows, columns;
};

Cut cut(const Product& product, bool packs_here) {
  const std::int64_t work = product.rows * product.columns * product.steps;
  const std::int64_t parts = clamp(work / kWorkPerRange, 1, kPartsWanted);
  const std::int64_t least = ceil_div(parts, ceil_div(product.columns, kPanel));
  const std::int64_t even = ceil_div(ceil_div(product.rows, least), kRowUnit) * kRowUnit;
  const std::int64_t rows = clamp(even, kRowUnit, packs_here ? kPackingPartRows : kPartRows);
  const std::int64_t across = ceil_div(parts, ceil_div(product.rows, rows));
  const std::int64_t columns = ceil_div(ceil_div(product.columns, across), kPanel) * kPanel;
  return {.rows = rows, .columns = columns};
}

void multiply_matrix(const Stream& stream, const Product& product, const Columns& b) {
  if (product.rows == 0 || product.columns == 0) return;
  const bool packs_here = !b.packed && !is_in_place(product, b);
  const Cut size = cut(product, packs_here);
  const std::int64_t across = ceil_div(product.columns, size.columns);
  const std::int64_t group = packs_here ? packed_here_columns(product.sum) : size.columns;
  parallel_for(stream.pool, ceil_div(product.rows, size.rows) * across, 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t row = i / across * size.rows;
                   const std::int64_t first = i % across * size.columns;
                   const std::int64_t last = clamp(first + size.columns, 0, product.columns);
                   Product part = product;
                   part.a += row * product.a_row;
                   part.rows = clamp(product.rows - row, 0, size.rows);
                   for (std::int64_t j = first; j < last; j += group) {
                     part.c = product.c + row * product.c_row + j;
                     part.columns = clamp(last - j, 0, group);
                     multiply_part(part, b, j);
                   }
                 }
               });
}

// a [rows, steps] times whatever gives c [rows, columns].
Product row_product(const TensorView& a, const TensorView& c, Output output) {
  return {.a = a.f32(),
          .a_row = a.row_stride,
          .a_step = 1,
          .c = c.f32(),
          .c_row = c.row_stride,
          .rows = a.dim(0),
          .columns = c.dim(1),
          .steps = a.dim(1),
          .sum = output == Output::kAdd ? Sum::kAdd : Sum::kWrite};
}

}  // namespace

void pack_weight(const Stream& stream, const PackWeight& op) {
  const std::int64_t n = op.packed.n, k = op.packed.k;
  const Columns weight{.data = op.weight.f32(), .step = 1, .column = op.weight.row_stride};
  float* panels = op.packed.panels.f32();
  const std::int64_t grain = clamp(kWorkPerRange / (kPanel * clamp(k, 1, k + 1)), 1, 1 << 20);
  parallel_for(stream.pool, ceil_div(n, kPanel), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      pack_panels(weight, 0, k, p * kPanel, clamp(n - p * kPanel, 0, kPanel),
                  panels + p * k * kPanel);
    }
  });
}

void matmul(const Stream& stream, const Matmul& op) {
  multiply_matrix(stream, row_product(op.x, op.y, op.output),
                  {.data = op.weight.panels.f32(), .packed = true});
}

void matmul_plain(const Stream& stream, const MatmulPlain& op) {
  multiply_matrix(stream, row_product(op.x, op.y, op.output),
                  {.data = op.weight.f32(), .step = 1, .column = op.weight.row_stride});
}

void matmul_backward_input(const Stream& stream, const MatmulBackwardInput& op) {
  multiply_matrix(stream, row_product(op.dy, op.dx, op.output),
                  {.data = op.weight.f32(), .step = op.weight.row_stride, .column = 1});
}

void matmul_backward_weight(const Stream& stream, const MatmulBackwardWeight& op) {
  const Product product{.a = op.dy.f32(),
                        .a_row = 1,
                        .a_step = op.dy.row_stride,
                        .c = op.dweight.f32(),
                        .c_row = op.dweight.row_stride,
                        .rows = op.dweight.dim(0),
                        .columns = op.dweight.dim(1),
                        .steps = op.dy.dim(0),
                        .sum = Sum::kContinue};
  multiply_matrix(stream, product, {.data = op.x.f32(), .step = op.x.row_stride, .column = 1});
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
