#include "runtime/base/json.h"

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

// Takes the parser's events. depth_ counts the lists and objects that are open: the members that
// are looked for are the values right inside the first of them.
class FieldScan final : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Type = JsonField::Type;
  explicit FieldScan(std::span<JsonField> fields) : fields_(fields) {}

  Type type() const { return type_; }

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
    if (depth_ == 1) key_ = key;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool found(Type type, std::string_view text = {}) {
    if (depth_ == 0) type_ = type;
    if (depth_ != 1 || type_ != Type::object) return true;
    for (JsonField& field : fields_) {
      if (field.key != key_) continue;
      field.type = type;
      field.text = text;
    }
    return true;
  }
  bool ended() {
    --depth_;
    return true;
  }

  const std::span<JsonField> fields_;
  Type type_ = Type::discarded;  // the type of the whole text
  std::size_t depth_ = 0;
  std::string key_;  // the key of the member that is being read
};

}  // namespace

JsonField::Type scan_object(std::string_view text, std::span<JsonField> fields) {
  for (JsonField& field : fields) {
    field.type = JsonField::Type::discarded;
    field.text.clear();
  }
  if (text.size() > kJsonBytesMax) return JsonField::Type::discarded;
  FieldScan scan(fields);
  return nlohmann::json::sax_parse(text, &scan) ? scan.type() : JsonField::Type::discarded;
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
