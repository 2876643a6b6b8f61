#include "actors/reward/reward_answer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "actors/messages/reward.h"
#include "runtime/base/json.h"
#include "runtime/node/last_lines.h"

namespace tandem::reward {
namespace {

using nlohmann::json;

constexpr std::size_t kQuotedBytesMax = 200;  // the most that a reason quotes of a line
constexpr std::size_t kNumberBytesMax = 40;   // the most that a reason quotes of a number
// The one member of the object that takes the place of a number that JSON cannot have.
constexpr const char* kNotFinite = "not finite";

// True for NaN, Infinity, -inf, 1e400 and the like, as Python and C write them.
bool is_not_finite(const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  return end == word.c_str() + word.size() && !std::isfinite(value);
}

// The line with {"not finite": WORD} instead of each number outside strings that is not finite.
std::string without_infinities(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i + 1;
    const auto is_part_of_word = [](unsigned char c) {
      return std::isalnum(c) || c == '+' || c == '-' || c == '.';
    };
    if (line[i] == '"') {
      while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, line.size());
    } else if (is_part_of_word(static_cast<unsigned char>(line[i]))) {
      while (end < line.size() && is_part_of_word(static_cast<unsigned char>(line[end]))) ++end;
    }
    const std::string word(line.substr(i, end - i));
    text += is_not_finite(word) ? dump_json({{kNotFinite, word}}) : word;
    i = end;
  }
  return text;
}

// The word of a number that is not finite, where `value` stands for one; else nullptr. A program
// may print such an object itself.
const std::string* word_of(const json& value) {
  if (!value.is_object() || value.size() != 1) return nullptr;
  const auto found = value.find(kNotFinite);
  if (found == value.end() || !found->is_string()) return nullptr;
  const auto& word = found->get_ref<const std::string&>();
  return is_not_finite(word) ? &word : nullptr;
}

std::string kind_of(const json& value) {
  if (const std::string* word = word_of(value))
    return "the number " + node::one_line(*word, kNumberBytesMax);
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "a boolean";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
    case json::value_t::number_float:
      return "the number " + node::one_line(dump_json(value), kNumberBytesMax);
    case json::value_t::binary:
    case json::value_t::discarded:
      break;
  }
  return "no value";
}

std::variant<double, std::string> score_of(const json& answer, const std::string& quoted) {
  const json score = answer.value("score", json());
  if (score.is_boolean()) return score.get<bool>() ? 1.0 : 0.0;
  if (score.is_number()) {
    if (auto fault = messages::score_fault(score.get<double>())) return *std::move(fault);
    return score.get<double>();
  }
  if (answer.contains("error"))
    return "the program reported " + node::one_line(dump_json(answer["error"]), kQuotedBytesMax);
  if (!answer.contains("score")) return "the answer lacks a score: " + quoted;
  if (const std::string* word = word_of(score))
    return messages::not_a_score(node::one_line(*word, kNumberBytesMax));
  return "score must be a number, found " + kind_of(score) + ": " + quoted;
}

// Puts the words that stand for numbers that are not finite back in their place, as texts.
void restore_words(json& value) {
  if (const std::string* word = word_of(value))
    value = std::string(*word);
  else if (value.is_structured())
    for (json& item : value) restore_words(item);
}

// Takes the object `extra` of a line into `answer`, or says why it cannot.
void take_extra(const json& line, RewardAnswer& answer) {
  const auto found = line.find("extra");
  if (found == line.end() || found->is_null()) return;
  if (!found->is_object() || word_of(*found)) {
    answer.extra_fault = "extra must be an object, found " + kind_of(*found) + "; it is left out";
    return;
  }
  json extra = *found;
  restore_words(extra);
  std::string text = dump_json(extra);
  if (text.size() > messages::kExtraBytesMax) {
    answer.extra_fault =
        "extra has " + std::to_string(text.size()) + " bytes of JSON, more than the " +
        std::to_string(messages::kExtraBytesMax) + " that are kept; it is left out";
    return;
  }
  answer.extra = std::move(text);
  const json pred = extra.value("pred", json());
  if (pred.is_string()) answer.vote = messages::vote_of(pred.get_ref<const std::string&>());
  if (pred.is_number() || pred.is_boolean()) answer.vote = messages::vote_of(dump_json(pred));
}

}  // namespace

json parse_with_infinities(std::string_view text) {
  json value = parse_json(text);
  return value.is_discarded() ? parse_json(without_infinities(text)) : value;
}

std::optional<RewardAnswer> read_reward_answer(std::string_view line) {
  const json answer = parse_with_infinities(line);
  const auto has = [&](const char* key) { return answer.contains(key); };
  if (!answer.is_object() || (!has("id") && !has("score") && !has("error"))) return std::nullopt;
  const std::string quoted = node::one_line(line, kQuotedBytesMax);
  RewardAnswer read;
  if (!has("id")) {
    read.score = "the answer lacks the id of its line: " + quoted;
  } else if (!answer["id"].is_number_unsigned()) {
    read.score =
        "id must be the number that the line has, found " + kind_of(answer["id"]) + ": " + quoted;
  } else {
    read.id = answer["id"].get<std::uint64_t>();
    read.score = score_of(answer, quoted);
    take_extra(answer, read);
  }
  return read;
}

}  // namespace tandem::reward
