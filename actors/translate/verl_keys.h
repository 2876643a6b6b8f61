// The tables of verl's dialect: its keys, and its own values of those that are left out. What takes
// several keys is computed in verl.cc.
#pragma once

#include <span>
#include <string_view>

#include "actors/translate/dialect.h"

namespace tandem::translate {

std::span<const Rule> verl_rules();
std::span<const ForeignDefault> verl_defaults();
std::span<const std::string_view> verl_marks();
std::span<const std::string_view> verl_programs();

}  // namespace tandem::translate
