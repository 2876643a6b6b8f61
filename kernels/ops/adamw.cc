#include "kernels/ops/adamw.h"

#include <limits>

#include "kernels/backend.h"

namespace tandem::kernels {

namespace {

// Whether all operands of the list of changes are there. Indices are i32, which bounds n.
bool lists_changes(const AdamW& op) {
  const std::int64_t elements = op.parameters.dim(0);
  return elements <= std::numeric_limits<std::int32_t>::max() &&
         is(device::DType::kBF16, op.rounded, {elements}) && is_i32(op.changed, {elements}) &&
         is_i32(op.changed_count, {1}) && is_i32(op.workspace, {adamw_workspace(elements)});
}

std::int64_t ceiling(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

}  // namespace

// The workspace has first the flags, then the blocks' counts.
std::int64_t adamw_workspace(std::int64_t elements) {
  return ceiling(elements, kChangesPerWord) + ceiling(elements, kChangesPerBlock);
}

void adamw(const Stream& stream, const AdamW& op) {
  const std::int64_t elements = op.parameters.dim(0);
  CHECK(is_f32(op.parameters, {elements}) && is_f32(op.gradients, {elements}));
  CHECK(is_f32(op.m, {elements}) && is_f32(op.v, {elements}));
  CHECK(op.rounded.empty() || is(device::DType::kBF16, op.rounded, {elements}));
  CHECK(op.changed_count.empty() ? op.changed.empty() && op.workspace.empty() : lists_changes(op));
  // Step 0 would divide by 1 - beta^0 = 0.
  CHECK(op.step >= 1);
  CHECK(op.beta1 >= 0 && op.beta1 < 1 && op.beta2 >= 0 && op.beta2 < 1);
  CHECK(op.eps > 0);
  backend(stream.device).adamw(stream, op);
}

}  // namespace tandem::kernels
