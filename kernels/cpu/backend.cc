// The choice of the CPU's table. Compiled once and without instruction-set flags, because this code
// runs before it is known which instructions the machine has.
#include "kernels/backend.h"

#include <cstdlib>
#include <string>

namespace tandem::kernels {

namespace cpu_avx2 {
const Backend& table();
}
namespace cpu_avx512 {
const Backend& table();
}
namespace cpu_avx512bf16 {
const Backend& table();
}

const char* name(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512bf16";
  }
  CHECK(false);
}

Result<Isa> detect_isa() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return Error{.code = ErrorCode::kFailed,
                 .message = "this CPU has no AVX2 and FMA, which every kernel needs",
                 .help =
                     "use an x86-64-v3 machine (Intel Haswell, AMD Zen or newer); in a virtual "
                     "machine pass the host's CPU model through"};
  }
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!wide) return Isa::kAvx2;
  return __builtin_cpu_supports("avx512bf16") ? Isa::kAvx512Bf16 : Isa::kAvx512;
}

Result<Isa> chosen_isa() {
  const Result<Isa> best = detect_isa();
  const char* const variable = std::getenv("TANDEM_ISA");
  if (!best || variable == nullptr || *variable == '\0') return best;
  const std::string wanted = variable;
  std::string known;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (isa > *best) break;
    if (wanted == name(isa)) return isa;
    known += (known.empty() ? "" : ", ") + std::string(name(isa));
  }
  return Error{.code = ErrorCode::kInvalid,
               .message = "TANDEM_ISA names no instruction set of this CPU: " + wanted,
               .help = "leave it unset for the best one, or choose among: " + known};
}

const Backend& cpu_backend(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return cpu_avx2::table();
    case Isa::kAvx512:
      return cpu_avx512::table();
    case Isa::kAvx512Bf16:
      return cpu_avx512bf16::table();
  }
  CHECK(false);
}

// The machine is asked once: every operator comes by here.
const Backend& cpu_backend() {
  static const Backend& best = cpu_backend(chosen_isa().value());
  return best;
}

}  // namespace tandem::kernels
