// Matrix products on the tiles of tile.h. All four have the form
//   c[i, j] = (c[i, j] or 0) + sum_t a[i, t] * b[t, j]
// and differ in where b's columns come from: a packed weight's panels, or a matrix whose panels are
// read in place or packed here, block by block, on the stack. Cutting the steps into blocks does
// not change a bit: the sum rests in c between blocks, as the f32 that it is.
#include <cstdint>

#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tile.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

using runtime::parallel_for;

constexpr std::int64_t kPanel = kPanelColumns;
// Steps that are taken at a time: a panel of them is 32 KiB, and c is visited once per block. Half
// as many where panels are packed here, eight at a time (128 KiB of stack), because a long row is
// read in one go while a strip of it costs a cache miss per step.
constexpr std::int64_t kBlockSteps = 256;
constexpr std::int64_t kPackedHereSteps = 128;
constexpr std::int64_t kPackedHereColumns = 8 * kPanel;
// Rows (of a) or steps (of b) that lie further apart than this, 1 KiB, are copied together before
// use. In place they would fall on few cache sets and on a page each: at a distance of 4 KiB the
// twelve rows of a tile already evict each other, and a product runs at a third of its speed.
constexpr std::int64_t kNearElements = 256;
// Rows of a in one part; a copied block of them is 192 KiB of stack.
constexpr std::int64_t kCopiedRows = 192;
constexpr std::int64_t kNearRows = 516;
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

// Panels [steps][32] of the columns [first, first + count), zeros after them.
void pack_panels(const Columns& b, std::int64_t begin, std::int64_t steps,
                 std::int64_t first_column, std::int64_t count, float* to) {
  const float* from = b.data + begin * b.step + first_column * b.column;
  const std::int64_t width = ceil_div(count, kPanel) * kPanel;
  for (std::int64_t t = 0; t < steps; ++t, from += b.step, to += kPanel) {
    if (b.column == 1) {
      for (std::int64_t j = 0; j < width; j += kLanes) {
        // Rows far apart defeat the hardware's prefetcher; a prefetch past the end does nothing.
        _mm_prefetch(from + kPrefetchSteps * b.step + j, _MM_HINT_T0);
        const F32x16 part = j < count ? load(from + j, lanes(count - j)) : zero();
        store(to + j / kPanel * steps * kPanel + j % kPanel, part);
      }
      continue;
    }
    for (std::int64_t j = 0; j < width; ++j) {
      to[j / kPanel * steps * kPanel + j % kPanel] = j < count ? from[j * b.column] : 0.0f;
    }
  }
}

