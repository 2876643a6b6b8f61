// Pages of keys and values for paged attention: writing new tokens, copying pages.
//
// A pool is [pages, G, page positions, D], dense, aligned to 64 bytes; the page size is a multiple
// of 16 positions. All views of an operator share one dtype, f32 or bf16. Inside one (page, head)
// block:
//   v                   v[position][d]
//   k                   k[position / 16][d][position % 16], so that 16 scores are one vector
//   k in bf16 on a GPU  k[position][d], as tensor cores read it
// The slot of a token is page * page positions + position within the page. The caller has checked
// that slots are in the pool. Slots that were never written may hold anything, NaN included:
// nothing past a sequence's positions enters a result.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operand.h"
#include "kernels/ops/attention.h"

namespace tandem::kernels {

// Writes new tokens to their slots.
struct KvWrite {
  TensorView k;        // [T, G, D]
  TensorView v;        // [T, G, D]
  TensorView slots;    // [T] i32, distinct; or -1: a row of padding, which is written nowhere
  TensorView k_pages;  // [pages, G, page positions, D] the slots are written
  TensorView v_pages;  // [pages, G, page positions, D] the slots are written
};

struct PageCopy {  // indices of pages
  std::int32_t from = 0;
  std::int32_t to = 0;
};

// Copies whole pages, in the order of the list: a copy may read a page that an earlier one wrote.
struct KvCopy {
  std::span<const PageCopy> pages;  // in the device's memory
  TensorView k_pages;               // [pages, G, page positions, D]
  TensorView v_pages;               // [pages, G, page positions, D]
};

// Whether two views are the pools described above, of one shape.
bool are_page_pools(const TensorView& k_pages, const TensorView& v_pages);

void kv_write(const Stream& stream, const KvWrite& op);
void kv_copy(const Stream& stream, const KvCopy& op);

}  // namespace tandem::kernels
