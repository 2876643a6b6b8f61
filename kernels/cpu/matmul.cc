// Matrix products on the tiles of tile.h. All four have the form
//   c[i, j] = (c[i, j] or 0) + sum_t a[i, t] * b[t, j]
// and differ in where b's columns come from: a packed weight's panels, or a matrix whose panels are
// read in place or packed here, block by block, on the stack. A block of terms of forward and of
// backward-input is one chain of kChainSteps (MM-1). The weight's gradient is one chain over all
// terms: between two blocks its unfinished sum waits in c, as an f32, so that the number of terms
// of a block does not change its bits. Sums of outputs in bf16 wait in f32 on the stack, and are
// rounded when all chains have been added.
#include <cstdint>

#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tile.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

using runtime::parallel_for;

constexpr std::int64_t kPanel = kPanelColumns;
// Terms that are taken at a time: of f32 a panel of them is 32 KiB, and c is visited once per
// block.
constexpr std::int64_t kBlockTerms = kChainSteps;
// Panels that are packed here fill 128 KiB of stack, of bf16 half. A long row of b is read in one
// go, while a strip of it costs a cache miss per term. So eight panels of half a block are packed
// where the next block may continue the chain, and four panels of a whole block elsewhere.
constexpr std::int64_t kPackedHereElements = 128 * 8 * kPanel;
// Where operands are read in place, and where copied together first. Terms of b, or of a transposed
// a, that lie far apart fall on few cache sets and on a page each. Rows of a tile that lie a
// multiple of 4 KiB apart share one set of eight ways, so twelve of them evict each other.
constexpr std::int64_t kNearColumns = 256;  // b's terms, in elements
constexpr std::int64_t kNearRows = 512;     // a transposed a's terms, in elements
constexpr std::int64_t kAliasBytes = 4096;
constexpr std::int64_t kLineBytes = 64;
constexpr std::int64_t kWays = 8;
// Rows whose block is copied at a time, 204 KiB of stack; a multiple of kLanes.
constexpr std::int64_t kCopiedRows = 192;
// Rows of one part: few, so that c's columns stay in the cache from block to block; more where
// they spare packing b.
constexpr std::int64_t kPartRows = kCopiedRows;
constexpr std::int64_t kPackingPartRows = 3 * kCopiedRows;
// Sums of outputs in bf16, 288 KiB of stack: all rows of a part that packs b, by the columns that
// it packs.
constexpr std::int64_t kSumsElements = kPackingPartRows * kPackedHereElements / kBlockTerms;
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

// So many terms, with those that fill the last step.
template <class T>
std::int64_t filled(std::int64_t terms) {
  return ceil_div(terms, kTerms<T>) * kTerms<T>;
}

// A matrix by (line, term): lines are a's rows or b's columns. One of the strides is 1.
template <class T>
struct Lines {
  const T* data = nullptr;
  std::int64_t line = 0;  // elements from line i to i + 1
  std::int64_t term = 0;  // elements from term t to t + 1
};

// Some rows by some columns of c, over some terms.
template <class T, class Out>
struct Part {
  Lines<T> a;
  Lines<T> b;
  bool packed = false;  // b.data is a packed weight's panels; b's strides say nothing
  Out* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t terms = 0;
  Sum sum = Sum::kWrite;
};

struct Range {
  std::int64_t begin, count;
};

template <class T, class Out>
Part<T, Out> cut_out(Part<T, Out> part, Range rows, Range columns) {
  part.a.data += rows.begin * part.a.line;
  part.b.data += columns.begin * (part.packed ? filled<T>(part.terms) : part.b.line);
  part.c += rows.begin * part.c_row + columns.begin;
  part.rows = rows.count;
  part.columns = columns.count;
  return part;
}

// One step of `count` (0 … 16) lines that lie side by side, of which `terms` terms are left. Zeros
// after the last line and the last term.
void pack_step(const float* from, std::int64_t, std::int64_t, std::int64_t count, float* to) {
  store(to, load(from, static_cast<int>(count)));
}
void pack_step(const Bf16* from, std::int64_t term, std::int64_t terms, std::int64_t count,
               Bf16* to) {
  const int n = static_cast<int>(count);
  store_pairs(to, pairs(load(from, n), terms > 1 ? load(from + term, n) : zero()));
}

