// The final answer in a worked solution, and whether two of them are the same.
//
// The answer is, in this order: the inside of the last \boxed{…} or \fbox{…} (braces may nest; one
// that does not close is no answer, as in verl; \boxed 7 is 7; \boxed{1} and \boxed{2} are a list),
// the text behind the last "####" of a line, the whole text where it is a value (math_value.h),
// else its last number. The last number must stand free: the inside of the $…$ or \(…\) that ends
// the text, or a word that is a value, or follows its last "="; a neighbour that would change it
// (an operator, a LaTeX command, "million") makes it none. Where the reference is no number, the
// formula that ends a text is its answer, and where it is a choice such as B, what stands behind
// the last "answer is".
//
// Two answers are equal if both are values and the same, or if grade::same_answer() finds them so,
// or if neither can be read and their texts are the same, LaTeX spacing aside. Any other answer is
// wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "actors/reward/math_value.h"

namespace tandem::reward {

using grade::PercentReading;

// The text of the final answer; none where there is neither a mark nor a number that stands free.
std::optional<std::string> final_answer(std::string_view solution);

// Whether a reference answer (itself perhaps a solution with \boxed or ####) and a completion have
// equal values.
bool math_equal(std::string_view reference, std::string_view completion,
                PercentReading percent = PercentReading::kWhole);

// Whether a completion has the answer of a reference, and its vote. Votes find the answer that most
// of a prompt's completions have: completions with the same vote have the same answer.
//
//   MV-1  Right completions have one vote, whatever they look like: each equals the reference.
//   MV-2  Wrong ones vote by the form of their answer (grade::answer_form()), and where it is not
//         read, by its text; completions without an answer have no vote.
struct MathVerdict {
  bool right = false;
  std::optional<std::string> vote;
};
MathVerdict judge_math(std::string_view reference, std::string_view completion,
                       PercentReading percent = PercentReading::kWhole);

}  // namespace tandem::reward
