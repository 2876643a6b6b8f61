// Words beside a number: units, which may stand there, and words that make another number of it.
//
// Units are compared by name: a number in km is none in m, and 60 minutes are not 1 hour. One unit
// has many spellings: km/h, kilometers per hour and \mathrm{km\,h^{-1}} are the same.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace tandem::grade {

// True for a word that makes another value of the number before it, such as "million", "pi" or
// "or".
bool changes_a_value(std::string_view word);

// True for a short name of a unit that could be taken for a product of names: cm, kg, in.
bool is_unit_word(std::string_view word);

// True for "percent" and its other spellings.
bool is_percent_word(std::string_view words);

struct Unit {
  std::map<std::string, int> powers;  // of units by one name each: km/h is {h: -1, km: 1}
  std::set<std::string> words;        // of what is counted, in the singular: red, ball
};

// The unit that `words` name, the inside of a \text{…} or bare words, perhaps with powers and
// slashes; none where they may not stand behind a number: more than four words, one that changes a
// value, or something that is no word. Words such as "left" or "in total" are no part of it.
std::optional<Unit> read_unit(std::string_view words);

// Whether two numbers with these units behind them may be equal: a unit that only one of them has
// counts for nothing, and what is counted may be named more precisely: red balls and balls. Empty
// words are no unit. Other words must be such that read_unit() reads them.
bool units_agree(std::string_view a, std::string_view b);

}  // namespace tandem::grade
