// Requests and responses as values: a target is split into a path and a query, with %-escapes
// undone, and an Error becomes a status with a JSON body, and back. Bytes that are no UTF-8 are
// replaced here, so that names are safe in messages and logs.
#include "runtime/http/http.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::http {
namespace {

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return 400;
    case ErrorCode::kFailed:
    case ErrorCode::kOutOfMemory:
      return 500;
    case ErrorCode::kInfeasible:
      return 409;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kUnauthorised:
      return 401;
    case ErrorCode::kTimedOut:
      return 504;
    case ErrorCode::kUnreachable:
      return 503;
  }
  return 500;
}

// Undoes %-escapes. The result is valid UTF-8, whatever bytes the escapes stand for, because names
// become messages, events and log lines. Nothing: an escape is broken.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned char byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* const end = text.data() + i + 3;
    // Both digits must be hexadecimal; from_chars stops at the first that is not.
    if (std::from_chars(text.data() + i + 1, end, byte, 16).ptr != end) return std::nullopt;
    plain += static_cast<char>(byte);
    i += 2;
  }
  return valid_utf8(plain);
}

// Calls `part` for each piece between separators, empty ones included. False as soon as `part` is.
template <class Part>
bool each_part(std::string_view text, char separator, Part part) {
  while (true) {
    const std::size_t end = text.find(separator);
    if (!part(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

// The fields that each error has in JSON. `where` is left out where it is empty.
template <class OneError>
nlohmann::json told(const OneError& error) {
  nlohmann::json body = {{"message", error.message}, {"help", error.help}};
  if (!error.where.empty()) body["where"] = error.where;
  return body;
}

// The way back: a field that is absent or no text is empty.
std::string text_of(const nlohmann::json& object, const char* key) {
  const auto field = object.find(key);
  return field != object.end() && field->is_string() ? field->get<std::string>() : std::string();
}

FurtherError heard(const nlohmann::json& said) {
  return {text_of(said, "message"), text_of(said, "where"), text_of(said, "help")};
}

// An entry of another form, or one too many, is counted as left out.
void read_further(const nlohmann::json& said, Error& error) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t left_out = 0;
  if (const auto list = said.find("errors"); list != said.end() && list->is_array()) {
    for (const auto& one : *list) {
      FurtherError further = one.is_object() ? heard(one) : FurtherError();
      if (further.message.empty() || error.further.size() + 1 >= kErrorsToldMax)
        ++left_out;
      else
        error.further.push_back(std::move(further));
    }
  }
  if (const auto more = said.find("errors_left_out");
      more != said.end() && more->is_number_unsigned())
    left_out += std::min(more->get<std::uint64_t>(), kMost);
  error.further_left_out = static_cast<std::uint32_t>(std::min(left_out, kMost));
}

}  // namespace

std::string HttpRequest::header(const std::string& name) const {
  const auto it = headers.find(name);
  return it == headers.end() ? "" : it->second;
}

Result<void> split_target(std::string_view target, HttpRequest& request) {
  request.target = valid_utf8(target);
  const std::size_t mark = target.find('?');
  const std::string_view path = target.substr(0, mark);
  const bool path_good = path.starts_with('/') && each_part(path, '/', [&](std::string_view part) {
                           auto segment = percent_decoded(part);
                           if (segment && !segment->empty())
                             request.segments.push_back(std::move(*segment));
                           return segment.has_value();
                         });
  const std::string_view query =
      mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  const bool query_good = each_part(query, '&', [&](std::string_view part) {
    if (part.empty()) return true;
    const std::size_t equals = part.find('=');
    auto key = percent_decoded(part.substr(0, equals));
    auto value = percent_decoded(equals == std::string_view::npos ? "" : part.substr(equals + 1));
    if (!key || !value) return false;
    request.query.insert_or_assign(std::move(*key), std::move(*value));
    return true;
  });
  if (path_good && query_good) return {};
  return Error{ErrorCode::kInvalid, "'" + request.target + "' is not a path and query"};
}

HttpResponse error_response(const Error& error) {
  return error_response(status_of(error.code), error);
}

HttpResponse error_response(int status, const Error& error) {
  nlohmann::json body = told(error);
  body["code"] = name(error.code);
  for (const FurtherError& further : error.further) body["errors"].push_back(told(further));
  if (error.further_left_out > 0) body["errors_left_out"] = error.further_left_out;
  return {.status = status, .body = dump_json(nlohmann::json{{"error", std::move(body)}}) + "\n"};
}

Error error_of(const HttpResponse& response) {
  const auto body = parse_json(response.body);
  Error error{ErrorCode::kFailed,
              "the server answered with status " + std::to_string(response.status)};
  // Where two codes have one status, the last one wins; the body's own code, below, is exact.
  for (const ErrorCode code : kErrorCodes) {
    if (status_of(code) == response.status) error.code = code;
  }
  if (!body.is_object() || !body.contains("error") || !body["error"].is_object()) return error;
  const auto& said = body["error"];
  const std::string code_said = text_of(said, "code");
  for (const ErrorCode code : kErrorCodes) {
    if (code_said == name(code)) error.code = code;
  }
  FurtherError first = heard(said);
  if (!first.message.empty()) error.message = std::move(first.message);
  error.where = std::move(first.where);
  error.help = std::move(first.help);
  read_further(said, error);
  return error;
}

}  // namespace tandem::http
