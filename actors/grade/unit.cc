// A phrase is read from left to right into powers of units. A word is, in this order: a connective
// (per, square), a unit of the table, a unit of the SI with a prefix, else what is counted.
#include "actors/grade/unit.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tandem::grade {
namespace {

constexpr std::size_t kUnitWordsMax = 4;
constexpr int kUnitPowerMax = 9;

// Each row: the name of a unit, and other spellings of it.
constexpr std::array<std::string_view, 5> kUnits[] = {
    {"in", "inch", "inches", "", ""},
    {"ft", "foot", "feet", "", ""},
    {"yd", "yard", "yards", "yds", ""},
    {"mi", "mile", "miles", "", ""},
    {"lb", "pound", "pounds", "lbs", ""},
    {"oz", "ounce", "ounces", "", ""},
    {"gal", "gallon", "gallons", "", ""},
    {"min", "minute", "minutes", "mins", ""},
    {"h", "hr", "hour", "hours", "hrs"},
    {"day", "days", "", "", ""},
    {"week", "weeks", "", "", ""},
    {"month", "months", "", "", ""},
    {"year", "years", "yr", "yrs", ""},
    {"cent", "cents", "", "", ""},
    {"dollar", "dollars", "USD", "usd", "bucks"},
    {"euro", "euros", "EUR", "", ""},
    {"degree", "degrees", "deg", "", ""},
    {"radian", "radians", "rad", "rads", ""},
    {"celsius", "centigrade", "", "", ""},
    {"fahrenheit", "", "", "", ""},
    {"unit", "units", "", "", ""},
    {"am", "AM", "", "", ""},
    {"pm", "PM", "", "", ""},
};

// Short names of quotients.
constexpr std::array<std::string_view, 3> kSpeeds[] = {
    {"mph", "mi", "h"}, {"kph", "km", "h"}, {"kmh", "km", "h"}, {"kmph", "km", "h"}};

constexpr std::array<std::string_view, 2> kPrefixes[] = {
    {"", ""},      {"k", "kilo"}, {"c", "centi"}, {"m", "milli"},
    {"d", "deci"}, {"M", "mega"}, {"G", "giga"},  {"n", "nano"}};
// Each row: a unit with prefixes, as a symbol and as a word, and another spelling.
constexpr std::array<std::string_view, 3> kPrefixedUnits[] = {
    {"m", "meter", "metre"}, {"g", "gram", "gramme"}, {"s", "second", "sec"},
    {"L", "liter", "litre"}, {"W", "watt", ""},       {"J", "joule", ""},
    {"N", "newton", ""},     {"V", "volt", ""},       {"A", "ampere", "amp"},
    {"Pa", "pascal", ""},    {"Hz", "hertz", ""},     {"mol", "mole", ""},
    {"cal", "calorie", ""}};

// Words of a sentence that goes on behind a number.
constexpr std::string_view kFillers[] = {"total", "altogether", "left", "remaining", "long", "wide",
                                         "tall",  "high",       "deep", "old",       "away", "of",
                                         "the",   "in",         "all",  "each"};

constexpr std::array<std::string_view, 2> kPlurals[] = {
    {"people", "person"}, {"children", "child"}, {"men", "man"}, {"women", "woman"}};

// Numbers, also in the plural: 5 tenths, 5 dozens. What ends in -illion is one too.
constexpr std::string_view kNumberWords[] = {
    "zero",       "one",        "two",       "three",     "four",        "five",
    "six",        "seven",      "eight",     "nine",      "ten",         "eleven",
    "twelve",     "thirteen",   "fourteen",  "fifteen",   "sixteen",     "seventeen",
    "eighteen",   "nineteen",   "twenty",    "thirty",    "forty",       "fifty",
    "sixty",      "seventy",    "eighty",    "ninety",    "hundred",     "thousand",
    "half",       "third",      "quarter",   "fourth",    "fifth",       "sixth",
    "seventh",    "eighth",     "ninth",     "tenth",     "eleventh",    "twelfth",
    "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth",
    "nineteenth", "twentieth",  "thirtieth", "fortieth",  "fiftieth",    "sixtieth",
    "seventieth", "eightieth",  "ninetieth", "hundredth", "thousandth",  "dozen",
    "pair",       "couple",     "mil",       "lakh",      "crore",       "grand",
    "myriad",     "milliard",   "googol",    "percent",   "percentage",  "percentile",
    "permille",   "permil",     "bp"};

// Other words that make another value or a bound of a number, or join it with something.
constexpr std::string_view kValueWords[] = {
    "halves",      "squared",  "cubed",      "pi",        "times",    "plus",      "minus",
    "over",        "or",       "and",        "to",        "root",     "sqrt",      "mod",
    "modulo",      "sin",      "cos",        "tan",       "log",      "ln",        "exp",
    "than",        "but",      "if",         "not",       "is",       "factorial", "infinity",
    "inf",         "choose",   "divided",    "less",      "more",     "negative",  "point",
    "score",       "gross",    "unless",     "except",    "nor",      "by",        "power",
    "e",           "i",        "x",          "bn",        "mn",       "bil",       "twice",
    "thrice",      "double",   "doubled",    "triple",    "tripled",  "quadruple", "quadrupled",
    "halved",      "fold",     "twofold",    "threefold", "fourfold", "fivefold",  "tenfold",
    "hundredfold", "inverse",  "reciprocal", "below",     "under",    "above",     "beyond",
    "beneath",     "fewer",    "greater",    "larger",    "smaller",  "most",      "least",
    "minimum",     "maximum",  "max",        "short",     "shy",      "almost",    "nearly",
    "until",       "till",     "out",        "up",        "upwards",  "none",      "base",
    "basis",       "bps",      "ppm",        "ppb",       "bc",       "bce",       "neg",
    "subzero",     "exceeding"};

std::string lower_case(std::string_view word) {
  std::string lower(word);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

bool in_table(const auto& table, std::string_view word) {
  return std::ranges::find(table, word) != std::end(table);
}

std::string singular(const std::string& word) {
  for (const auto& [many, one] : kPlurals)
    if (word == many) return std::string(one);
  const auto stem = [&](std::size_t end) { return word.substr(0, word.size() - end); };
  if (word.size() > 4 && word.ends_with("ies")) return stem(3) + "y";
  for (const std::string_view end : {"sses", "xes", "ches", "shes"})
    if (word.ends_with(end)) return stem(2);
  return word.size() > 3 && word.ends_with('s') && !word.ends_with("ss") ? stem(1) : word;
}

// The name of a unit with a prefix of the SI: "cm" for cm, centimeter and centimetres.
std::string si_unit(std::string_view word, const std::string& lower) {
  const std::string one = singular(lower);
  for (const auto& [symbol, name, other] : kPrefixedUnits)
    for (const auto& [short_prefix, prefix] : kPrefixes) {
      const std::string short_name = std::string(short_prefix).append(symbol);
      const bool litre = symbol == "L" && lower == lower_case(short_name) && word[0] != 'M';
      if (word == short_name || litre) return short_name;
      for (const std::string_view full : {name, other})
        if (!full.empty() && one.size() == prefix.size() + full.size() && one.starts_with(prefix) &&
            one.ends_with(full))
          return short_name;
    }
  return {};
}

// One name for a known unit, or nothing.
std::string known_unit(std::string_view word) {
  const std::string lower = lower_case(word);
  for (const auto& unit : kUnits)
    for (const std::string_view spelling : unit)
      if (!spelling.empty() && (spelling == word || spelling == lower)) return std::string(unit[0]);
  std::string found = si_unit(word, lower);
  return found.empty() && word != lower && word.size() == 2 ? si_unit(lower, lower) : found;
}

class UnitReader {
 public:
  std::optional<Unit> read(std::string_view text) {
    while (!text.empty()) {
      const bool begins_word = letter(text[0]);
      const std::size_t length = begins_word ? word(text) : mark(text);
      if (length == 0) return std::nullopt;
      tight_ = begins_word;
      text.remove_prefix(length);
    }
    if (power_ != 1 || sign_ != 1) return std::nullopt;  // "square" or "per" of nothing
    return std::move(unit_);
  }

 private:
  // Each takes what the text begins with and returns its length, or 0 for no part of a unit.

  std::size_t word(std::string_view text) {
    std::string word;
    std::size_t length = 0;
    const auto at = [&](std::size_t i) { return i < text.size() ? text[i] : ' '; };
    if (at(1) == '.' && letter(at(2)) && !letter(at(3))) {  // a.m.
      word = {at(0), at(2)};
      length = 3;
    } else {
      while (letter(at(length))) word += at(length++);
      if (text.substr(length).starts_with("(s)")) length += 3;
    }
    return add(word, text.substr(length)) ? length : 0;
  }

  std::size_t mark(std::string_view text) {
    if (text[0] == '/') {
      if (sign_ < 0) return 0;
      sign_ = -1;
      return 1;
    }
    if (text[0] == '^' || ((text[0] == '2' || text[0] == '3') && tight_)) return exponent(text);
    if (std::string_view(" .-*{}").find(text[0]) != std::string_view::npos) return 1;
    for (const std::string_view space : {"\\cdot", "\\,", "\\ ", "\\;", "\\:", "\\!"})
      if (text.starts_with(space)) return space.size();
    return 0;
  }

  std::size_t exponent(std::string_view text) {
    std::size_t length = text[0] == '^' ? 1 : 0;
    while (length < text.size() && text[length] == '{') ++length;
    const bool minus = length < text.size() && text[length] == '-';
    if (minus) ++length;
    const int digit = length < text.size() ? text[length] - '0' : -1;
    if (last_ == nullptr || digit < 1 || digit > kUnitPowerMax) return 0;
    *last_ *= minus ? -digit : digit;
    last_ = nullptr;
    return length + 1;
  }

  bool add(const std::string& word, std::string_view rest) {
    const std::string lower = lower_case(word);
    rest.remove_prefix(std::min(rest.find_first_not_of(" ."), rest.size()));
    const bool sole = rest.empty() || rest[0] == '/' || rest[0] == '^' || rest.starts_with("per ");
    const bool article = lower == "a" || lower == "an";
    if (article && unit_.powers.empty() && unit_.words.empty()) return !sole;
    if (lower == "per" || article) {  // five dollars a day
      if (sign_ < 0) return false;
      sign_ = -1;
      return true;
    }
    if (lower == "square" || lower == "sq" || lower == "cubic" || lower == "cu") {
      power_ = lower[0] == 's' ? 2 : 3;
      return true;
    }
    if ((lower == "squared" || lower == "cubed") && last_ != nullptr) {
      *last_ *= lower == "squared" ? 2 : 3;
      last_ = nullptr;
      return true;
    }
    if (changes_a_value(lower) || ++words_ > kUnitWordsMax) return false;
    if (singular(lower) == "cent" && sign_ < 0 && unit_.powers.empty()) return false;  // per cent
    if (const bool degrees = unit_.powers.contains("degree"); degrees && temperature(lower))
      return true;
    for (const auto& [name, above, below] : kSpeeds)
      if (lower == name) return count(std::string(above), 1) && count(std::string(below), -1);
    const bool preposition = lower == "in" && !(sole && unit_.words.empty());
    const std::string known = preposition ? "" : known_unit(word);
    if (!known.empty()) return count(known, 1);
    return counted(lower);
  }

  // The C of "degree C".
  bool temperature(const std::string& lower) {
    const bool celsius = lower == "c" || lower == "celsius";
    if (!celsius && lower != "f" && lower != "fahrenheit") return false;
    unit_.powers.erase("degree");
    last_ = nullptr;
    return count(celsius ? "celsius" : "fahrenheit", 1);
  }

  // A unit that is named twice, such as $5 dollars, is the same as once.
  bool count(const std::string& name, int power) {
    int& total = unit_.powers[name];
    power *= sign_ * power_;
    if (total != power) total += power;
    sign_ = power_ = 1;
    last_ = &total;
    return total != 0;
  }

  bool counted(const std::string& lower) {
    if (lower.size() == 1) return false;  // the name of a number, perhaps
    if (sign_ < 0) return count(singular(lower), 1);
    if (power_ != 1) unit_.words.insert(power_ == 2 ? "square" : "cubic");
    power_ = 1;
    last_ = nullptr;
    if (!in_table(kFillers, lower)) unit_.words.insert(singular(lower));
    return true;
  }

  Unit unit_;
  int sign_ = 1, power_ = 1;  // of the next unit
  int* last_ = nullptr;       // the power that an exponent here would raise
  bool tight_ = false;        // a word ends here: cm2
  std::size_t words_ = 0;
};

// "units" stand for any unit of the same power: square units for cm^2.
bool units_of_anything(const Unit& some, const Unit& other) {
  const auto found = some.powers.find("unit");
  if (some.powers.size() != 1 || found == some.powers.end()) return false;
  if (other.powers.empty()) return found->second == 1;
  return other.powers.size() == 1 && other.powers.begin()->second == found->second;
}

// A temperature in degrees, of a scale that the other names.
bool degrees_of_a_scale(const Unit& some, const Unit& other) {
  const Unit degree{.powers = {{"degree", 1}}, .words = {}};
  return some.powers == degree.powers && other.powers.size() == 1 &&
         (other.powers.contains("celsius") || other.powers.contains("fahrenheit"));
}

}  // namespace

bool changes_a_value(std::string_view word) {
  const std::string lower = lower_case(word), one = singular(lower);
  return in_table(kValueWords, lower) || in_table(kNumberWords, one) || one.ends_with("illion") ||
         one.ends_with("illionth");
}

bool is_unit_word(std::string_view word) {
  static constexpr std::string_view kShort[] = {
      "cm", "mm", "km", "kg",  "mg",  "ml",  "mL",  "ft",  "in",  "oz",  "lb",  "hr", "mi", "yd",
      "am", "pm", "kJ", "min", "mph", "kph", "kmh", "lbs", "hrs", "yrs", "rad", "AM", "PM", "USD"};
  return in_table(kShort, word);
}

bool is_percent_word(std::string_view words) {
  static constexpr std::string_view kSpellings[] = {"percent", "per cent", "pct", "percentage"};
  return in_table(kSpellings, lower_case(words));
}

std::optional<Unit> read_unit(std::string_view words) { return UnitReader().read(words); }

bool units_agree(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty() || a == b) return true;
  const auto left = read_unit(a), right = read_unit(b);
  if (!left || !right) return false;
  const auto nothing = [](const Unit& unit) { return unit.powers.empty() && unit.words.empty(); };
  if (nothing(*left) || nothing(*right)) return true;
  if (units_of_anything(*left, *right) || units_of_anything(*right, *left)) return true;
  const bool same_powers = left->powers == right->powers || degrees_of_a_scale(*left, *right) ||
                           degrees_of_a_scale(*right, *left);
  return same_powers && (std::ranges::includes(left->words, right->words) ||
                         std::ranges::includes(right->words, left->words));
}

}  // namespace tandem::grade
