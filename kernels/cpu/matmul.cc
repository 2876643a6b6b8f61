// Matrix products on the tiles of tile.h. All four have the form
//   c[i, j] = (c[i, j] or 0) + sum_t a[i, t] * b[t, j]
// and differ in where b's columns come from: a packed weight's panels, or a matrix whose panels are
// read in place or packed here, block by block, on the stack. A block of terms of forward and of
// backward-input is one chain of kChainSteps (MM-1). The weight's gradient is one chain over all
// terms: between two blocks its unfinished sum waits in c, as an f32, so that the number of terms
// of a block does not change its bits. Sums of outputs in bf16 wait in f32 on the stack, and are
// rounded when all chains have been added. While a block is multiplied, the memory of the next one
// is prefetched (Ahead, tile.h).
#include "kernels/ops/matmul.h"

#include <cstdint>

#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tile.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

using device::parallel_for;

constexpr std::int64_t kPanel = kPanelColumns;
// Terms of a block: c is read and written once for each.
constexpr std::int64_t kBlockTerms = kChainSteps;
// Bounds up to which operands are read in place; others are copied together first. Terms of b, or
// of a transposed a, that lie far apart fall on few cache sets, and each on a memory page of its
// own. Rows of a tile that lie a multiple of 4 KiB apart share one set of eight ways, so twelve of
// them evict each other.
constexpr std::int64_t kNearColumns = 256;  // b's terms, in elements
constexpr std::int64_t kNearRows = 512;     // a transposed a's terms, in elements
constexpr std::int64_t kAliasBytes = 4096;
constexpr std::int64_t kWays = 8;
// Rows of a part, a multiple of kRowUnit. A block of them that is copied takes 280 KiB of stack in
// f32.
constexpr std::int64_t kPartRows = 264;
// Outputs that are finished before others are begun: 640 KiB. More of them mean fewer copies of the
// operands, and they may leave the second cache between two blocks, as each tile prefetches those
// of the next.
constexpr std::int64_t kPartElements = 160 * 1024;
// Sums of outputs in bf16, 384 KiB of stack.
constexpr std::int64_t kSumsElements = 96 * 1024;
// Multiply-adds that are worth a hand-over to another thread (about 10 us).
constexpr std::int64_t kWorkPerRange = std::int64_t{1} << 19;
// Products of fewer rows take no less time than of this many: reading b from memory takes as long
// as multiplying it with this many rows.
constexpr std::int64_t kReadingRows = 8;
// Steps between the terms that are packed and those that are prefetched.
constexpr std::int64_t kPrefetchSteps = 4;
// Parts for each thread that a product of many rows is cut into, so that no thread waits long for
// the last one. Up to kStreamRows rows each thread has one part, and reads b in one stream.
constexpr std::int64_t kPartsPerThread = 4;
constexpr std::int64_t kPartsOfGradient = 8;  // the same, for the gradient of a weight
constexpr std::int64_t kStreamRows = 32;
// Rows for which widening the operands of pairs to f32 pays off (kWidensPairs).
constexpr std::int64_t kWidenRows = 32;
// Parts begin at multiples of a tile's height.
constexpr std::int64_t kRowUnit = 12;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t clamp(std::int64_t x, std::int64_t low, std::int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// The number of terms, rounded up to whole steps.
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

// Packs one step of `count` (0 … 16) lines that lie side by side, of which `terms` terms are left.
// Lines past the last one and terms past the last one become zeros. A pair that is widened becomes
// two steps, `to_step` elements apart, the odd term first: the order of their sums (MM-1).
void pack_step(const float* from, std::int64_t, std::int64_t, std::int64_t count, float* to,
               std::int64_t) {
  store(to, load(from, static_cast<int>(count)));
}
[[maybe_unused]] inline void pack_step(const Bf16* from, std::int64_t term, std::int64_t terms,
                                       std::int64_t count, float* to, std::int64_t to_step) {
  const int n = static_cast<int>(count);
  store(to, terms > 1 ? load(from + term, n) : zero());
  store(to + to_step, load(from, n));
}
void pack_step(const Bf16* from, std::int64_t term, std::int64_t terms, std::int64_t count,
               Bf16* to, std::int64_t) {
  const int n = static_cast<int>(count);
  store_pairs(to, pairs(load(from, n), terms > 1 ? load(from + term, n) : zero()));
}

// to = a panel [steps][32][terms of a step] of the first `count` (0 … 32) lines, which lie side by
// side.
template <class T>
void pack_terms(const Lines<T>& from, std::int64_t terms, std::int64_t count, T* to) {
  const std::int64_t second = kTerms<T> == 1 ? kLanes : from.term;
  const T* step = from.data;
  for (std::int64_t t = 0; t < terms; t += kTerms<T>, to += kTerms<T> * kPanel) {
    // Terms far apart defeat the hardware's prefetcher; a prefetch past the end does nothing.
    const T* ahead = step + kPrefetchSteps * kTerms<T> * from.term;
    _mm_prefetch(ahead, _MM_HINT_T0);
    _mm_prefetch(ahead + second, _MM_HINT_T0);
    for (std::int64_t half = 0; half < kPanel; half += kLanes) {
      pack_step(step + half, from.term, terms - t, clamp(count - half, 0, kLanes),
                to + half * kTerms<T>, kPanel * kTerms<T>);
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
  for (std::int64_t c = 0; c < kPanel; ++c) {
    const T* line = from.data + c * from.line;
    const bool inside = c < count;
    for (std::int64_t s = 0; s < whole; ++s) {
      panel[s * kPanel + c] =
          inside ? *reinterpret_cast<const Step<T>*>(line + s * kTerms<T>) : Step<T>{};
    }
    if (whole < steps) panel[whole * kPanel + c] = {{inside ? line[terms - 1] : T{}}};
  }
}

template <class T>
void pack_panel(const Lines<T>& b, std::int64_t terms, std::int64_t count, T* to) {
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

void copy_vector(const float* from, float* to) { store(to, load(from)); }
void copy_vector(const Bf16* from, Bf16* to) { store_pairs(to, load_pairs(from)); }

// A memcpy of some hundred bytes, whose number the compiler does not know, takes twice as long.
template <class T>
void copy_row(const T* from, std::int64_t terms, T* to) {
  constexpr std::int64_t kVector = kLanes * kTerms<T>;
  std::int64_t t = 0;
  for (; t + kVector <= terms; t += kVector) copy_vector(from + t, to + t);
  for (; t < terms; ++t) to[t] = from[t];
  if (t % kTerms<T> != 0) to[t] = T{};
}
// The same with each pair widened, the odd term first.
[[maybe_unused]] inline void copy_row(const Bf16* from, std::int64_t terms, float* to) {
  const std::int64_t whole = terms / 2 * 2;
  for (std::int64_t t = 0; t < whole; t += 2) {
    to[t] = widened(from[t + 1]);
    to[t + 1] = widened(from[t]);
  }
  if (whole == terms) return;
  to[whole] = 0;
  to[whole + 1] = widened(from[whole]);
}

// The same for a panel of pairs.
[[maybe_unused]] inline void widen_panel(const Bf16* from, std::int64_t steps, float* to) {
  constexpr std::int64_t kPairs = kTerms<Bf16> * kLanes;  // elements of a vector of pairs
  for (std::int64_t s = 0; s < steps; ++s, to += 2 * kPanel) {
    for (std::int64_t c = 0; c < kPanel; c += kLanes, from += kPairs) {
      const Pairs16 columns = load_pairs(from);
      store(to + c, odd_terms(columns));
      store(to + kPanel + c, even_terms(columns));
    }
  }
}

// Copies some rows of a block of a, dense along the side that is contiguous already, and points
// `product` at them. Its elements U are of a's type T, or floats for pairs, which are widened.
template <class U, class T>
void copy_rows(const Lines<T>& a, std::int64_t terms, U* to, Product<U>& product) {
  const std::int64_t rows = product.rows;
  product.a = to;
  if (a.term == 1) {
    // One cache line more than the length, so that rows do not share their sets either.
    product.a_row = filled<T>(terms) + kLineBytes / static_cast<std::int64_t>(sizeof(U));
    product.a_step = kTerms<U>;
    for (std::int64_t r = 0; r < rows; ++r, to += product.a_row)
      copy_row(a.data + r * a.line, terms, to);
    return;
  }
  product.a_row = kTerms<U>;
  product.a_step = ceil_div(rows, kLanes) * kLanes * kTerms<U>;
  const std::int64_t step = product.a_step * (kTerms<T> / kTerms<U>);
  for (std::int64_t t = 0; t < terms; t += kTerms<T>, to += step) {
    for (std::int64_t r = 0; r < rows; r += kLanes) {
      pack_step(a.data + t * a.term + r, a.term, terms - t, lanes(rows - r), to + r * kTerms<U>,
                product.a_step);
    }
  }
}

template <class T, class Out>
bool is_in_place(const Part<T, Out>& part) {
  return kTerms<T> == 1 && part.b.line == 1 && part.b.term <= kNearColumns &&
         part.columns % kLanes == 0;  // so that no row is read past its end
}

// The place of a part's b for one block of terms.
template <class T>
struct PanelSource {
  const T* data = nullptr;  // panel 0 of the part's columns
  std::int64_t step = 0;
  std::int64_t group = 0;
  T* panel = nullptr;  // each panel is packed to here just before it is multiplied
};

// The memory that copying or packing a block reads, to be prefetched in equal shares by about
// `tiles` tiles.
template <class T>
Ahead ahead_of(const Lines<T>& block, std::int64_t lines, std::int64_t terms, std::int64_t tiles) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  const bool by_line = block.term == 1;
  const std::int64_t rows = by_line ? lines : terms;
  return {.data = reinterpret_cast<const char*>(block.data),
          .row = (by_line ? block.line : block.term) * kSize,
          .row_lines = ceil_div((by_line ? terms : lines) * kSize, kLineBytes),
          .rows = rows,
          .rows_per_tile = ceil_div(rows, tiles)};
}

// The lines of one panel of a block's b, and some before or after them.
template <class T>
Lines<T> lines_from(const Part<T, float>& block, std::int64_t column) {
  Lines<T> lines = block.b;
  lines.data += column * lines.line;
  return lines;
}

template <class T>
Ahead ahead_of_panel(const Part<T, float>& block, std::int64_t column, std::int64_t tiles) {
  return ahead_of(lines_from(block, column), clamp(block.columns - column, 0, kPanel), block.terms,
                  tiles);
}

// Multiplies the rows of one block of terms, copied first where they lie far apart, by the part's
// columns. Meanwhile it prefetches the operands that will be copied or packed soon, of this block
// and of `next`, the block that follows. U is the type that the tiles multiply: T, or float for
// pairs, whose rows and panels are widened here.
template <class U, class T>
void multiply_block(const Part<T, float>& block, const PanelSource<T>& b, std::int64_t width,
                    const Part<T, float>& next) {
  constexpr bool kWidens = kTerms<U> != kTerms<T>;
  constexpr std::int64_t kByRow =
      (kBlockTerms + kLineBytes / static_cast<std::int64_t>(sizeof(U))) * kPartRows;
  static_assert(kBlockTerms * ceil_div(kPartRows, kLanes) * kLanes <= kByRow, "room by step too");
  alignas(64) U copied[kByRow];
  alignas(64) U wide[kWidens ? kBlockTerms * kPanel : 1];
  const std::int64_t steps = ceil_div(block.terms, kTerms<T>);
  const std::int64_t tiles = ceil_div(block.rows, kRowUnit);  // tiles per panel
  Ahead ahead[2];
  Product<U> product{.a_row = block.a.line,
                     .a_step = block.a.term * kTerms<T>,
                     .b_step = kWidens ? kPanel * kTerms<U> : b.step,
                     .b_group = b.group,
                     .c_row = block.c_row,
                     .rows = block.rows,
                     .steps = steps * (kTerms<T> / kTerms<U>),
                     .sum = block.sum,
                     .ahead = ahead};
  if constexpr (!kWidens) product.a = block.a.data;
  if (kWidens || !is_near(block)) {
    copy_rows(block.a, block.terms, copied, product);
    ahead[0] = ahead_of(next.a, next.rows, next.terms, tiles * ceil_div(block.columns, kPanel));
  }
  for (std::int64_t j = 0; j < block.columns; j += width) {
    product.columns = clamp(block.columns - j, 0, width);
    const T* panel = b.data + j / kPanel * b.group;
    product.c = block.c + j;
    if (b.panel != nullptr) {
      pack_panel(lines_from(block, j), block.terms, product.columns, b.panel);
      panel = b.panel;
      ahead[1] = j + width < block.columns ? ahead_of_panel(block, j + width, tiles)
                                           : ahead_of_panel(next, 0, tiles);
    }
    if constexpr (kWidens) {
      widen_panel(panel, steps, wide);
      product.b = wide;
      multiply_widened(product);
    } else {
      product.b = panel;
      multiply(product);
    }
  }
}

// The block that follows the one at term t: the next terms of the same columns, or the first terms
// of the columns after them. Without `more` columns after them that block is empty.
template <class T>
Part<T, float> block_after(Part<T, float> part, std::int64_t t, bool more) {
  const std::int64_t next = t + kBlockTerms;
  if (next < part.terms) {
    part.a.data += next * part.a.term;
    part.b.data += next * part.b.term;
    part.terms -= next;
  } else if (more) {
    part.b.data += part.columns * part.b.line;
  } else {
    part.rows = part.columns = part.terms = 0;
  }
  part.terms = clamp(part.terms, 0, kBlockTerms);
  return part;
}

// `more`: the columns after the part's are multiplied next, by the same rows.
template <class T>
void multiply_part(const Part<T, float>& part, bool more) {
  alignas(64) T panel[kBlockTerms * kPanel];
  const bool in_place = !part.packed && is_in_place(part);
  // A few rows take several panels at a time; many rows keep one panel in the L1 cache.
  const std::int64_t width = part.packed && part.rows <= kRowUnit ? part.columns : kPanel;
  for (std::int64_t t = 0; t < part.terms || t == 0; t += kBlockTerms) {
    Part<T, float> block = part;
    block.terms = clamp(part.terms - t, 0, kBlockTerms);
    block.a.data += t * part.a.term;
    if (t > 0 && part.sum == Sum::kWrite) block.sum = Sum::kAdd;
    PanelSource<T> source{.step = kPanel * kTerms<T>};
    if (part.packed) {
      source.group = filled<T>(part.terms) * kPanel;
      source.data = part.b.data + t * kPanel;
    } else if (in_place) {
      source = {.data = part.b.data + t * part.b.term, .step = part.b.term, .group = kPanel};
    } else {
      block.b.data += t * part.b.term;
      source.panel = panel;
    }
    const Part<T, float> next = block_after(part, t, more);
    if constexpr (kWidensPairs && kTerms<T> == 2) {
      if (part.rows >= kWidenRows) {
        multiply_block<float>(block, source, width, next);
        continue;
      }
    }
    multiply_block<T>(block, source, width, next);
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

// A part with outputs in bf16, of at most kSumsElements outputs.
template <class T>
void multiply_part(const Part<T, Bf16>& part, bool more) {
  alignas(64) float sums[kSumsElements];
  if (part.sum == Sum::kAdd)
    convert_rows(part.c, part.c_row, sums, part.columns, part.rows, part.columns);
  const Part<T, float> in_f32{.a = part.a,
                              .b = part.b,
                              .packed = part.packed,
                              .c = sums,
                              .c_row = part.columns,
                              .rows = part.rows,
                              .columns = part.columns,
                              .terms = part.terms,
                              .sum = part.sum};
  multiply_part(in_f32, more);
  convert_rows(sums, part.columns, part.c, part.c_row, part.rows, part.columns);
}

// How the outputs are cut into parts. With several threads there is one part for each, or about
// kPartsPerThread or kPartsOfGradient, of kWorkPerRange multiply-adds or more. The cut may depend
// on the number of threads: every output is computed whole within one part, so its bits do not
// depend on it (MM-1).
struct Cut {
  std::int64_t rows, columns;
};

template <class T, class Out>
Cut cut(const Part<T, Out>& product, std::int64_t threads) {
  const std::int64_t rows_of_work = product.rows < kReadingRows ? kReadingRows : product.rows;
  const std::int64_t work = rows_of_work * product.columns * product.terms;
  const std::int64_t several = product.a.term == 1 ? kPartsPerThread : kPartsOfGradient;
  const std::int64_t of_each = threads == 1 || product.rows <= kStreamRows ? 1 : several;
  const std::int64_t wanted = of_each * threads;
  const std::int64_t parts = clamp(work / kWorkPerRange, 1, wanted);
  const std::int64_t least = ceil_div(parts, ceil_div(product.columns, kPanel));
  const std::int64_t even = ceil_div(ceil_div(product.rows, least), kRowUnit) * kRowUnit;
  const std::int64_t rows = clamp(even, kRowUnit, kPartRows);
  const std::int64_t across = ceil_div(parts, ceil_div(product.rows, rows));
  const std::int64_t columns = ceil_div(ceil_div(product.columns, across), kPanel) * kPanel;
  return {.rows = rows, .columns = columns};
}

template <class T, class Out>
void multiply_matrix(const Stream& stream, const Part<T, Out>& product) {
  if (product.rows == 0 || product.columns == 0) return;
  const Cut size = cut(product, stream.pool ? stream.pool->threads() : 1);
  const std::int64_t across = ceil_div(product.columns, size.columns);
  const std::int64_t elements = sizeof(Out) < sizeof(float) ? kSumsElements : kPartElements;
  const std::int64_t most = clamp(elements / size.rows / kPanel * kPanel, kPanel, size.columns);
  const std::int64_t groups = ceil_div(size.columns, most);
  const std::int64_t group = ceil_div(ceil_div(size.columns, groups), kPanel) * kPanel;
  parallel_for(stream.pool, ceil_div(product.rows, size.rows) * across, 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t row = i / across * size.rows;
                   const Range rows{row, clamp(product.rows - row, 0, size.rows)};
                   const std::int64_t first = i % across * size.columns;
                   const std::int64_t last = clamp(first + size.columns, 0, product.columns);
                   for (std::int64_t j = first; j < last; j += group) {
                     const Range columns{j, clamp(last - j, 0, group)};
                     multiply_part(cut_out(product, rows, columns), j + group < last);
                   }
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

// c [rows, columns] = a [rows, terms] times the matrix that b(T{}) describes; c is of a's dtype or
// f32.
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
