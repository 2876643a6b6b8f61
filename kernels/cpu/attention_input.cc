// A CPU calls the three operators one after another, so AI-1 holds by construction. In a decode
// step the heads of the few new tokens stay in the cache between the calls.
#include "kernels/ops/attention_input.h"

#include "kernels/cpu/operators.h"
#include "kernels/ops/kv_cache.h"
#include "kernels/ops/rms_norm.h"
#include "kernels/ops/rope.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

void normalise_and_turn(const Stream& stream, const AttentionInput& op, const TensorView& x,
                        const TensorView& weight) {
  rms_norm(stream, {.x = x, .weight = weight, .y = x, .inv_rms = {}, .eps = op.eps, .add = {}});
  rope(stream, {.x = x, .positions = op.positions, .cos = op.cos, .sin = op.sin});
}

}  // namespace

void attention_input(const Stream& stream, const AttentionInput& op) {
  normalise_and_turn(stream, op, op.q, op.q_norm);
  normalise_and_turn(stream, op, op.k, op.k_norm);
  kv_write(stream,
           {.k = op.k, .v = op.v, .slots = op.slots, .k_pages = op.k_pages, .v_pages = op.v_pages});
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
