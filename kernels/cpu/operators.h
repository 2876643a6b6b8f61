// The CPU's arithmetic, one function per row of Backend, in the namespace of the instruction set
// that the including source is compiled for. kernels/ops/<op>.h has the contract of each function,
// and kernels/ops/<op>.cc has checked the operands before it calls.
//
// The work is done when a function returns. Functions share their work among the threads of the
// stream's pool, cut by data and not by the number of threads (PA-1), so that results repeat; only
// products choose their cut by the number of threads, which does not change their bits (MM-1).
#pragma once

#include "kernels/backend.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

#define TANDEM_ROW(function, Operands) void function(const Stream& stream, const Operands& op);
TANDEM_OPERATORS(TANDEM_ROW)
#undef TANDEM_ROW

// The functions above as a table, which backend.cc hands out.
const Backend& table();

}  // namespace tandem::kernels::TANDEM_CPU_ISA
