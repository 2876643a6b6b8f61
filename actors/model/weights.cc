// The forms of all parameters are laid out once, in the constructor: packed operands in memory of
// their own (packings_), views of kept copies (copies_), and, in place, views that every install
// points at its arena (borrowed_). An install then only goes through these three lists, so
// addresses never change from version to version except where the arena itself is read.
#include "actors/model/weights.h"

#include <algorithm>

#include "actors/model/parameters.h"
#include "kernels/ops/elementwise.h"
#include "runtime/base/check.h"
#include "runtime/device/queue.h"

namespace tandem::model {
namespace {

// A matrix that is only multiplied. The embedding is also looked up by rows, which needs it plain.
bool is_matrix(const device::ParameterSpec& spec) {
  return spec.shape.size() == 2 && spec.name != kEmbeddingName;
}

// The parameters that are kept unpacked: all of them for a GPU and for training, since backward
// reads plain matrices; in place on a CPU in f32 none; else those that are never packed.
device::Manifest kept_manifest(const ModelConfig& config, WeightsUse use,
                               device::DeviceKind device) {
  device::Manifest all = published_manifest(config), kept;
  if (device == device::DeviceKind::kCuda || use == WeightsUse::kTraining) return all;
  if (use == WeightsUse::kTrainingInPlace) return config.dtype == device::DType::kF32 ? kept : all;
  for (const device::ParameterSpec& spec : all.parameters) {
    const bool is_head = spec.name == kEmbeddingName && config.tie_word_embeddings;
    if (!is_matrix(spec) && !is_head) kept.add(spec.name, spec.dtype, spec.shape);
  }
  return kept;
}

// A GPU multiplies plain matrices. Fused operands are packed as one: q|k|v and gate|up.
std::size_t packed_bytes(const ModelConfig& config, device::DeviceKind device) {
  if (device == device::DeviceKind::kCuda) return 0;
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  const auto elements = [&](std::int64_t n, std::int64_t k) {
    return kernels::packed_elements(config.dtype, n, k);
  };
  const std::int64_t layer = elements(config.qkv_width(), H) + elements(H, config.q_width()) +
                             elements(2 * F, H) + elements(H, F);
  return static_cast<std::size_t>(config.layers * layer + elements(config.vocab_size, H)) *
         device::size_bytes(config.dtype);
}

void round_parameter(const device::Stream& stream, const device::Arena& from,
                     const device::Arena& to, const std::string& name) {
  const device::TensorView x = from.view(name), y = to.view(name);
  kernels::convert(
      stream, {.x = device::reshape(x, {x.elements()}), .y = device::reshape(y, {y.elements()})});
}

}  // namespace

Result<device::Arena> as_published(const ModelConfig& config, device::Arena master) {
  const device::Manifest manifest = published_manifest(config);
  if (master.manifest() == manifest) return master;
  Result<device::Arena> published = device::Arena::allocate(manifest, "the rounded weights");
  if (!published) return published.error();
  for (const device::ParameterSpec& spec : manifest.parameters)
    round_parameter(device::Stream{}, master, *published, spec.name);
  return published;
}

std::size_t Weights::bytes(const ModelConfig& config, WeightsUse use, device::DeviceKind device) {
  return kept_manifest(config, use, device).bytes_total + packed_bytes(config, device);
}

Result<Weights> Weights::allocate(const ModelConfig& config, WeightsUse use,
                                  device::DeviceKind device) {
  Result<device::Arena> kept = device::Arena::allocate(
      kept_manifest(config, use, device), "a copy of the weights", device::operand_memory(device));
  if (!kept) return kept.error();
  Result<device::Buffer> packed =
      device::Buffer::allocate(packed_bytes(config, device), "the packed weights");
  if (!packed) return packed.error();
  return Weights(config, use, *std::move(kept), *std::move(packed));
}

Weights::Weights(const ModelConfig& config, WeightsUse use, device::Arena kept,
                 device::Buffer packed)
    : use_(use),
      manifest_(published_manifest(config)),
      kept_(std::move(kept)),
      packed_(std::move(packed)),
      forms_(std::make_unique<Forms>()) {
  for (const device::ParameterSpec& spec : kept_.manifest().parameters)
    copies_.push_back({manifest_.find(spec.name)->offset_bytes, spec.offset_bytes, spec.bytes});
  const std::int64_t V = config.vocab_size, H = config.hidden_size;
  forms_->layers.resize(static_cast<std::size_t>(config.layers));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) lay_out_layer(config, layer);
  place(kFinalNormName, device::tensor(nullptr, config.dtype, {H}), forms_->final_norm);
  operand(config.tie_word_embeddings ? kEmbeddingName : kHeadName, V, H, forms_->head);
  place(kEmbeddingName, device::tensor(nullptr, config.dtype, {V, H}), forms_->embedding.plain);
  if (config.tie_word_embeddings) forms_->embedding.packed = forms_->head.packed;
}