// to = panels [steps][32][terms of a step] of the first `count` lines, which lie side by side.
template <class T>
void pack_terms(const Lines<T>& from, std::int64_t terms, std::int64_t count, T* to) {
  const std::int64_t panel = filled<T>(terms) * kPanel;
  const std::int64_t second = kTerms<T> == 1 ? kLanes : from.term;
  const T* step = from.data;
  for (std::int64_t t = 0; t < terms; t += kTerms<T>) {
    T* row = to + t * kPanel;
    for (std::int64_t j = 0; j < count; j += kPanel, row += panel) {
      // Terms far apart defeat the hardware's prefetcher; a prefetch past the end does nothing.
      const T* ahead = step + kPrefetchSteps * kTerms<T> * from.term + j;
      _mm_prefetch(ahead, _MM_HINT_T0);
      _mm_prefetch(ahead + second, _MM_HINT_T0);
      for (std::int64_t half = 0; half < kPanel; half += kLanes) {
        pack_step(step + j + half, from.term, terms - t, clamp(count - j - half, 0, kLanes),
                  row + half * kTerms<T>);
      }
    }
    step += kTerms<T> * from.term;
  }
}

template <class T>
struct Step {
  T at[kTerms<T>] = {};
};

// The same from lines whose terms lie side by side: the weight [N, K] of a forward product.
template <class T>
void pack_lines(const Lines<T>& from, std::int64_t terms, std::int64_t count, T* to) {
  const std::int64_t whole = terms / kTerms<T>, steps = ceil_div(terms, kTerms<T>);
  auto* panel = reinterpret_cast<Step<T>*>(to);
  for (std::int64_t j = 0; j < count; j += kPanel, panel += steps * kPanel) {
    for (std::int64_t c = 0; c < kPanel; ++c) {
      const T* line = from.data + (j + c) * from.line;
      const bool inside = j + c < count;
      for (std::int64_t s = 0; s < whole; ++s) {
        panel[s * kPanel + c] =
            inside ? *reinterpret_cast<const Step<T>*>(line + s * kTerms<T>) : Step<T>{};
      }
      if (whole < steps) panel[whole * kPanel + c] = {{inside ? line[terms - 1] : T{}}};
    }
  }
}

template <class T>
void pack_panels(const Lines<T>& b, std::int64_t terms, std::int64_t count, T* to) {
  if (b.term == 1) {
    pack_lines(b, terms, count, to);
  } else {
    pack_terms(b, terms, count, to);
  }
}

// Whether a tile can read a block's rows of a where they lie.
template <class T>
bool is_near(const Part<T, float>& block) {
  const auto size = static_cast<std::int64_t>(sizeof(T));
  if (block.a.term != 1) return kTerms<T> == 1 && block.a.term <= kNearRows;
  return block.terms % kTerms<T> == 0 &&
         (block.a.line * size % kAliasBytes != 0 || block.rows <= kWays);
}

// Copies some rows of a block of a, dense along the side that is contiguous already, and points
// `product` at them.
template <class T>
void copy_rows(const Lines<T>& a, std::int64_t terms, T* to, Product<T>& product) {
  const std::int64_t rows = product.rows;
  product.a = to;
  if (a.term == 1) {
    // One cache line more than the length, so that rows do not share their sets either.
    product.a_row = filled<T>(terms) + kLineBytes / static_cast<std::int64_t>(sizeof(T));
    product.a_step = kTerms<T>;
    for (std::int64_t r = 0; r < rows; ++r, to += product.a_row) {
      __builtin_memcpy(to, a.data + r * a.line, static_cast<std::size_t>(terms) * sizeof(T));
      if (terms % kTerms<T> != 0) to[terms] = T{};
    }
    return;
  }
  product.a_row = kTerms<T>;
  product.a_step = ceil_div(rows, kLanes) * kLanes * kTerms<T>;
  for (std::int64_t t = 0; t < terms; t += kTerms<T>, to += product.a_step) {
    for (std::int64_t r = 0; r < rows; r += kLanes) {
      pack_step(a.data + t * a.term + r, a.term, terms - t, lanes(rows - r), to + r * kTerms<T>);
    }
  }
}

template <class T, class Out>
bool is_in_place(const Part<T, Out>& part) {
  return kTerms<T> == 1 && part.b.line == 1 && part.b.term <= kNearColumns &&
         part.columns % kLanes == 0;  // so that no row is read past its end
}

// Where a part's b lies for one block of terms.
template <class T>
struct PanelSource {
  const T* data = nullptr;  // panel 0 of the part's columns
  std::int64_t step = 0;
  std::int64_t group = 0;
};

