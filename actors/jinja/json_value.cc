#include "actors/jinja/json_value.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"

namespace tandem::jinja {
namespace {

Error not_json(std::string message) {
  return {.code = ErrorCode::kInvalid, .message = std::move(message)};
}

// Takes the parser's events, and builds the value that is open.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Without names the whole value is built, else the members of those names of an object.
  explicit Builder(std::optional<std::span<const std::string_view>> names = {}) : names_(names) {}

  bool null() override { return add(Value()); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    const auto number = static_cast<std::int64_t>(value);
    return number < 0 ? refuse_integer() : add(number);
  }
  bool number_float(number_float_t value, const string_t& text) override {
    // The parser reads an integer with more than 64 bits as a float.
    return text.find_first_of(".eE") == text.npos ? refuse_integer() : add(double{value});
  }
  bool string(string_t& text) override { return add(Value(std::move(text))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    if (passed_over_ == 0) open_.back().key = std::move(key);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

  Value take() { return std::move(whole_); }
  bool integer_refused() const { return integer_refused_; }

 private:
  struct Open {
    bool object = false;
    std::string key = {};  // of the member that is read next
    Dict dict = {};
    Values items = {};
  };

  // Whether the next value belongs to a member that is not built.
  bool passes_over() const {
    return passed_over_ > 0 || (names_ && open_.size() == 1 && open_[0].object &&
                                std::ranges::count(*names_, open_[0].key) == 0);
  }
  bool refuse_integer() {
    if (passes_over()) return true;
    integer_refused_ = true;
    return false;
  }
  bool open(bool object) {
    if (passes_over()) return ++passed_over_ <= kNestingMax;
    open_.push_back(Open{.object = object});
    return open_.size() <= kNestingMax;
  }
  bool close() {
    if (passed_over_ > 0) {
      --passed_over_;
      return true;
    }
    Open closed = std::move(open_.back());
    open_.pop_back();
    return add(closed.object ? make_dict(std::move(closed.dict))
                             : make_list(std::move(closed.items)));
  }
  bool add(Value value) {
    if (passes_over()) return true;
    if (open_.empty())
      whole_ = std::move(value);
    else if (open_.back().object)
      open_.back().dict.set(std::exchange(open_.back().key, {}), std::move(value));
    else
      open_.back().items.push_back(std::move(value));
    return true;
  }

  const std::optional<std::span<const std::string_view>> names_;
  std::vector<Open> open_;
  std::size_t passed_over_ = 0;  // lists and objects that are open within a member not built
  Value whole_;
  bool integer_refused_ = false;
};

}  // namespace

Value make_list(Values items) {
  const Extent extent = extent_of(std::span<const Value>(items));
  return std::make_shared<const Sequence>(Sequence{std::move(items), false, extent});
}

Value make_dict(Dict dict) { return std::make_shared<const Dict>(std::move(dict)); }

Value value_of(const nlohmann::json& json) {
  using Kind = nlohmann::json::value_t;
  switch (json.type()) {
    case Kind::boolean:
      return json.get<bool>();
    case Kind::number_integer:
      return std::int64_t{json.get<std::int64_t>()};
    case Kind::number_unsigned:
      if (const auto number = static_cast<std::int64_t>(json.get<std::uint64_t>()); number >= 0)
        return number;
      return json.get<double>();
    case Kind::number_float:
      return json.get<double>();
    case Kind::string:
      return Value(json.get_ref<const std::string&>());
    case Kind::array: {
      Values items;
      for (const nlohmann::json& item : json) items.push_back(value_of(item));
      return make_list(std::move(items));
    }
    case Kind::object: {
      Dict dict;
      for (const auto& member : json.items()) dict.set(member.key(), value_of(member.value()));
      return make_dict(std::move(dict));
    }
    case Kind::null:
    case Kind::binary:
    case Kind::discarded:
      break;
  }
  return {};
}

namespace {

Result<Value> parse_by(std::string_view text, Builder builder) {
  if (const auto over = json_over_limit(text)) return not_json("the JSON is " + *over);
  if (nlohmann::json::sax_parse(text, &builder)) return builder.take();
  return not_json(builder.integer_refused() ? "an integer of the JSON has more than 64 bits"
                                            : "this is not JSON");
}

}  // namespace

Result<Value> parse_json_value(std::string_view text) { return parse_by(text, Builder()); }

Result<Value> parse_json_members(std::string_view text, std::span<const std::string_view> names) {
  return parse_by(text, Builder(names));
}

}  // namespace tandem::jinja
