// Finds where elements begin and end by counting brackets outside strings, which is exact for valid
// JSON; an element that is not JSON is refused by whoever parses it. An array of any length takes
// the memory of its largest element.
#include <algorithm>

#include "actors/data/record_source.h"
#include "actors/data/text_cursor.h"

namespace tandem::data {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class JsonArray final : public RecordSource {
 public:
  explicit JsonArray(TextFile file)
      : text_(std::move(file.bytes)),
        path_(std::move(file.path)),
        record_bytes_max_(file.record_bytes_max) {}

  Result<std::optional<std::string_view>> next() override {
    if (!opened_) {
      auto first = next_character();
      if (!first) return first.error();
      if (*first != '[') return fault("expected `[`, the start of a JSON array");
      opened_ = true;
      text_.pass(1);
    }
    auto found = begin_element();
    if (!found) return found.error();
    if (!*found) return std::optional<std::string_view>();
    ++number_;
    if (auto read = read_element(); !read) return read.error();
    return std::optional<std::string_view>(element_);
  }

  std::string_view place() const override {
    // Elements count from 0, as in every tool that prints such a place.
    return place_.assign(path_.native()).append("[").append(std::to_string(number_ - 1)) += ']';
  }
  std::uint64_t bytes_read() const override { return text_.bytes_read(); }

 private:
  Error fault(std::string message) const {
    return {ErrorCode::kInvalid, std::move(message),
            path_.string() + ":" + std::to_string(text_.line()),
            "the file is one JSON array of objects: [{…}, {…}]"};
  }

  // The next character that is no white space; '\0' at the end.
  Result<char> next_character() {
    for (;;) {
      const auto held = text_.held();
      if (!held) return held.error();
      if (held->empty()) return '\0';
      const std::size_t at = held->find_first_not_of(" \t\r\n");
      text_.pass(at == held->npos ? held->size() : at);
      if (at != held->npos) return (*held)[at];
    }
  }

  // Goes to the first character of the next element. False: the array has ended, and nothing is
  // behind it.
  Result<bool> begin_element() {
    auto c = next_character();
    if (!c) return c.error();
    if (*c == ',' && number_ > 0) {
      text_.pass(1);
      c = next_character();
      if (!c) return c.error();
      if (*c == ',' || *c == ']') return fault("an element is missing at the comma");
    } else if (number_ > 0 && *c != ']' && *c != '\0') {
      return fault("a comma is missing after the element before");
    }
    if (*c == '\0') return fault("the array has no end `]`; is the file cut off?");
    if (*c != ']') return true;
    text_.pass(1);
    c = next_character();
    if (!c) return c.error();
    if (*c != '\0') return fault("there is more text behind the array's end");
    return false;
  }

  Result<void> read_element() {
    element_.clear();
    State state;
    for (;;) {
      const auto held = text_.held();
      if (!held) return held.error();
      if (held->empty()) return fault("the array has no end `]`; is the file cut off?");
      const std::size_t used = take(*held, state);
      text_.pass(used);
      if (element_.size() > record_bytes_max_)
        return fault("the element has more than " + std::to_string(record_bytes_max_) + " bytes");
      if (state.ended) return {};
    }
  }

  struct State {
    std::size_t depth = 0;
    bool quoted = false, escaped = false, ended = false;
  };

  // Appends characters of `held` to the element until it ends; returns how many were used. An
  // element that is no list, object or string ends before a comma or a bracket.
  std::size_t take(std::string_view held, State& state) {
    for (std::size_t i = 0; i < held.size(); ++i) {
      const char c = held[i];
      if (state.quoted) {
        if (const auto rest = held.substr(i); !state.escaped) {
          const std::size_t run = run_before(rest, '"', '\\');
          element_ += rest.substr(0, std::min(run + 1, rest.size()));
          i += run;
          if (run == rest.size()) break;
          state.escaped = rest[run] == '\\';
          state.quoted = state.escaped;
        } else {
          element_ += c;
          state.escaped = false;
        }
        continue;
      }
      if (is_space(c)) continue;
      if (state.depth == 0 && (c == ',' || c == ']')) {
        state.ended = true;
        return i;
      }
      element_ += c;
      if (c == '"')
        state.quoted = true;
      else if (c == '{' || c == '[')
        ++state.depth;
      else if ((c == '}' || c == ']') && state.depth > 0 && --state.depth == 0) {
        state.ended = true;
        return i + 1;
      }
    }
    return held.size();
  }

  TextCursor text_;
  const std::filesystem::path path_;
  const std::size_t record_bytes_max_;
  bool opened_ = false;
  std::uint64_t number_ = 0;  // of the element that was read last, from 1
  std::string element_;
  mutable std::string place_;
};

}  // namespace

std::unique_ptr<RecordSource> json_array(TextFile file) {
  return std::make_unique<JsonArray>(std::move(file));
}

}  // namespace tandem::data