bool is_near(const Product& product) {
  const std::int64_t apart = product.a_step == 1 ? product.a_row : product.a_step;
  return apart <= kNearElements || product.rows <= 2;
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

// The part's columns [first, last).
void multiply_part(Product part, const Columns& b, std::int64_t first_column,
                   std::int64_t last_column) {
  alignas(64) float panels[kPackedHereSteps * kPackedHereColumns];
  alignas(64) float rows[(kBlockSteps + kLanes) * kCopiedRows];
  const Product whole = part;
  const bool near = is_near(whole);
  const bool in_place = b.column == 1 && b.step <= kNearElements && whole.columns % kLanes == 0;
  const std::int64_t block = b.packed || in_place ? kBlockSteps : kPackedHereSteps;
  // A few rows take several panels at a time; many rows keep one panel in the L1 cache.
  const std::int64_t width =
      b.packed && whole.rows <= kRowUnit ? last_column - first_column : kPanel;
  for (std::int64_t t = 0; t < whole.steps || t == 0; t += block) {
    part.steps = clamp(whole.steps - t, 0, block);
    part.a = whole.a + t * whole.a_step;
    part.a_row = whole.a_row;
    part.a_step = whole.a_step;
    part.b_step = b.packed || !in_place ? kPanel : b.step;
    part.b_group = b.packed ? whole.steps * kPanel : kPanel;
    part.accumulate = whole.accumulate || t > 0;
    if (!near) copy_rows(part, rows);
    for (std::int64_t j = first_column; j < last_column; j += width) {
      part.columns = clamp(last_column - j, 0, width);
      part.c = whole.c + j;
      const std::int64_t in_panels = (j - first_column) % kPackedHereColumns;
      if (b.packed) {
        part.b = b.data + j / kPanel * part.b_group + t * kPanel;
      } else if (in_place) {
        part.b = b.data + t * b.step + j;
      } else {
        if (in_panels == 0) {
          pack_panels(b, t, part.steps, j, clamp(last_column - j, 0, kPackedHereColumns), panels);
        }
        part.b = panels + in_panels * part.steps;
      }
      multiply(part);
    }
  }
}

// Cuts the outputs into parts by their size alone.
void multiply_matrix(const Stream& stream, const Product& product, const Columns& b) {
  if (product.rows == 0 || product.columns == 0) return;
  const std::int64_t depth = product.steps > 0 ? product.steps : 1;
  const std::int64_t most = is_near(product) ? kNearRows : kCopiedRows;
  const std::int64_t worth = ceil_div(kWorkPerRange, depth * product.columns);
  const std::int64_t rows = ceil_div(worth < most ? worth : most, kRowUnit) * kRowUnit;
  const std::int64_t height = product.rows < rows ? product.rows : rows;
  // Columns are cut only where rows make too few parts: each part copies its rows for itself.
  const std::int64_t row_parts = ceil_div(product.rows, rows);
  const std::int64_t wanted = ceil_div(product.columns, ceil_div(kPartsWanted, row_parts));
  const std::int64_t least = ceil_div(kWorkPerRange, depth * height);
  const std::int64_t columns = ceil_div(wanted > least ? wanted : least, kPanel) * kPanel;
  const std::int64_t across = ceil_div(product.columns, columns);
  parallel_for(stream.pool, row_parts * across, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / across * rows, column = i % across * columns;
      Product part = product;
      part.a += row * product.a_row;
      part.c += row * product.c_row;
      part.rows = clamp(product.rows - row, 0, rows);
      multiply_part(part, b, column, clamp(column + columns, 0, product.columns));
    }
  });
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
  const Product product{.a = op.x.f32(),
                        .a_row = op.x.row_stride,
                        .a_step = 1,
                        .c = op.y.f32(),
                        .c_row = op.y.row_stride,
                        .rows = op.x.dim(0),
                        .columns = op.weight.n,
                        .steps = op.weight.k,
                        .accumulate = op.output == Output::kAdd};
  multiply_matrix(stream, product, {.data = op.weight.panels.f32(), .packed = true});
}

void matmul_plain(const Stream& stream, const MatmulPlain& op) {
  const Product product{.a = op.x.f32(),
                        .a_row = op.x.row_stride,
                        .a_step = 1,
                        .c = op.y.f32(),
                        .c_row = op.y.row_stride,
                        .rows = op.x.dim(0),
                        .columns = op.weight.dim(0),
                        .steps = op.weight.dim(1),
                        .accumulate = op.output == Output::kAdd};
  multiply_matrix(stream, product,
                  {.data = op.weight.f32(), .step = 1, .column = op.weight.row_stride});
}

void matmul_backward_input(const Stream& stream, const MatmulBackwardInput& op) {
  const Product product{.a = op.dy.f32(),
                        .a_row = op.dy.row_stride,
                        .a_step = 1,
                        .c = op.dx.f32(),
                        .c_row = op.dx.row_stride,
                        .rows = op.dy.dim(0),
                        .columns = op.weight.dim(1),
                        .steps = op.weight.dim(0),
                        .accumulate = op.output == Output::kAdd};
  multiply_matrix(stream, product,
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
                        .accumulate = true};
  multiply_matrix(stream, product, {.data = op.x.f32(), .step = op.x.row_stride, .column = 1});
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
