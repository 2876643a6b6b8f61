#include "kernels/cpu/operators.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

const Backend& table() {
  static constexpr Backend kTable{
#define TANDEM_ROW(function, Operands) .function = function,
      TANDEM_OPERATORS(TANDEM_ROW)
#undef TANDEM_ROW
  };
  return kTable;
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