void Weights::lay_out_layer(const ModelConfig& config, std::int64_t index) {
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  const LayerNames names(index);
  LayerWeights& layer = forms_->layers[static_cast<std::size_t>(index)];
  const auto vector = [&](std::int64_t n) { return device::tensor(nullptr, config.dtype, {n}); };
  place(names.input_norm, vector(H), layer.input_norm);
  place(names.post_attention_norm, vector(H), layer.post_attention_norm);
  place(names.q_norm, vector(config.head_dim), layer.q_norm);
  place(names.k_norm, vector(config.head_dim), layer.k_norm);
  place(names.q_bias, device::tensor(nullptr, config.dtype, {config.qkv_width(), 1}),
        layer.qkv_bias);
  operand(names.q, config.qkv_width(), H, layer.qkv);
  operand(names.o, H, config.q_width(), layer.o);
  operand(names.gate, 2 * F, H, layer.gate_up);
  operand(names.down, H, F, layer.down);
}

// Makes `view` a view with that shape of the parameters from `first` on, which lie one after
// another (parameters.h). The view stays empty where the family has no such parameter, or only a
// packed one.
void Weights::place(const std::string& first, const device::TensorView& shape,
                    device::TensorView& view) {
  const device::ParameterSpec* const from = manifest_.find(first);
  const device::ParameterSpec* const to = kept_.manifest().find(first);
  if (from == nullptr || (to == nullptr && !in_place())) return;
  view = shape;
  if (to != nullptr) {
    view.data = static_cast<std::byte*>(kept_.flat().data) + to->offset_bytes;
  } else {
    borrowed_.push_back({from->offset_bytes, device::size_bytes(shape), &view});
  }
}

// Makes `operand` one [n, k] matrix of the parameters from `first` on, which lie one after another.
void Weights::operand(const std::string& first, std::int64_t n, std::int64_t k,
                      MatrixOperand& operand) {
  const device::DType dtype = manifest_.find(first)->dtype;
  place(first, device::tensor(nullptr, dtype, {n, k}), operand.plain);
  if (packed_.size() == 0) {
    operand.packed = kernels::packed_weight(operand.plain.data, dtype, n, k);
    return;
  }
  operand.packed = kernels::packed_weight(packed_.data() + packed_used_, dtype, n, k);
  packed_used_ += device::size_bytes(operand.packed.panels);
  packings_.push_back({manifest_.find(first)->offset_bytes, operand.packed});
}

void Weights::install(const device::Stream& stream, std::span<const std::byte> arena) {
  CHECK(arena.size() == manifest_.bytes_total);
  install_part(stream, arena.data(), {.begin = 0, .end = arena.size()});
}

// Copies, borrows and packs every parameter that lies in `part`. A parameter that lies only partly
// in it is a bug of the caller (ByteRange::holds CHECKs it).
void Weights::install_part(const device::Stream& stream, const std::byte* arena,
                           const ByteRange& part) {
  for (const Copy& copy : copies_)
    if (part.holds(copy.from, copy.bytes))
      device::copy(stream, static_cast<std::byte*>(kept_.flat().data) + copy.to, arena + copy.from,
                   copy.bytes);
  for (const Borrowed& view : borrowed_)
    if (part.holds(view.from, view.bytes))
      view.view->data = const_cast<std::byte*>(arena) + view.from;
  pack_part(stream, arena, part);
}

void Weights::pack_part(const device::Stream& stream, const std::byte* arena,
                        const ByteRange& part) {
  for (const auto& [from, packed] : packings_) {
    const device::TensorView weight = device::tensor(const_cast<std::byte*>(arena) + from,
                                                     packed.panels.dtype, {packed.n, packed.k});
    if (part.holds(from, device::size_bytes(weight)))
      kernels::pack_weight(stream, {.weight = weight, .packed = packed});
  }
}

bool Weights::ByteRange::holds(std::size_t from, std::size_t bytes) const {
  const bool inside = from >= begin && from < end;
  CHECK(inside ? from + bytes <= end : from + bytes <= begin || from >= end);
  return inside;
}

void Weights::install_master(const device::Stream& stream, const device::Arena& master,
                             const FloatRange& range) {
  const auto bytes_to = [](std::int64_t floats) {
    return static_cast<std::size_t>(floats) * sizeof(float);
  };
  const ByteRange part{.begin = bytes_to(range.begin), .end = bytes_to(range.end)};
  CHECK(part.begin <= part.end && part.end <= master.manifest().bytes_total);
  if (master.manifest() == manifest_)
    return install_part(stream, static_cast<const std::byte*>(master.flat().data), part);
  install_rounded(stream, master, part);
}

// Rounds the parameters of `part` into the kept copies and packs them from there. Requires that all
// parameters are kept. Offsets differ between the two arenas, so the range is translated.
void Weights::install_rounded(const device::Stream& stream, const device::Arena& master,
                              const ByteRange& part) {
  const auto& from = master.manifest().parameters;
  const auto& to = manifest_.parameters;
  CHECK(kept_.manifest() == manifest_ && from.size() == to.size());
  ByteRange rounded{.begin = manifest_.bytes_total, .end = 0};
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!part.holds(from[i].offset_bytes, from[i].bytes)) continue;
    round_parameter(stream, master, kept_, to[i].name);
    rounded.begin = std::min(rounded.begin, to[i].offset_bytes);
    rounded.end = to[i].offset_bytes + to[i].bytes;
  }
  pack_part(stream, static_cast<const std::byte*>(kept_.flat().data), rounded);
}

void Weights::fetch(const device::Stream& stream, std::span<std::byte> arena) const {
  CHECK(kept_.manifest() == manifest_ && arena.size() == manifest_.bytes_total);
  device::copy(stream, arena.data(), kept_.flat().data, arena.size());
}

}  // namespace tandem::model
