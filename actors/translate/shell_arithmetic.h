// Bash's arithmetic, `$(( … ))`, over integers: + - * / % ** and parentheses. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::translate {

// The value of a name within an expression; nullopt: it is not known.
using ArithmeticNames = std::function<std::optional<std::int64_t>(const std::string& name)>;

// nullopt for anything else than the operators above, for a name that is not known, a division by
// zero, and a result that 64 bits do not hold.
std::optional<std::int64_t> arithmetic(std::string_view text, const ArithmeticNames& names);

}  // namespace tandem::translate
