// The forms are laid out once, in the constructor: packed operands on memory of their own, views of
// what is kept, and, in place, views that every install points at its arena (install_part).
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
  if (device == runtime::DeviceKind::kCuda || use == WeightsUse::kTraining) return all;
  if (use == WeightsUse::kTrainingInPlace) return config.dtype == runtime::DType::kF32 ? kept : all;
  for (const runtime::ParameterSpec& spec : all.parameters) {
    const bool is_head = spec.name == kEmbeddingName && config.tie_word_embeddings;
    if (!is_matrix(spec) && !is_head) kept.add(spec.name, spec.dtype, spec.shape);
  }
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
      forms_(std::make_unique<Forms>()) {
  for (const runtime::ParameterSpec& spec : kept_.manifest().parameters)
    copies_.push_back({manifest_.find(spec.name)->offset_bytes, spec.offset_bytes, spec.bytes});
  const std::int64_t V = config.vocab_size, H = config.hidden_size;
  forms_->layers.resize(static_cast<std::size_t>(config.layers));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) lay_out_layer(config, layer);
  place(kFinalNormName, runtime::tensor(nullptr, config.dtype, {H}), forms_->final_norm);
  operand(config.tie_word_embeddings ? kEmbeddingName : kHeadName, V, H, forms_->head);
  place(kEmbeddingName, runtime::tensor(nullptr, config.dtype, {V, H}), forms_->embedding.plain);
  if (config.tie_word_embeddings) forms_->embedding.packed = forms_->head.packed;
}

void Weights::lay_out_layer(const ModelConfig& config, std::int64_t index) {
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  const LayerNames names(index);
  LayerWeights& layer = forms_->layers[static_cast<std::size_t>(index)];
  const auto vector = [&](std::int64_t n) { return runtime::tensor(nullptr, config.dtype, {n}); };
  place(names.input_norm, vector(H), layer.input_norm);
  place(names.post_attention_norm, vector(H), layer.post_attention_norm);
  place(names.q_norm, vector(config.head_dim), layer.q_norm);
  place(names.k_norm, vector(config.head_dim), layer.k_norm);
  place(names.q_bias, runtime::tensor(nullptr, config.dtype, {config.qkv_width(), 1}),
        layer.qkv_bias);
  operand(names.q, config.qkv_width(), H, layer.qkv);
  operand(names.o, H, config.q_width(), layer.o);
  operand(names.gate, 2 * F, H, layer.gate_up);
  operand(names.down, H, F, layer.down);
}

// `view` becomes one of that shape, of the parameters from `first` on, which lie one after another
// (parameters.h); it stays empty where the family has no such parameter, or only a packed one.
void Weights::place(const std::string& first, const runtime::TensorView& shape,
                    runtime::TensorView& view) {
  const runtime::ParameterSpec* const from = manifest_.find(first);
  const runtime::ParameterSpec* const to = kept_.manifest().find(first);
  if (from == nullptr || (to == nullptr && !in_place())) return;
  view = shape;
  if (to != nullptr) {
    view.data = static_cast<std::byte*>(kept_.flat().data) + to->offset_bytes;
  } else {
    const auto elements = static_cast<std::size_t>(shape.elements());
    borrowed_.push_back({from->offset_bytes, elements * runtime::size_bytes(shape.dtype), &view});
  }
}

// The parameters from `first` on, which lie one after another, as one [n, k] matrix.
void Weights::operand(const std::string& first, std::int64_t n, std::int64_t k,
                      MatrixOperand& operand) {
  place(first, runtime::tensor(nullptr, manifest_.find(first)->dtype, {n, k}), operand.plain);
  if (packed_.size() == 0) {
    operand.packed = kernels::packed_weight(operand.plain.data, operand.plain.dtype, n, k);
    return;
  }
  operand.packed = kernels::packed_weight(packed_.as<float>().data() + packed_used_, n, k);
  packed_used_ += static_cast<std::size_t>(kernels::packed_elements(n, k));
  packings_.push_back({manifest_.find(first)->offset_bytes, operand.packed});
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
  for (const Copy& copy : copies_)
    if (in_part(copy.from, copy.bytes))
      runtime::copy(stream, static_cast<std::byte*>(kept_.flat().data) + copy.to, arena + copy.from,
                    copy.bytes);
  for (const Borrowed& part : borrowed_)
    if (in_part(part.from, part.bytes)) part.view->data = const_cast<std::byte*>(arena) + part.from;
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
