// The form of an answer: a text that is the same for answers that same_answer() finds equal, by
// which the completions of a prompt vote (actors/reward/math_answer.h).
//
// same_answer() allows more than one text can: 5 cm and 5 km both equal 5, and 50% may equal 50 and
// 0.5. A form leaves out what may be missing, so that 5 cm, 5 km and x = 5 have the form of 5, and
// 50% has that of 50. Equations with a name in a denominator, and answers that cannot be evaluated
// to enough digits (value_form.h), may have different forms although they are equal. Work is
// bounded as that of a comparison is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::grade {

// None where the text is nothing that is read (read_answer.h).
std::optional<std::string> answer_form(std::string_view text);

}  // namespace tandem::grade
