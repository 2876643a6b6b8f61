// Reads the JSON of a server's answer, every field checked for its type. The first fault is kept,
// and reading goes on with empty values: a dialect reads straight on, and whoever asked gets the
// fault.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::rollout {

// An object of the answer. One thread; it borrows the document.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& object, std::string path, std::optional<std::string>& fault)
      : object_(object), path_(std::move(path)), fault_(fault) {}

  std::string text(const char* field);
  std::int64_t integer(const char* field);
  std::int64_t integer_or(const char* field, std::int64_t otherwise);  // where there is none
  bool flag(const char* field);                                        // false where there is none
  std::int32_t count(const char* field);                               // 0 or more
  double number(const char* field);                                    // finite
  std::vector<std::int32_t> integers(const char* field);
  // `read` gets the object of this name.
  void object(const std::string& field, const std::function<void(JsonReader&)>& read);
  // `read` gets each entry of the list of this name, null entries as empty objects.
  void each(const char* field, const std::function<void(JsonReader&)>& read);
  // `read` gets the number and the integer with which each entry of the list of this name begins:
  // [-0.5, 17, …]. A number that is null is NaN.
  void each_pair(const char* field, const std::function<void(double, std::int64_t)>& read);
  void wrong(const std::string& field, const std::string& why);

 private:
  const nlohmann::json& at(const std::string& field) const;  // null where there is none

  const nlohmann::json& object_;
  const std::string path_;  // of this object: "choices[0]."
  std::optional<std::string>& fault_;
};

// The error of an answer that is not as `fault` demands, with the answer's beginning.
Error garbage(const std::string& body, const std::string& fault);

// `list`: the name under which `read` finds an answer that is a list; null: it has to be an object.
template <class T, class Read>
Result<T> read_server_json(const std::string& body, const Read& read, const char* list = nullptr) {
  nlohmann::json document = parse_json(body);
  if (list != nullptr && document.is_array())
    document = nlohmann::json::object({{list, std::move(document)}});
  if (!document.is_object()) return garbage(body, "it is not a JSON object");
  std::optional<std::string> fault;
  JsonReader root(document, "", fault);
  T value = read(root);
  if (fault) return garbage(body, *fault);
  return value;
}

}  // namespace tandem::rollout
