// Amounts of CPUs, GPUs and memory, of a node or for a rank. CPUs and GPUs are counted in
// thousandths, so that fractions add up exactly however often they are taken and given back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace tandem::scheduler {

// One GPU in thousandths.
inline constexpr std::int64_t kWholeGpu = 1000;

// Differences may be negative; fits() then says no.
struct Resources {
  std::int64_t cpu_milli = 0;
  std::int64_t gpu_milli = 0;  // for a rank: a share of one GPU (below kWholeGpu), or whole GPUs
  std::int64_t memory_bytes = 0;
  bool operator==(const Resources&) const = default;
};

// How many GPUs a node with these resources has.
inline std::size_t whole_gpus(const Resources& node) {
  return static_cast<std::size_t>(node.gpu_milli / kWholeGpu);
}

// The share of each GPU that a rank holds. One with several GPUs holds each of them whole.
inline std::int64_t gpu_share(const Resources& rank) { return std::min(rank.gpu_milli, kWholeGpu); }

// A job file's numbers; resources() rounds them up to thousandths.
struct Amounts {
  double cpus = 0;
  double gpus = 0;
  std::int64_t memory_bytes = 0;
};
Resources resources(const Amounts& amounts);

Resources operator+(const Resources& a, const Resources& b);
Resources operator-(const Resources& a, const Resources& b);
Resources operator*(const Resources& a, std::int64_t n);
bool fits(const Resources& need, const Resources& have);  // in every component

// The amounts for messages: "3.0 CPUs, 1.0 GPUs, 512 MiB"; leaves out GPUs and memory that are 0.
std::string text(const Resources& amount);
// The components of which `need` has more than `have`, with the amounts of `need`: "3.0 CPUs". All
// of `need` where no component is short.
std::string text_of_lacking(const Resources& need, const Resources& have);

}  // namespace tandem::scheduler
