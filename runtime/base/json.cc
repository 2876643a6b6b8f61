#include "runtime/base/json.h"

#include <cstdint>
#include <utility>
#include <vector>

// The instantiation that json.h declares extern.
template class nlohmann::basic_json<>;

namespace tandem {
namespace {

// Counts the open brackets outside strings, without recursion. Exact for valid JSON. Text that is
// not JSON may be taken for too deep; the parser would refuse such text anyway.
bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      i += c == '\\' ? 1 : 0;  // skips the character behind it, which may be a quote
    else if (c == '[' || c == '{')
      ++depth;
    else if ((c == ']' || c == '}') && depth > 0)
      --depth;
    if (depth > kNestingMax) return true;
  }
  return false;
}

// Takes the parser's events. depth_ counts the lists and objects that are open: a field whose key
// is a plain name is a value right inside the first of them.
//
// A key with dots is followed from object to object. A second candidate within one of them, such as
// a member `a` beside a member `a.b`, makes the scan ambiguous: which one counts may depend on
// members that come later, and the caller then parses the whole text, which is rarely needed.
class FieldScan final : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Type = JsonField::Type;
  explicit FieldScan(std::span<JsonField> fields) : fields_(fields) {
    for (JsonField& field : fields)
      if (field.key.find('.') != field.key.npos) paths_.push_back({&field, field.key});
  }

  Type type() const { return type_; }
  bool ambiguous() const { return ambiguous_; }

  bool null() override { return found(Type::null); }
  bool boolean(bool) override { return found(Type::boolean); }
  bool number_integer(number_integer_t) override { return found(Type::number_integer); }
  bool number_unsigned(number_unsigned_t) override { return found(Type::number_unsigned); }
  bool number_float(number_float_t, const string_t&) override { return found(Type::number_float); }
  bool string(string_t& text) override { return found(Type::string, text); }
  bool binary(binary_t&) override { return found(Type::binary); }
  bool start_object(std::size_t) override { return found(Type::object) && ++depth_ <= kNestingMax; }
  bool start_array(std::size_t) override { return found(Type::array) && ++depth_ <= kNestingMax; }
  bool end_object() override { return ended(); }
  bool end_array() override { return ended(); }
  bool key(string_t& key) override {
    if (depth_ == 1 || !paths_.empty()) key_ = key;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  // A field whose key has dots.
  struct Path {
    JsonField* field;
    std::string_view rest;         // of the key, within the innermost object that was entered
    std::size_t entered = 0;       // objects on the way, without the outermost one
    std::uint64_t candidates = 0;  // bit N: an object entered as the Nth had a candidate
  };

  bool found(Type type, std::string_view text = {}) {
    if (depth_ == 0) type_ = type;
    if (depth_ == 0 || type_ != Type::object) return true;
    if (depth_ == 1)
      for (JsonField& field : fields_)
        if (field.key == key_) take(field, type, text);
    for (Path& path : paths_)
      if (depth_ == path.entered + 1) follow(path, type, text);
    return true;
  }
  static void take(JsonField& field, Type type, std::string_view text) {
    field.type = type;
    field.text = text;
  }
  // `key_` is the name of a member of the innermost object that `path` has entered.
  void follow(Path& path, Type type, std::string_view text) {
    const std::size_t dot = path.rest.find('.');
    const bool is_value = path.rest == key_;
    if (!is_value && (dot == path.rest.npos || path.rest.substr(0, dot) != key_)) return;
    const std::uint64_t level = std::uint64_t{1} << path.entered;
    ambiguous_ = ambiguous_ || (path.candidates & level) != 0;
    path.candidates |= level;
    if (is_value) return take(*path.field, type, text);
    if (type != Type::object || path.entered + 1 >= kNestingMax) return;
    path.rest.remove_prefix(dot + 1);
    ++path.entered;
  }
  bool ended() {
    --depth_;
    for (Path& path : paths_)
      if (depth_ == path.entered && path.entered > 0) leave(path);
    return true;
  }
  // Takes the part of the key back that led into the object which has ended.
  static void leave(Path& path) {
    --path.entered;
    const std::string_view key = path.field->key;
    const std::size_t rest_at = key.size() - path.rest.size();
    const std::size_t dot = rest_at < 2 ? key.npos : key.rfind('.', rest_at - 2);
    path.rest = key.substr(dot == key.npos ? 0 : dot + 1);
  }

  const std::span<JsonField> fields_;
  std::vector<Path> paths_;
  Type type_ = Type::discarded;  // the type of the whole text
  std::size_t depth_ = 0;
  std::string key_;  // the key of the member that is being read
  bool ambiguous_ = false;
};

}  // namespace

JsonField::Type scan_object(std::string_view text, std::span<JsonField> fields) {
  for (JsonField& field : fields) {
    field.type = JsonField::Type::discarded;
    field.text.clear();
  }
  if (text.size() > kJsonBytesMax) return JsonField::Type::discarded;
  FieldScan scan(fields);
  if (!nlohmann::json::sax_parse(text, &scan)) return JsonField::Type::discarded;
  if (!scan.ambiguous()) return scan.type();
  const nlohmann::json value = parse_json(text);
  for (JsonField& field : fields) {
    const nlohmann::json* const at = find_path(value, field.key);
    field.type = at ? at->type() : JsonField::Type::discarded;
    field.text = at && at->is_string() ? at->get_ref<const std::string&>() : std::string();
  }
  return value.type();
}

const nlohmann::json* find_path(const nlohmann::json& object, std::string_view path) {
  if (!object.is_object()) return nullptr;
  const auto whole = object.find(path);
  const nlohmann::json* const member = whole == object.end() ? nullptr : &*whole;
  if (member && !member->is_null()) return member;
  const std::size_t dot = path.find('.');
  const auto outer = dot == path.npos ? object.end() : object.find(path.substr(0, dot));
  const nlohmann::json* const inner =
      outer == object.end() ? nullptr : find_path(*outer, path.substr(dot + 1));
  return inner ? inner : member;
}

void set_path(nlohmann::json& object, std::string_view path, nlohmann::json value) {
  if (const nlohmann::json* const found = find_path(object, path))
    const_cast<nlohmann::json&>(*found) = std::move(value);
  else
    object[std::string(path)] = std::move(value);
}

nlohmann::json parse_json(std::string_view text) {
  if (json_over_limit(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::optional<std::string> json_over_limit(std::string_view text) {
  if (text.size() > kJsonBytesMax) return "longer than " + std::to_string(kJsonBytesMax) + " bytes";
  if (too_deep(text)) return "nested more than " + std::to_string(kNestingMax) + " deep";
  return std::nullopt;
}

std::string dump_json(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tandem
