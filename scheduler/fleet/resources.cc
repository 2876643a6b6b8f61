#include "scheduler/fleet/resources.h"

#include <cmath>
#include <cstdio>

namespace tandem::scheduler {
namespace {

constexpr double kMilli = 1000.0;
constexpr std::int64_t kMebibyte = 1 << 20;

// One decimal where it is exact, else three.
std::string thousandths(std::int64_t milli, const char* unit) {
  char buffer[64];
  const bool tenths = milli % 100 == 0;
  std::snprintf(buffer, sizeof buffer, tenths ? "%.1f %s" : "%.3f %s",
                static_cast<double>(milli) / kMilli, unit);
  return buffer;
}

std::int64_t milli_of(double amount) {
  return static_cast<std::int64_t>(
      std::ceil(amount * kMilli - 1e-6));  // so that 0.1 CPUs are 100 thousandths, not 101
}

}  // namespace

Resources resources(const Amounts& amounts) {
  return {milli_of(amounts.cpus), milli_of(amounts.gpus), amounts.memory_bytes};
}

Resources operator+(const Resources& a, const Resources& b) {
  return {a.cpu_milli + b.cpu_milli, a.gpu_milli + b.gpu_milli, a.memory_bytes + b.memory_bytes};
}

Resources operator-(const Resources& a, const Resources& b) { return a + b * -1; }

Resources operator*(const Resources& a, std::int64_t n) {
  return {a.cpu_milli * n, a.gpu_milli * n, a.memory_bytes * n};
}

bool fits(const Resources& need, const Resources& have) {
  return need.cpu_milli <= have.cpu_milli && need.gpu_milli <= have.gpu_milli &&
         need.memory_bytes <= have.memory_bytes;
}

std::string text(const Resources& amount) {
  std::string out = thousandths(amount.cpu_milli, "CPUs");
  if (amount.gpu_milli != 0) out += ", " + thousandths(amount.gpu_milli, "GPUs");
  if (amount.memory_bytes != 0)
    out += ", " + std::to_string((amount.memory_bytes + kMebibyte - 1) / kMebibyte) + " MiB";
  return out;
}

std::string text_of_lacking(const Resources& need, const Resources& have) {
  std::string out;
  const auto append = [&out](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (need.cpu_milli > have.cpu_milli) append(thousandths(need.cpu_milli, "CPUs"));
  if (need.gpu_milli > have.gpu_milli) append(thousandths(need.gpu_milli, "GPUs"));
  if (need.memory_bytes > have.memory_bytes)
    append(std::to_string((need.memory_bytes + kMebibyte - 1) / kMebibyte) + " MiB");
  return out.empty() ? text(need) : out;
}

}  // namespace tandem::scheduler
