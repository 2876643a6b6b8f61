// A trace has millions of events, so their text is put together here and not by way of a JSON
// value.
#include "actors/timeline/trace_event.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "runtime/base/json.h"

namespace tandem::timeline {
namespace {

template <class Number>
void append_number(Number number, std::string& text) {
  std::array<char, 32> digits{};
  const auto [stop, failure] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure == std::errc{}) text.append(digits.data(), stop);
}

void append_text(std::string_view value, std::string& text) {
  const bool plain = std::ranges::all_of(
      value, [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  if (!plain) {
    text += dump_json(nlohmann::json(std::string(value)));
    return;
  }
  text += '"';
  text += value;
  text += '"';
}

void append_value(const TraceArgument& argument, std::string& text) {
  if (const auto* number = std::get_if<std::int64_t>(&argument.value))
    append_number(*number, text);
  else if (const auto* word = std::get_if<std::string>(&argument.value))
    append_text(*word, text);
  else if (const double real = std::get<double>(argument.value); std::isfinite(real))
    append_number(real, text);
  else
    text += "null";
}

void append_field(std::string_view name, std::int64_t number, std::string& text) {
  text += name;
  append_number(number, text);
}

}  // namespace

void append_json(const TraceEvent& event, std::string& text) {
  text += R"({"ph":")";
  text += static_cast<char>(event.phase);
  text += R"(","name":)";
  append_text(event.name, text);
  if (event.category[0] != '\0') {
    text += R"(,"cat":)";
    append_text(event.category, text);
  }
  append_field(R"(,"pid":)", event.row.process, text);
  append_field(R"(,"tid":)", event.row.thread, text);
  append_field(R"(,"ts":)", event.at, text);
  if (event.phase == TracePhase::kSpan) append_field(R"(,"dur":)", event.lasts, text);
  // Of its process, so that viewers put it there.
  if (event.phase == TracePhase::kBegin || event.phase == TracePhase::kEnd) {
    text += R"(,"id2":{"local":")";
    append_number(event.id, text);
    text += R"("})";
  }
  // The line of an instant is as high as its row.
  if (event.phase == TracePhase::kInstant) text += R"(,"s":"t")";
  if (!event.arguments.empty()) {
    char before = '{';
    text += R"(,"args":)";
    for (const TraceArgument& argument : event.arguments) {
      text += before;
      append_text(argument.key, text);
      text += ':';
      append_value(argument, text);
      before = ',';
    }
    text += '}';
  }
  text += '}';
}

}  // namespace tandem::timeline
