// The tables of OpenRLHF's dialect, in the names of both generations: its flags, and its own values
// of those that are left out. What takes several flags is computed in openrlhf.cc.
#pragma once

#include <span>
#include <string_view>

#include "actors/translate/dialect.h"

namespace tandem::translate {

std::span<const Rule> openrlhf_rules();
std::span<const ForeignDefault> openrlhf_defaults();
std::span<const std::string_view> openrlhf_marks();
std::span<const std::string_view> openrlhf_programs();

}  // namespace tandem::translate
