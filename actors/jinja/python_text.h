// Strings as Python's str has them, over UTF-8: indices count code points. Pure functions. Case and
// categories are those of utf8proc's Unicode. A letter whose other case is several letters (ß) is
// mapped as Unicode's SpecialCasing.txt says, except for Greek letters with an iota subscript.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::jinja {

void append_code_point(std::string& out, char32_t code);
// The code point at `at`, which is moved past it.
char32_t next_code_point(std::string_view text, std::size_t& at);
// The last character of `text`, which must not be empty and loses it.
char32_t pop_last(std::string_view& text);
// str.isspace() of one character.
bool is_space(char32_t code);
// The byte at which the character `index` begins; the end where there is none.
std::size_t byte_of(std::string_view text, std::size_t index);
std::size_t count_characters(std::string_view text);

enum class Side : std::uint8_t { kLeft, kRight, kBoth };
// str.strip() and its likes; without `characters` white space.
std::string_view strip(std::string_view text, std::optional<std::string_view> characters,
                       Side side);
// str.split(); without a separator at runs of white space. At most `cuts` cuts, -1: all.
std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, std::int64_t cuts);
std::vector<std::string_view> split_from_right(std::string_view text,
                                               std::optional<std::string_view> separator,
                                               std::int64_t cuts);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
// str.replace(); at most `count` times, -1: all. `bytes_max` bounds the result: nothing beyond it.
std::optional<std::string> replace(std::string_view text, std::string_view from,
                                   std::string_view to, std::int64_t count, std::size_t bytes_max);
std::size_t count_of(std::string_view text, std::string_view part);  // not overlapping

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);         // str.title()
std::string filter_title(std::string_view text);  // Jinja's filter of that name
std::string swap_case(std::string_view text);

// What str.isalpha() and its likes say: every character is of the class, and there is one.
enum class Class : std::uint8_t {
  kAlpha,
  kDigit,
  kDecimal,
  kAlnum,
  kSpace,
  kLower,
  kUpper,
  kAscii
};
bool all_of(std::string_view text, Class of);

// Text for HTML, as Jinja's filter `escape` makes it.
std::string escaped(std::string_view text);
// repr(): quoted, with escapes for what cannot be printed.
std::string python_repr(std::string_view text);
// repr() of a float: the shortest digits that read back the same.
std::string float_text(double value);
// int(text, base) and float(text); nothing where Python raises a ValueError.
std::optional<std::int64_t> parse_int(std::string_view text, std::int64_t base);
std::optional<double> parse_float(std::string_view text);

}  // namespace tandem::jinja
