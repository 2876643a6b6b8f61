// A scanner for {"key":number,…} as dump_json() writes it: no white space, no escapes, no nesting.
// A line that is anything else is parsed as JSON.
#include "actors/runs/metrics_line.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "runtime/base/json.h"

namespace tandem::runs {
namespace {

class FlatLine {
 public:
  FlatLine(std::string_view text, MetricsLine& line) : text_(text), line_(line) {}

  // False for anything but {"key":number,…}: the line is then read as any JSON.
  bool read() {
    std::size_t count = 0;
    if (!skip("{\"")) return false;
    do {
      const auto key = this->key();
      if (!key) return false;
      if (*key == "step") {
        if (!number(line_.step)) return false;
        stepped_ = true;
        continue;
      }
      // A null is a gap, as is a missing key.
      if (skip("null")) continue;
      // Entries of the last line are overwritten, so that their keys keep their memory.
      if (line_.values.size() == count) line_.values.emplace_back();
      line_.values[count].first.assign(*key);
      if (!number(line_.values[count++].second)) return false;
    } while (skip(",\""));
    line_.values.resize(count);
    return stepped_ && text_ == "}" && line_.step >= 0 && line_.step <= kStepMax;
  }

 private:
  bool skip(std::string_view expected) {
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }
  std::optional<std::string_view> key() {  // up to the colon; without escapes
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const auto c = static_cast<unsigned char>(text_[i]);
      if (c == '\\' || c < 0x20 || c >= 0x80) return std::nullopt;
      if (c != '"') continue;
      const std::string_view key = text_.substr(0, i);
      text_.remove_prefix(i + 1);
      if (!skip(":")) return std::nullopt;
      return key;
    }
    return std::nullopt;
  }
  template <class Number>
  bool number(Number& value) {
    const std::size_t sign = text_.starts_with('-') ? 1 : 0;  // from_chars knows "-inf" as well
    if (text_.size() <= sign || text_[sign] < '0' || text_[sign] > '9') return false;
    const auto [stop, failure] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (failure != std::errc{}) return false;
    text_.remove_prefix(static_cast<std::size_t>(stop - text_.data()));
    return true;
  }

  std::string_view text_;
  MetricsLine& line_;
  bool stepped_ = false;
};

}  // namespace

bool read_metrics_line(std::string_view text, MetricsLine& line) {
  line.evaluation = false;
  if (FlatLine(text, line).read()) return true;
  line.values.clear();
  const auto parsed = parse_json(text);
  if (!parsed.is_object()) return false;
  const auto step = parsed.find("step");
  if (step == parsed.end() || !step->is_number_integer()) return false;
  line.step = step->get<std::int64_t>();
  const auto kind = parsed.find("eval");
  line.evaluation = kind != parsed.end() && kind->is_string();
  if (line.step < (line.evaluation ? kVersionMin : 0) || line.step > kStepMax) return false;
  for (const auto& [key, value] : parsed.items())
    if (value.is_number() && key != "step") line.values.emplace_back(key, value.get<double>());
  return true;
}

std::optional<double> run_clock(const MetricsLine& line) {
  for (const auto& [key, value] : line.values)
    if (key == "tandem/wall_seconds") return value;
  return std::nullopt;
}

double time_of(const MetricsLine& kept, const MetricsLine& newest, double now) {
  const auto then = run_clock(kept), newest_at = run_clock(newest);
  return then && newest_at ? now - std::max(*newest_at - *then, 0.0) : now;
}

}  // namespace tandem::runs
