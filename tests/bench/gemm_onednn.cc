#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <unordered_map>

#include "tests/bench/gemm_peer.h"

extern "C" void omp_set_num_threads(int threads);  // from libgomp

namespace tandem::bench {

namespace {

// Version 3 has no separate descriptor of the operation. A template, so that only the form that the
// installed version has is compiled.
template <class Matmul>
typename Matmul::primitive_desc describe(const dnnl::engine& engine, const dnnl::memory::desc& a,
                                         const dnnl::memory::desc& b, const dnnl::memory::desc& c,
                                         const dnnl::primitive_attr& attributes) {
  if constexpr (requires { typename Matmul::desc; }) {
    return {typename Matmul::desc(a, b, c), attributes, engine};
  } else {
    return {engine, a, b, c, attributes};
  }
}

dnnl::memory::data_type type(bool bf16) {
  return bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace

bool GemmPeer::computes(bool bf16) {
  const dnnl::memory::desc square({16, 16}, type(bf16), dnnl::memory::format_tag::ab);
  const dnnl::memory::desc sums({16, 16}, type(false), dnnl::memory::format_tag::ab);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  try {
    for (const dnnl::memory::desc& c : {square, sums})
      describe<dnnl::matmul>(engine, square, square, c, {});
  } catch (const dnnl::error&) {
    return false;
  }
  return true;
}

bool GemmPeer::uses_the_callers_thread() {
  const unsigned runtime = dnnl::version()->cpu_runtime;
  return runtime == DNNL_RUNTIME_SEQ || runtime == DNNL_RUNTIME_OMP;
}

struct GemmPeer::Plan {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::optional<dnnl::reorder> reorder;  // once more in each call
  dnnl::memory plain, reordered;
  dnnl::matmul primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

GemmPeer::GemmPeer(const Shape& s, const Operands& operands, Layout layout)
    : plan_(std::make_unique<Plan>()) {
  using dnnl::memory;
  omp_set_num_threads(s.threads);
  using Tag = memory::format_tag;
  const auto in = type(s.bf16);
  const memory::desc a({s.rows, s.depth}, in, s.a_transposed ? Tag::ba : Tag::ab);
  const memory::desc b({s.depth, s.columns}, in, s.b_transposed ? Tag::ba : Tag::ab);
  const memory::desc any({s.depth, s.columns}, in, Tag::any);
  const memory::desc c({s.rows, s.columns}, type(s.bf16_out), Tag::ab);
  const memory::desc& read = layout == Layout::kPlain ? b : any;
  dnnl::primitive_attr attributes;
  if (s.adds) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  const auto description = describe<dnnl::matmul>(plan_->engine, a, read, c, attributes);
  plan_->plain = memory(b, plan_->engine, operands.b);
  plan_->reordered = plan_->plain;
  if (layout != Layout::kPlain) {
    plan_->reordered = memory(description.weights_desc(), plan_->engine);
    plan_->reorder.emplace(plan_->plain, plan_->reordered);
    plan_->reorder->execute(plan_->stream, plan_->plain, plan_->reordered);
    plan_->stream.wait();
    if (layout == Layout::kReordered) plan_->reorder.reset();
  }
  plan_->primitive = dnnl::matmul(description);
  plan_->arguments = {{DNNL_ARG_SRC, memory(a, plan_->engine, operands.a)},
                      {DNNL_ARG_WEIGHTS, plan_->reordered},
                      {DNNL_ARG_DST, memory(c, plan_->engine, operands.c)}};
}

GemmPeer::~GemmPeer() = default;
GemmPeer::GemmPeer(GemmPeer&&) noexcept = default;

void GemmPeer::multiply() {
  if (plan_->reorder) plan_->reorder->execute(plan_->stream, plan_->plain, plan_->reordered);
  plan_->primitive.execute(plan_->stream, plan_->arguments);
  plan_->stream.wait();
}

}  // namespace tandem::bench
