// The seam between operators and devices: one row per operator, one table per device.
//
// Callers use the functions of kernels/ops/<op>.h. kernels/ops/<op>.cc checks shapes, dtypes and
// aliasing once and calls through the table, so the sources in cpu/ and cuda/ hold arithmetic only.
// A wrong operand is a bug of the caller and aborts (CHECK); no operator returns an error. A new
// operator is one row of operator_list.h, one name in operators.cmake and one file in each folder.
//
// The GPU's table is in the CUDA module (runtime/device/cuda_module.h). The CPU has three tables,
// compiled from the same sources, one per instruction set. They give the same bits, so the choice
// among them is one of speed alone; a process takes the best one that its machine supports.
#pragma once

#include <cstdint>

#include "kernels/operator_list.h"
#include "runtime/base/result.h"
#include "runtime/device/stream.h"

namespace tandem::kernels {

using device::Stream;

#define TANDEM_ROW(function, Operands) struct Operands;
TANDEM_OPERATORS(TANDEM_ROW)
#undef TANDEM_ROW

// Operands borrow memory: on a CPU until the function returns, on a GPU until the stream's work is
// done. Several threads may call at the same time, each with a stream of its own.
struct Backend {
// NOLINTNEXTLINE(bugprone-macro-parentheses): Operands is a type
#define TANDEM_ROW(function, Operands) void (*function)(const Stream&, const Operands&);
  TANDEM_OPERATORS(TANDEM_ROW)
#undef TANDEM_ROW
};

// Instruction sets of CPUs. Each one includes all instructions of the ones before it.
enum class Isa : std::uint8_t { kAvx2, kAvx512, kAvx512Bf16 };

const char* name(Isa isa);  // "avx2", "avx512", "avx512bf16"

// The best instruction set that this machine has; an error where it lacks AVX2 or FMA.
Result<Isa> detect_isa();

// The instruction set to compute with: the one that the environment variable TANDEM_ISA names, to
// measure or to test a lesser one, else the best one. An error where the name is unknown or the
// machine lacks the instructions. Commands that compute, or start processes that do, call this
// first, and so end with a message instead of a signal.
Result<Isa> chosen_isa();

// The table for chosen_isa(), which must have succeeded.
const Backend& cpu_backend();
// The table for `isa`. Calling this where the CPU lacks `isa` is a bug: operators of the table
// would end the process with a signal.
const Backend& cpu_backend(Isa isa);

// The table of a device. For a GPU the CUDA module must have been found (device::cuda_module).
const Backend& backend(device::DeviceKind device);

}  // namespace tandem::kernels
