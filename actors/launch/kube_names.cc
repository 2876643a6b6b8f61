#include "actors/launch/kube_names.h"

#include <algorithm>
#include <string_view>

namespace tandem::launch {
namespace {

constexpr std::size_t kLabelCharsMax = 63;
// The longest name that is made of a job's is that of the controller's pod.
constexpr std::size_t kNameCharsMax =
    kLabelCharsMax - std::string_view("-controller-0-0-x7k2p").size();
constexpr std::size_t kObjectNameCharsMax = 253;

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// Whether the text begins and ends with a lower-case letter or a digit, and has between them also
// the characters of `others`.
bool is_word(std::string_view text, std::size_t chars_max, std::string_view others) {
  return !text.empty() && text.size() <= chars_max && is_lower_or_digit(text.front()) &&
         is_lower_or_digit(text.back()) && std::ranges::all_of(text, [others](char c) {
           return is_lower_or_digit(c) || others.find(c) != others.npos;
         });
}

}  // namespace

std::string not_a_name(const std::string& text) {
  const bool good = is_word(text, kNameCharsMax, "-") && text.front() >= 'a';
  return good ? ""
              : "`" + text +
                    "` cannot name objects of Kubernetes: lower-case letters, digits and `-`, a "
                    "letter first, at most " +
                    std::to_string(kNameCharsMax) + " characters";
}

std::string not_a_label(const std::string& text) {
  return is_word(text, kLabelCharsMax, "-")
             ? ""
             : "`" + text + "` is no name of a namespace or a queue of Kubernetes";
}

std::string not_an_objects_name(const std::string& text) {
  return is_word(text, kObjectNameCharsMax, "-.")
             ? ""
             : "`" + text + "` is no name of an object of Kubernetes";
}

std::string not_a_quantity(const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string number = text.substr(0, digits), unit = text.substr(digits);
  constexpr std::string_view kUnits[] = {"",  "m",  "k",  "M",  "G",  "T",  "P",
                                         "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  const bool good = number.find_first_of("123456789") != number.npos && number.front() != '.' &&
                    number.back() != '.' && std::ranges::count(number, '.') <= 1 &&
                    std::ranges::find(kUnits, unit) != std::end(kUnits);
  return good ? "" : "`" + text + "` is no quantity of Kubernetes, as in 16Gi or 500m";
}

std::string not_an_image(const std::string& text) {
  const bool good = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return c > 0x20 && c < 0x7f && c != '"' && c != '\'' && c != '\\';
  });
  return good ? "" : "`" + text + "` is no image, as in registry.example/tandem:1.0";
}

}  // namespace tandem::launch
