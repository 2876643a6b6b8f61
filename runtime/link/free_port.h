// A port for a program that has to be told where to listen.
#pragma once

#include <cstdint>

#include "runtime/base/result.h"

namespace tandem::link {

// A TCP port of the loopback address at which nothing listens. Another program may take it before
// the one that it is for. Errors: kUnreachable.
Result<std::uint16_t> free_port();

}  // namespace tandem::link
