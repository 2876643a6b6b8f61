#include "actors/model/weights.h"

#include "actors/model/parameters.h"
#include "kernels/ops/elementwise.h"
#include "runtime/base/check.h"
#include "runtime/device/queue.h"

namespace tandem::actors {
namespace {

bool is_matrix(const runtime::ParameterSpec& spec) {
  return spec.shape.size() == 2 && spec.name != kEmbeddingName;
}

runtime::Manifest kept_manifest(const ModelConfig& config, WeightsUse use,
                                runtime::DeviceKind device) {
  runtime::Manifest all = published_manifest(config), kept;
  if (use == WeightsUse::kTraining || device == runtime::DeviceKind::kCuda) return all;
  for (const runtime::ParameterSpec& spec : all.parameters)
    if (!is_matrix(spec)) kept.add(spec.name, spec.dtype, spec.shape);
  return kept;
}

std::int64_t packed_floats(const ModelConfig& config, runtime::DeviceKind device) {
  if (device == runtime::DeviceKind::kCuda) return 0;
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  return config.layers * (kernels::packed_elements(config.qkv_width(), H) +
                          kernels::packed_elements(H, config.q_width()) +
                          kernels::packed_elements(2 * F, H) + kernels::packed_elements(H, F)) +
         kernels::packed_elements(config.vocab_size, H);
}

}  // namespace

std::size_t Weights::bytes(const ModelConfig& config, WeightsUse use, runtime::DeviceKind device) {
  return kept_manifest(config, use, device).bytes_total +
         static_cast<std::size_t>(packed_floats(config, device)) * sizeof(float);
}

Result<Weights> Weights::allocate(const ModelConfig& config, WeightsUse use,
                                  runtime::DeviceKind device) {
  Result<runtime::Arena> kept = runtime::Arena::allocate(
      kept_manifest(config, use, device), "a copy of the weights", runtime::operand_place(device));
  if (!kept) return kept.error();
  Result<runtime::Buffer> packed = runtime::Buffer::allocate(
      static_cast<std::size_t>(packed_floats(config, device)) * sizeof(float),
      "the packed weights");
  if (!packed) return packed.error();
  return Weights(config, use, *std::move(kept), *std::move(packed));
}

Weights::Weights(const ModelConfig& config, WeightsUse use, runtime::Arena kept,
                 runtime::Buffer packed)
    : use_(use),
      manifest_(published_manifest(config)),
      kept_(std::move(kept)),
      packed_(std::move(packed)),
      embedding_(kept_.view(kEmbeddingName)),
      final_norm_(kept_.view(kFinalNormName)) {
  for (const runtime::ParameterSpec& spec : kept_.manifest().parameters)
    copies_.push_back({manifest_.find(spec.name)->offset_bytes, spec.offset_bytes, spec.bytes});
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const LayerNames names(layer);
    const OptionalVectors vectors = optional_vectors(kept_, names);
    layers_.push_back({.input_norm = kept_.view(names.input_norm),
                       .qkv = operand(names.q, names.v, config.qkv_width(), H),
                       .qkv_bias = vectors.qkv_bias,
                       .q_norm = vectors.q_norm,
                       .k_norm = vectors.k_norm,
                       .o = operand(names.o, names.o, H, config.q_width()),
                       .post_attention_norm = kept_.view(names.post_attention_norm),
                       .gate_up = operand(names.gate, names.up, 2 * F, H),
                       .down = operand(names.down, names.down, H, F)});
  }
  const char* head = config.tie_word_embeddings ? kEmbeddingName : kHeadName;
  head_ = operand(head, head, config.vocab_size, H);
}

// The parameters `first` … `last`, which lie one after another, as one [n, k] matrix.
MatrixOperand Weights::operand(const std::string& first, const std::string& last, std::int64_t n,
                               std::int64_t k) {
  MatrixOperand operand;
  if (kept_.manifest() == manifest_) operand.plain = kept_.fused(first, last);
  if (packed_.size() == 0) {
    operand.packed = kernels::packed_weight(operand.plain.data, operand.plain.dtype, n, k);
    return operand;
  }
  operand.packed = kernels::packed_weight(packed_.as<float>().data() + packed_used_, n, k);
  packed_used_ += static_cast<std::size_t>(kernels::packed_elements(n, k));
  packings_.push_back({manifest_.find(first)->offset_bytes, operand.packed});
  return operand;
}

void Weights::install(const runtime::Stream& stream, std::span<const std::byte> arena) {
  CHECK(arena.size() == manifest_.bytes_total);
  install_part(stream, arena.data(), 0, arena.size());
}

// What is read of bytes [begin, end), to which every piece belongs whole or not at all.
void Weights::install_part(const runtime::Stream& stream, const std::byte* arena, std::size_t begin,
                           std::size_t end) {
  const auto in_part = [&](std::size_t from, std::size_t bytes) {
    const bool inside = from >= begin && from < end;
    CHECK(inside ? from + bytes <= end : from + bytes <= begin || from >= end);
    return inside;
  };
  auto* const kept = static_cast<std::byte*>(kept_.flat().data);
  for (const Copy& copy : copies_)
    if (in_part(copy.from, copy.bytes))
      runtime::copy(stream, kept + copy.to, arena + copy.from, copy.bytes);
  for (const Packing& packing : packings_) {
    const std::int64_t n = packing.packed.n, k = packing.packed.k;
    if (!in_part(packing.from, static_cast<std::size_t>(n * k) * sizeof(float))) continue;
    const auto* from = reinterpret_cast<const float*>(arena + packing.from);
    kernels::pack_weight(stream,
                         {.weight = runtime::tensor(from, {n, k}), .packed = packing.packed});
  }
}

void Weights::install_master(const runtime::Stream& stream, const runtime::Arena& master,
                             const FloatRange& range) {
  const auto bytes_to = [](std::int64_t floats) {
    return static_cast<std::size_t>(floats) * sizeof(float);
  };
  const std::size_t begin = bytes_to(range.begin), end = bytes_to(range.end);
  CHECK(begin <= end && end <= master.manifest().bytes_total);
  if (master.manifest() == manifest_)
    return install_part(stream, static_cast<const std::byte*>(master.flat().data), begin, end);
  CHECK(stream.device == runtime::DeviceKind::kCuda &&
        master.manifest().parameters.size() == manifest_.parameters.size());
  for (const runtime::ParameterSpec& spec : master.manifest().parameters) {
    if (spec.offset_bytes < begin || spec.offset_bytes >= end) continue;
    const runtime::TensorView from = master.view(spec.name), to = kept_.view(spec.name);
    CHECK(spec.offset_bytes + spec.bytes <= end && from.elements() == to.elements());
    kernels::convert(stream, {.x = runtime::reshape(from, {from.elements()}),
                              .y = runtime::reshape(to, {to.elements()})});
  }
}

void Weights::fetch(const runtime::Stream& stream, std::span<std::byte> arena) const {
  CHECK(kept_.manifest() == manifest_ && arena.size() == manifest_.bytes_total);
  runtime::copy(stream, arena.data(), kept_.flat().data, arena.size());
}

}  // namespace tandem::actors
