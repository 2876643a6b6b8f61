#include "actors/model/json_file.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/file.h"

namespace tandem::model {
namespace {

// Goes through a document without building values, and finds the place of a syntax error or a key
// that occurs twice. A second pass then parses a document that is known to be right.
class JsonJudge : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    problem = "key '" + key + "' occurs twice in one object";
    return false;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    offset = position;
    problem = exception.what();
    // The library's text begins with an identifier in brackets, which says nothing to a user.
    if (const auto end = problem.find("] "); end != std::string::npos) problem.erase(0, end + 2);
    return false;
  }

  std::string problem;
  std::size_t offset = 0;  // in bytes, from 1; 0 where the place is not known

 private:
  std::vector<std::set<std::string>> keys_;  // per open object, outermost first
};

// "FILE:LINE:COLUMN", both from 1.
std::string place(const std::string& file, std::string_view text, std::size_t offset) {
  if (offset == 0) return file;
  const std::string_view before = text.substr(0, std::min(offset - 1, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto start = before.rfind('\n');
  const std::size_t column = before.size() - (start == before.npos ? 0 : start + 1) + 1;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, const std::string& file) {
  if (const auto over = json_over_limit(text))
    return Error{.message = "the JSON is " + *over, .where = file};
  JsonJudge judge;
  if (!nlohmann::json::sax_parse(text, &judge))
    return Error{.message = "not valid JSON: " + judge.problem,
                 .where = place(file, text, judge.offset)};
  return tandem::parse_json(text);
}

Result<nlohmann::json> read_json(const std::filesystem::path& file, std::uint64_t bytes_max) {
  Result<std::string> text = read_file(file, bytes_max);
  if (!text) return text.error();
  return parse_json(*text, file.string());
}

}  // namespace tandem::model
