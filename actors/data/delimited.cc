// One state machine over the characters, as RFC 4180 gives the grammar. What the RFC leaves open:
// a quote within a field that did not begin with one stands for itself, as in pandas; blank lines
// are skipped; the last record may lack its line end.
#include <set>
#include <vector>

#include "actors/data/json_fields.h"
#include "actors/data/record_source.h"
#include "actors/data/text_cursor.h"

namespace tandem::data {
namespace {

constexpr std::size_t kColumnsMax = 10'000;

struct Field {
  std::string text;
  bool quoted = false;
};

// How many characters stand for themselves in a string of JSON.
std::size_t plain_run(std::string_view text) {
  return run_until(
      text, [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20; },
      [](const EightCharacters& eight) {
        return eight.equal('"') | eight.equal('\\') | eight.below(0x20);
      });
}

void append_json(std::string& json, std::string_view text) {
  json += '"';
  for (;;) {
    const std::size_t run = plain_run(text);
    json.append(text, 0, run);
    if (run == text.size()) break;
    const char c = text[run];
    if (c == '"' || c == '\\') {
      (json += '\\') += c;
    } else {
      constexpr char kDigits[] = "0123456789abcdef";
      (json += c >= 0x10 ? "\\u001" : "\\u000") += kDigits[c & 15];
    }
    text.remove_prefix(run + 1);
  }
  json += '"';
}

class Delimited final : public RecordSource {
 public:
  Delimited(TextFile file, char separator)
      : text_(std::move(file.bytes)),
        path_(std::move(file.path)),
        record_bytes_max_(file.record_bytes_max),
        separator_(separator) {}

  Result<std::optional<std::string_view>> next() override {
    if (keys_.empty()) {
      const auto header = read_record();
      if (!header) return header.error();
      if (!*header) return std::optional<std::string_view>();
      if (auto named = name_columns(); !named) return named.error();
    }
    const auto more = read_record();
    if (!more) return more.error();
    if (!*more) return std::optional<std::string_view>();
    if (count_ != keys_.size())
      return fault("the record has " + std::to_string(count_) + " fields, and the first line has " +
                       std::to_string(keys_.size()) + " columns",
                   "a field with a separator, a quote or a line end stands in double quotes");
    return write_json();
  }

  std::string_view place() const override {
    return place_.assign(path_.native()).append(":").append(std::to_string(line_));
  }
  std::uint64_t bytes_read() const override { return text_.bytes_read(); }

 private:
  enum class State { kFieldBegins, kPlain, kQuoted, kQuoteSeen, kCarriageReturn };

  Error fault(std::string message, std::string help) const {
    return {ErrorCode::kInvalid, std::move(message), path_.string() + ":" + std::to_string(line_),
            std::move(help)};
  }

  Field& field() { return fields_[count_ - 1]; }

  void begin_field() {
    if (++count_ > fields_.size()) fields_.emplace_back();
    field().text.clear();
    field().quoted = false;
  }

  // Reads one record that is no blank line into the first count_ of fields_. False at the end.
  Result<bool> read_record() {
    for (;;) {
      const auto more = read_line();
      if (!more || !*more) return more;
      if (count_ > 1 || !field().text.empty() || field().quoted) return true;
    }
  }

  Result<bool> read_line() {
    line_ = text_.line();
    count_ = 0;
    begin_field();
    State state = State::kFieldBegins;
    bool begun = false;
    for (std::size_t bytes = 0;;) {  // of the pieces that this record fills whole
      const auto held = text_.held();
      if (!held) return held.error();
      if (held->empty()) {
        if (state == State::kQuoted)
          return fault("a field begins with a double quote that no other one closes",
                       "a quote within such a field is written twice");
        return begun;
      }
      begun = true;
      for (std::size_t i = 0; i < held->size(); ++i) {
        i += take_run(held->substr(i), state);
        if (i == held->size()) break;
        const char c = (*held)[i];
        if (c == '\n' && state != State::kQuoted) {
          text_.pass(i + 1);
          return true;
        }
        if (auto took = take(c, state); !took) return took.error();
      }
      text_.pass(held->size());
      bytes += held->size();
      if (bytes > record_bytes_max_)
        return fault("the record has more than " + std::to_string(record_bytes_max_) + " bytes",
                     "is a double quote missing its partner?");
    }
  }

