#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "tests/bench/gemm_peer.h"

extern "C" void omp_set_num_threads(int threads);  // of libgomp

namespace tandem::bench {

const bool GemmPeer::kPresent = true;

struct GemmPeer::Plan {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

GemmPeer::GemmPeer(const Shape& s, const Operands& operands) : plan_(std::make_unique<Plan>()) {
  using dnnl::memory;
  omp_set_num_threads(1);
  using Tag = memory::format_tag;
  constexpr auto kType = memory::data_type::f32;
  const memory::desc a({s.rows, s.depth}, kType, s.a_transposed ? Tag::ba : Tag::ab);
  const memory::desc b({s.depth, s.columns}, kType, s.b_transposed ? Tag::ba : Tag::ab);
  const memory::desc any({s.depth, s.columns}, kType, Tag::any);
  const memory::desc c({s.rows, s.columns}, kType, Tag::ab);
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, any, c), plan_->engine);
  memory plain(b, plan_->engine, operands.b);
  memory reordered(description.weights_desc(), plan_->engine);
  dnnl::reorder(plain, reordered).execute(plan_->stream, plain, reordered);
  plan_->stream.wait();
  plan_->primitive = dnnl::matmul(description);
  plan_->arguments = {{DNNL_ARG_SRC, memory(a, plan_->engine, operands.a)},
                      {DNNL_ARG_WEIGHTS, reordered},
                      {DNNL_ARG_DST, memory(c, plan_->engine, operands.c)}};
}

GemmPeer::~GemmPeer() = default;
GemmPeer::GemmPeer(GemmPeer&&) noexcept = default;

void GemmPeer::multiply() {
  plan_->primitive.execute(plan_->stream, plan_->arguments);
  plan_->stream.wait();
}

}  // namespace tandem::bench