// The rows of one block of terms, copied where they lie far apart, times the part's columns.
template <class T>
void multiply_block(const Part<T, float>& block, const PanelSource<T>& b, std::int64_t width) {
  alignas(64) T copied[(kBlockTerms + kLineBytes / sizeof(T)) * kCopiedRows];
  const bool near = is_near(block);
  const std::int64_t height = near ? block.rows : kCopiedRows;
  for (std::int64_t i = 0; i < block.rows; i += height) {
    Lines<T> a = block.a;
    a.data += i * a.line;
    Product<T> product{.a = a.data,
                       .a_row = a.line,
                       .a_step = a.term * kTerms<T>,
                       .b_step = b.step,
                       .b_group = b.group,
                       .c_row = block.c_row,
                       .rows = clamp(block.rows - i, 0, height),
                       .steps = ceil_div(block.terms, kTerms<T>),
                       .sum = block.sum};
    if (!near) copy_rows(a, block.terms, copied, product);
    for (std::int64_t j = 0; j < block.columns; j += width) {
      product.columns = clamp(block.columns - j, 0, width);
      product.b = b.data + j / kPanel * b.group;
      product.c = block.c + i * block.c_row + j;
      multiply(product);
    }
  }
}

// Terms of a block whose panels are packed here, and the columns that then fit.
std::int64_t packed_here_terms(Sum sum) {
  return sum == Sum::kContinue ? kBlockTerms / 2 : kBlockTerms;
}
std::int64_t packed_here_columns(Sum sum) { return kPackedHereElements / packed_here_terms(sum); }

// At most packed_here_columns where b is packed here.
template <class T>
void multiply_part(const Part<T, float>& part) {
  alignas(64) T panels[kPackedHereElements];
  const bool in_place = !part.packed && is_in_place(part);
  const std::int64_t most = part.packed || in_place ? kBlockTerms : packed_here_terms(part.sum);
  // A few rows take several panels at a time; many rows keep one panel in the L1 cache.
  const std::int64_t width = part.packed && part.rows <= kRowUnit ? part.columns : kPanel;
  for (std::int64_t t = 0; t < part.terms || t == 0; t += most) {
    Part<T, float> block = part;
    block.terms = clamp(part.terms - t, 0, most);
    block.a.data += t * part.a.term;
    if (t > 0 && part.sum == Sum::kWrite) block.sum = Sum::kAdd;
    PanelSource<T> source{
        .data = panels, .step = kPanel * kTerms<T>, .group = filled<T>(block.terms) * kPanel};
    if (part.packed) {
      source.group = filled<T>(part.terms) * kPanel;
      source.data = part.b.data + t * kPanel;
    } else if (in_place) {
      source = {.data = part.b.data + t * part.b.term, .step = part.b.term, .group = kPanel};
    } else {
      block.b.data += t * part.b.term;
      pack_panels(block.b, block.terms, part.columns, panels);
    }
    multiply_block(block, source, width);
  }
}

template <class From, class To>
void convert_rows(const From* from, std::int64_t from_row, To* to, std::int64_t to_row,
                  std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < columns; j += kLanes) {
      const int n = lanes(columns - j);
      store(to + r * to_row + j, load(from + r * from_row + j, n), n);
    }
  }
}

// With outputs in bf16; rows * columns is at most kSumsElements.
template <class T>
void multiply_part(const Part<T, Bf16>& part) {
  alignas(64) float sums[kSumsElements];
  if (part.sum == Sum::kAdd)
    convert_rows(part.c, part.c_row, sums, part.columns, part.rows, part.columns);
  multiply_part(Part<T, float>{.a = part.a,
                               .b = part.b,
                               .packed = part.packed,
                               .c = sums,
                               .c_row = part.columns,
                               .rows = part.rows,
                               .columns = part.columns,
                               .terms = part.terms,
                               .sum = part.sum});
  convert_rows(sums, part.columns, part.c, part.c_row, part.rows, part.columns);
}

// How the outputs are cut: by their size alone, into about kPartsWanted parts of kWorkPerRange.
struct Cut {
  std::int64_t rows, columns;
};

template <class T, class Out>
Cut cut(const Part<T, Out>& product, bool packs_here) {
  const std::int64_t work = product.rows * product.columns * product.terms;
  const std::int64_t parts = clamp(work / kWorkPerRange, 1, kPartsWanted);
  const std::int64_t least = ceil_div(parts, ceil_div(product.columns, kPanel));
  const std::int64_t even = ceil_div(ceil_div(product.rows, least), kRowUnit) * kRowUnit;
  const std::int64_t rows = clamp(even, kRowUnit, packs_here ? kPackingPartRows : kPartRows);
  const std::int64_t across = ceil_div(parts, ceil_div(product.rows, rows));
  const std::int64_t columns = ceil_div(ceil_div(product.columns, across), kPanel) * kPanel;
  return {.rows = rows, .columns = columns};
}

