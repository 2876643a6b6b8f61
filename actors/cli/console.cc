#include "actors/cli/console.h"

#include <ostream>

#include "actors/cli/table.h"

namespace tandem::cli {

int Console::columns() const { return terminal ? width() : kUnlimitedWidth; }

int Console::complain(const Error& error) const {
  if (!error.message.empty()) err << render(error) << "\n";  // else a note has said it
  return exit_code(error.code);
}

}  // namespace tandem::cli
