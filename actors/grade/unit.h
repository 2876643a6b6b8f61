// Words beside a number: units, which may stand there, and words that make another number of it.
#pragma once

#include <string>
#include <string_view>

namespace tandem::grade {

// True for a word that makes another value of the number before it, such as "million", "pi" or
// "or".
bool changes_a_value(std::string_view word);

// True for a short name of a unit that could be taken for a product of names: cm, kg, in.
bool is_unit_word(std::string_view word);

// Whether `words`, the inside of a \text{…} or a bare word, may stand behind a number without
// changing it: at most four words, none of which changes a value.
bool is_unit_phrase(std::string_view words);

// One name for the unit that all its spellings share, such as "cm" for centimeters; empty for words
// that are no known unit. Two known units that differ are not interchangeable: 5 cm is not 5 km.
std::string known_unit(std::string_view words);

}  // namespace tandem::grade
