// What a node has and a rank needs. Thousandths, so that fractions add up exactly however often
// they are taken and given back.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::scheduler {

inline constexpr std::int64_t kWholeGpu = 1000;

struct Resources {
  std::int64_t cpu_milli = 0;
  std::int64_t gpu_milli = 0;  // of a rank: a share of one GPU (below kWholeGpu), or whole GPUs
  std::int64_t memory_bytes = 0;
  bool operator==(const Resources&) const = default;
};

// From a job file's numbers, rounded up to a thousandth.
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

// "3.0 CPUs, 1.0 GPUs, 512 MiB"; leaves out GPUs and memory that are 0.
std::string text(const Resources& amount);
// The part of `need` that `have` lacks, in the form of text(): "3.0 CPUs".
std::string text_of_lacking(const Resources& need, const Resources& have);

}  // namespace tandem::scheduler
