// Whether an answer is as right as a reference, both as texts.
//
//   values      are equal by algebra or evaluation (same_expression.h); percent.h says what 50% is
//   x = 5       is 5 too, and (x, y) = (1, 2) is (1, 2); with a name on both sides the names must
//               agree
//   several     lists and sets have no order; tuples, points and matrices have one; a set has no
//               repetitions, a list has them
//   intervals   and inequalities in one variable are compared as sets (real_set.h)
//   equations   are equal up to a factor and with sides swapped; inequalities up to a positive one
//   words       are compared without case; a choice may be written B, (B) or \text{(B) 5}
//   units       on one side count for nothing; on both they must agree (unit.h)
//
// An answer must be worked out: where the reference is a rational number, sums and products of
// numbers, such as 2+3 for 5, are wrong. A model would be paid for writing its question again.
#pragma once

#include <optional>
#include <string_view>

#include "actors/grade/percent.h"

namespace tandem::grade {

// None where one of the texts is nothing that is read (read_answer.h).
std::optional<bool> same_answer(std::string_view reference, std::string_view given,
                                PercentReading percent = PercentReading::kWhole);

}  // namespace tandem::grade
