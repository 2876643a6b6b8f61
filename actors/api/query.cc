#include "actors/api/query.h"

#include <algorithm>
#include <charconv>

namespace tandem::api {

std::string query_text(const http::HttpRequest& request, const QueryParameter& what) {
  const auto it = request.query.find(what.name);
  return it == request.query.end() ? "" : it->second;
}

bool query_flag(const http::HttpRequest& request, const QueryParameter& what) {
  const std::string value = query_text(request, what);
  return request.query.contains(what.name) && value != "0" && value != "false";
}

Result<std::vector<std::string>> query_words(const http::HttpRequest& request,
                                             const QueryParameter& what) {
  const std::string list = query_text(request, what);
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) words.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  if (words.size() <= what.words_max) return words;
  return Error{ErrorCode::kInvalid,
               std::string(what.name) + "= names more than " + std::to_string(what.words_max)};
}

Result<std::optional<std::int64_t>> query_number(const http::HttpRequest& request,
                                                 const QueryParameter& what) {
  const std::string text = query_text(request, what);
  if (text.empty()) return what.usual;
  const auto [least, most] = what.bounds;
  std::int64_t value = 0;
  // The whole text must be the number: "5x" and "5.0" are none.
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc{} && stop == text.data() + text.size();
  if (whole && value >= least && value <= most) return std::optional(value);
  return Error{ErrorCode::kInvalid, std::string(what.name) + "=" + text +
                                        " is no whole number from " + std::to_string(least) +
                                        " to " + std::to_string(most)};
}

}  // namespace tandem::api