  // Takes characters that belong to the field whatever follows; returns how many.
  std::size_t take_run(std::string_view text, State& state) {
    std::size_t run = 0;
    if (state == State::kQuoted) {
      run = run_before(text, '"');
    } else if (state == State::kPlain || state == State::kFieldBegins) {
      run = run_before(text, separator_, '"', '\r', '\n');
      if (run > 0) state = State::kPlain;
    }
    field().text += text.substr(0, run);
    return run;
  }

  // Any character but the line feed that ends the record.
  Result<void> take(char c, State& state) {
    if (state == State::kCarriageReturn)
      return fault("a carriage return without a line feed", "end lines with LF or CR LF");
    if (state == State::kQuoted) {
      if (c == '"')
        state = State::kQuoteSeen;
      else
        field().text += c;
      return {};
    }
    if (c == separator_) {
      if (count_ == kColumnsMax)
        return fault("the record has more than " + std::to_string(kColumnsMax) + " fields", "");
      begin_field();
      state = State::kFieldBegins;
    } else if (c == '"' && state == State::kFieldBegins) {
      field().quoted = true;
      state = State::kQuoted;
    } else if (c == '"' && state == State::kQuoteSeen) {
      field().text += c;
      state = State::kQuoted;
    } else if (c == '\r') {
      state = State::kCarriageReturn;
    } else if (state == State::kQuoteSeen) {
      return fault("there is text behind the double quote that closes a field",
                   "a quote within such a field is written twice");
    } else {
      field().text += c;
      state = State::kPlain;
    }
    return {};
  }

  Result<void> check_text(std::string_view text) const {
    if (is_utf8(text)) return {};
    return fault("the text is not UTF-8",
                 "convert it, as in `iconv -f LATIN1 -t UTF-8 FILE > UTF8_FILE`");
  }

  // Makes keys_ of the fields of the first record.
  Result<void> name_columns() {
    std::set<std::string> names;
    for (std::size_t i = 0; i < count_; ++i) {
      Field& name = fields_[i];
      if (auto checked = check_text(name.text); !checked) return checked;
      if (name.text.empty()) name.text = "Unnamed: " + std::to_string(i);
      if (!names.insert(name.text).second)
        return fault("two columns have the name `" + name.text + "`", "rename one of them");
      append_json(keys_.emplace_back(), name.text);
    }
    return {};
  }

  Result<std::optional<std::string_view>> write_json() {
    json_ = "{";
    for (std::size_t i = 0; i < count_; ++i) {
      if (i > 0) json_ += ',';
      (json_ += keys_[i]) += ':';
      if (fields_[i].text.empty() && !fields_[i].quoted)
        json_ += "null";
      else
        append_json(json_, fields_[i].text);
    }
    json_ += '}';
    if (auto checked = check_text(json_); !checked) return checked.error();
    if (json_.size() > record_bytes_max_)
      return fault("the record has more than " + std::to_string(record_bytes_max_) + " bytes",
                   "is a double quote missing its partner?");
    return std::optional<std::string_view>(json_);
  }

  TextCursor text_;
  const std::filesystem::path path_;
  const std::size_t record_bytes_max_;
  const char separator_;
  std::vector<std::string> keys_;  // the names of the columns, as JSON
  std::vector<Field> fields_;      // of the present record: the first count_
  std::size_t count_ = 0;
  std::uint64_t line_ = 1;  // at which the present record begins
  std::string json_;
  mutable std::string place_;
};

}  // namespace

std::unique_ptr<RecordSource> delimited(TextFile file, char separator) {
  return std::make_unique<Delimited>(std::move(file), separator);
}

}  // namespace tandem::data