template <class T, class Out>
void multiply_matrix(const Stream& stream, const Part<T, Out>& product) {
  if (product.rows == 0 || product.columns == 0) return;
  const bool packs_here = !product.packed && !is_in_place(product);
  const Cut size = cut(product, packs_here);
  const std::int64_t across = ceil_div(product.columns, size.columns);
  std::int64_t group = packs_here ? packed_here_columns(product.sum) : size.columns;
  if (sizeof(Out) < sizeof(float))
    group = clamp(kSumsElements / size.rows / kPanel * kPanel, kPanel, group);
  parallel_for(stream.pool, ceil_div(product.rows, size.rows) * across, 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t row = i / across * size.rows;
                   const Range rows{row, clamp(product.rows - row, 0, size.rows)};
                   const std::int64_t first = i % across * size.columns;
                   const std::int64_t last = clamp(first + size.columns, 0, product.columns);
                   for (std::int64_t j = first; j < last; j += group)
                     multiply_part(cut_out(product, rows, {j, clamp(last - j, 0, group)}));
                 }
               });
}

// A matrix [lines, terms].
template <class T>
Lines<T> lines_of_terms(const TensorView& view) {
  return {.data = data<T>(view), .line = view.row_stride, .term = 1};
}

// A matrix [terms, lines].
template <class T>
Lines<T> terms_of_lines(const TensorView& view) {
  return {.data = data<T>(view), .line = 1, .term = view.row_stride};
}

// a [rows, terms] times whatever b(T{}) says gives c [rows, columns], of a's dtype or f32.
template <class B>
void multiply_rows(const Stream& stream, const TensorView& a, const TensorView& c, Output output,
                   bool packed, const B& b) {
  const auto multiply_to = [&]<class T, class Out>(T, Out) {
    multiply_matrix(stream, Part<T, Out>{.a = lines_of_terms<T>(a),
                                         .b = b(T{}),
                                         .packed = packed,
                                         .c = data<Out>(c),
                                         .c_row = c.row_stride,
                                         .rows = a.dim(0),
                                         .columns = c.dim(1),
                                         .terms = a.dim(1),
                                         .sum = output == Output::kAdd ? Sum::kAdd : Sum::kWrite});
  };
  with_type(a.dtype, [&]<class T>(T) {
    if (c.dtype == a.dtype) return multiply_to(T{}, T{});
    multiply_to(T{}, float{});
  });
}

template <class T>
void pack(const Stream& stream, const PackWeight& op) {
  const std::int64_t n = op.packed.n, k = op.packed.k;
  const Lines<T> weight = lines_of_terms<T>(op.weight);
  T* panels = data<T>(op.packed.panels);
  const std::int64_t grain = clamp(kWorkPerRange / (kPanel * clamp(k, 1, k + 1)), 1, 1 << 20);
  parallel_for(stream.pool, ceil_div(n, kPanel), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      Lines<T> panel = weight;
      panel.data += p * kPanel * weight.line;
      pack_lines(panel, k, clamp(n - p * kPanel, 0, kPanel), panels + p * kPanel * filled<T>(k));
    }
  });
}

}  // namespace

void pack_weight(const Stream& stream, const PackWeight& op) {
  with_type(op.weight.dtype, [&]<class T>(T) { pack<T>(stream, op); });
}

void matmul(const Stream& stream, const Matmul& op) {
  multiply_rows(stream, op.x, op.y, op.output, true,
                [&]<class T>(T) { return Lines<T>{.data = data<T>(op.weight.panels)}; });
}

void matmul_plain(const Stream& stream, const MatmulPlain& op) {
  multiply_rows(stream, op.x, op.y, op.output, false,
                [&]<class T>(T) { return lines_of_terms<T>(op.weight); });
}

void matmul_backward_input(const Stream& stream, const MatmulBackwardInput& op) {
  multiply_rows(stream, op.dy, op.dx, op.output, false,
                [&]<class T>(T) { return terms_of_lines<T>(op.weight); });
}

void matmul_backward_weight(const Stream& stream, const MatmulBackwardWeight& op) {
  with_type(op.dy.dtype, [&]<class T>(T) {
    multiply_matrix(stream, Part<T, float>{.a = terms_of_lines<T>(op.dy),
                                           .b = terms_of_lines<T>(op.x),
                                           .c = data<float>(op.dweight),
                                           .c_row = op.dweight.row_stride,
                                           .rows = op.dweight.dim(0),
                                           .columns = op.dweight.dim(1),
                                           .terms = op.dy.dim(0),
                                           .sum = Sum::kContinue});
  });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
