#include "actors/grade/unit.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tandem::grade {
namespace {

constexpr std::size_t kUnitWordsMax = 4;

// Each row: the name of a unit, and other spellings of it.
constexpr std::array<std::string_view, 5> kUnits[] = {
    {"mm", "millimeter", "millimeters", "millimetre", "millimetres"},
    {"cm", "centimeter", "centimeters", "centimetre", "centimetres"},
    {"m", "meter", "meters", "metre", "metres"},
    {"km", "kilometer", "kilometers", "kilometre", "kilometres"},
    {"in", "inch", "inches", "", ""},
    {"ft", "foot", "feet", "", ""},
    {"yd", "yard", "yards", "", ""},
    {"mi", "mile", "miles", "", ""},
    {"mg", "milligram", "milligrams", "", ""},
    {"g", "gram", "grams", "", ""},
    {"kg", "kilogram", "kilograms", "", ""},
    {"lb", "pound", "pounds", "lbs", ""},
    {"oz", "ounce", "ounces", "", ""},
    {"ml", "milliliter", "milliliters", "millilitres", ""},
    {"l", "liter", "liters", "litre", "litres"},
    {"s", "sec", "second", "seconds", "secs"},
    {"min", "minute", "minutes", "mins", ""},
    {"hr", "h", "hour", "hours", "hrs"},
    {"day", "days", "", "", ""},
    {"week", "weeks", "", "", ""},
    {"month", "months", "", "", ""},
    {"year", "years", "yr", "yrs", ""},
    {"cent", "cents", "", "", ""},
    {"dollar", "dollars", "", "", ""},
    {"kJ", "", "", "", ""},
    {"J", "", "", "", ""},
    {"degree", "degrees", "", "", ""},
};

std::string lower_case(std::string_view word) {
  std::string lower(word);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

}  // namespace

bool changes_a_value(std::string_view word) {
  static constexpr std::array<std::string_view, 62> kWords = {
      "hundred", "thousand",  "million", "billion",  "trillion", "dozen",  "half",    "halves",
      "third",   "thirds",    "quarter", "quarters", "fourths",  "fifths", "tenths",  "hundredths",
      "squared", "cubed",     "pi",      "times",    "plus",     "minus",  "over",    "or",
      "and",     "to",        "root",    "sqrt",     "mod",      "modulo", "sin",     "cos",
      "tan",     "log",       "ln",      "exp",      "than",     "but",    "if",      "not",
      "is",      "factorial", "percent", "infinity", "inf",      "choose", "divided", "less",
      "more",    "negative",  "point",   "score",    "gross",    "pairs",  "unless",  "except",
      "nor",     "by",        "power",   "e",        "i",        "x"};
  return std::ranges::find(kWords, lower_case(word)) != kWords.end();
}

bool is_unit_word(std::string_view word) {
  static constexpr std::string_view kShort[] = {"cm", "mm", "km", "kg", "mg", "ml",
                                                "mL", "ft", "in", "oz", "lb", "hr",
                                                "mi", "yd", "am", "pm", "kJ"};
  return std::ranges::find(kShort, word) != std::end(kShort);
}

bool is_unit_phrase(std::string_view words) {
  std::size_t count = 0;
  std::string word;
  for (std::size_t i = 0; i <= words.size(); ++i) {
    const char c = i < words.size() ? words[i] : ' ';
    if (letter(c)) {
      word += c;
      continue;
    }
    if (c != ' ' && c != '/' && c != '.') return false;
    if (word.empty()) continue;
    if (changes_a_value(word) || ++count > kUnitWordsMax) return false;
    word.clear();
  }
  return count > 0;
}

std::string known_unit(std::string_view words) {
  const auto begin = words.find_first_not_of(" .");
  if (begin == std::string_view::npos) return {};
  words = words.substr(begin, words.find_last_not_of(" .") - begin + 1);
  const std::string lower = lower_case(words);
  for (const auto& unit : kUnits)
    for (const std::string_view spelling : unit)
      if (!spelling.empty() && (spelling == words || spelling == lower))
        return std::string(unit[0]);
  return {};
}

}  // namespace tandem::grade
