#include "actors/model/weights.h"

#include <cstring>

#include "actors/model/parameters.h"
#include "runtime/base/check.h"

namespace tandem::actors {
namespace {

bool is_matrix(const runtime::ParameterSpec& spec) {
  return spec.shape.size() == 2 && spec.name != kEmbeddingName;
}

runtime::Manifest kept_manifest(const ModelConfig& config, WeightsUse use) {
  runtime::Manifest kept;
  for (const runtime::ParameterSpec& spec : make_manifest(config).parameters)
    if (use == WeightsUse::kTraining || !is_matrix(spec))
      kept.add(spec.name, spec.dtype, spec.shape);
  return kept;
}

std::int64_t packed_floats(const ModelConfig& config) {
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  return config.layers * (kernels::packed_elements(config.qkv_width(), H) +
                          kernels::packed_elements(H, config.q_width()) +
                          kernels::packed_elements(2 * F, H) + kernels::packed_elements(H, F)) +
         kernels::packed_elements(config.vocab_size, H);
}

}  // namespace

std::size_t Weights::bytes(const ModelConfig& config, WeightsUse use) {
  return kept_manifest(config, use).bytes_total +
         static_cast<std::size_t>(packed_floats(config)) * sizeof(float);
}

Result<Weights> Weights::allocate(const ModelConfig& config, WeightsUse use) {
  Result<runtime::Arena> kept =
      runtime::Arena::allocate(kept_manifest(config, use), "a copy of the weights");
  if (!kept) return kept.error();
  Result<runtime::HostBuffer> packed = runtime::HostBuffer::allocate(
      static_cast<std::size_t>(packed_floats(config)) * sizeof(float), "the packed weights");
  if (!packed) return packed.error();
  return Weights(config, use, *std::move(kept), *std::move(packed));
}

Weights::Weights(const ModelConfig& config, WeightsUse use, runtime::Arena kept,
                 runtime::HostBuffer packed)
    : use_(use),
      manifest_(make_manifest(config)),
      kept_(std::move(kept)),
      packed_(std::move(packed)),
      embedding_(kept_.view(kEmbeddingName)),
      final_norm_(kept_.view(kFinalNormName)) {
  for (const runtime::ParameterSpec& spec : kept_.manifest().parameters)
    copies_.push_back({manifest_.find(spec.name)->offset_bytes, spec.offset_bytes, spec.bytes});
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  float* memory = packed_.as<float>().data();
  const auto matrix = [&](const std::string& first, const std::string& last, std::int64_t n,
                          std::int64_t k) {
    MatrixOperand operand{.packed = kernels::packed_weight(memory, n, k), .plain = {}};
    memory += kernels::packed_elements(n, k);
    if (use == WeightsUse::kTraining) operand.plain = kept_.fused(first, last);
    packings_.push_back({manifest_.find(first)->offset_bytes, operand.packed});
    return operand;
  };
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const LayerNames names(layer);
    layers_.push_back({.input_norm = kept_.view(names.input_norm),
                       .qkv = matrix(names.q, names.v, config.qkv_width(), H),
                       .q_norm = kept_.view(names.q_norm),
                       .k_norm = kept_.view(names.k_norm),
                       .o = matrix(names.o, names.o, H, config.q_width()),
                       .post_attention_norm = kept_.view(names.post_attention_norm),
                       .gate_up = matrix(names.gate, names.up, 2 * F, H),
                       .down = matrix(names.down, names.down, H, F)});
  }
  const char* head = config.tie_word_embeddings ? kEmbeddingName : kHeadName;
  head_ = matrix(head, head, config.vocab_size, H);
}

void Weights::install(const runtime::Stream& stream, std::span<const std::byte> arena) {
  CHECK(arena.size() == manifest_.bytes_total);
  for (const Copy& copy : copies_)
    std::memcpy(kept_.bytes().data() + copy.to, arena.data() + copy.from, copy.bytes);
  for (const Packing& packing : packings_) {
    const auto* from = reinterpret_cast<const float*>(arena.data() + packing.from);
    kernels::pack_weight(stream,
                         {.weight = runtime::tensor(from, {packing.packed.n, packing.packed.k}),
                          .packed = packing.packed});
  }
}

}  // namespace tandem::actors
