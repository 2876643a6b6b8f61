#include "actors/jinja/printing.h"

#include <algorithm>
#include <cmath>

#include "actors/jinja/python_text.h"

namespace tandem::jinja {
namespace {

void append_repr(Run& run, const Value& value, std::string& out);

// Counts one value, and the bytes that it added to `out` since that had `before` bytes; those of a
// list or dict are counted by its items.
void count(Run& run, const Value& value, const std::string& out, std::size_t before) {
  run.step();
  if (extent_of(value).nesting == 0) run.charge(out.size() - before);
}

void append_items(Run& run, const Values& items, std::string& out) {
  for (std::size_t i = 0; i < items.size() && run.ok(); ++i) {
    if (i > 0) out += ", ";
    append_repr(run, items[i], out);
  }
}

void append_sequence(Run& run, const Sequence& sequence, std::string& out) {
  out += sequence.tuple ? '(' : '[';
  append_items(run, sequence.items, out);
  if (sequence.tuple && sequence.items.size() == 1) out += ',';
  out += sequence.tuple ? ')' : ']';
}

void append_dict(Run& run, const Dict& dict, std::string& out) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.items()) {
    if (!run.ok()) return;
    if (!first) out += ", ";
    first = false;
    append_repr(run, key, out);
    out += ": ";
    append_repr(run, value, out);
  }
  out += '}';
}

void append_view(Run& run, const View& view, std::string& out) {
  Values items;
  for (const auto& [key, value] : view.dict->items()) {
    if (view.part == View::Part::kItems)
      items.push_back(run.tuple({key, value}));
    else
      items.push_back(view.part == View::Part::kKeys ? key : value);
  }
  out += view.part == View::Part::kKeys     ? "dict_keys(["
         : view.part == View::Part::kValues ? "dict_values(["
                                            : "dict_items([";
  append_items(run, items, out);
  out += "])";
}

void append_repr(Run& run, const Value& value, std::string& out) {
  const std::size_t before = out.size();
  switch (value.type()) {
    case Type::kUndefined:
      out += "Undefined";
      break;
    case Type::kNone:
      out += "None";
      break;
    case Type::kBool:
      out += value.as_bool() ? "True" : "False";
      break;
    case Type::kInt:
      out += std::to_string(value.as_int());
      break;
    case Type::kFloat:
      out += float_text(value.as_float());
      break;
    case Type::kString:
      out += python_repr(value.text());
      break;
    case Type::kSequence:
      append_sequence(run, value.as_sequence(), out);
      break;
    case Type::kDict:
      append_dict(run, value.as_dict(), out);
      break;
    case Type::kRange: {
      const Range& range = value.as_range();
      out += "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop);
      out += range.step == 1 ? ")" : ", " + std::to_string(range.step) + ")";
      break;
    }
    case Type::kView:
      append_view(run, value.as_view(), out);
      break;
    case Type::kIterator:
    case Type::kNamespace:
    case Type::kLoop:
    case Type::kMacro:
    case Type::kCallable:
      // Python would print an address in memory here, which no template can mean.
      run.fail(std::string("a value of the type '") + type_name(value) + "' cannot be printed");
      return;
  }
  count(run, value, out, before);
}

void append_json_escape(std::string& out, char32_t unit) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[(unit >> shift) & 15];
}

void append_json_text(std::string_view text, bool ensure_ascii, std::string& out) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const char32_t code = next_code_point(text, at);
    constexpr std::string_view kNamed = "\"\\\n\r\t\f\b", kNames = "\"\\nrtfb";
    const std::size_t named =
        code < 0x80 ? kNamed.find(static_cast<char>(code)) : std::string_view::npos;
    if (named != kNamed.npos)
      out.append(1, '\\').append(1, kNames[named]);
    else if (code < 0x20 || (ensure_ascii && code > 0x7e && code < 0x10000))
      append_json_escape(out, code);
    else if (ensure_ascii && code > 0x7e) {
      append_json_escape(out, 0xd800 + ((code - 0x10000) >> 10));
      append_json_escape(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
    } else
      out += text.substr(here, at - here);
  }
  out += '"';
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_text(value);
}

class JsonWriter {
 public:
  JsonWriter(Run& run, const JsonStyle& style, std::string& out)
      : run_(run), style_(style), out_(out) {}

  void write(const Value& value) {
    const std::size_t before = out_.size();
    switch (value.type()) {
      case Type::kNone:
        out_ += "null";
        break;
      case Type::kBool:
        out_ += value.as_bool() ? "true" : "false";
        break;
      case Type::kInt:
        out_ += std::to_string(value.as_int());
        break;
      case Type::kFloat:
        out_ += json_float(value.as_float());
        break;
      case Type::kString:
        append_json_text(value.text(), style_.ensure_ascii, out_);
        break;
      case Type::kSequence:
        write_sequence(value.as_sequence());
        break;
      case Type::kDict:
        write_dict(value.as_dict());
        break;
      default:
        run_.fail(std::string("Object of type ") + type_name(value) + " is not JSON serializable");
        return;
    }
    count(run_, value, out_, before);
  }

 private:
  void line_break() {
    if (!style_.indent || !run_.charge(level_ * style_.indent->size())) return;
    out_ += '\n';
    for (std::size_t i = 0; i < level_; ++i) out_ += *style_.indent;
  }

  // Writes what stands between two items, or before the first one.
  void next(bool& first) {
    if (!first) out_ += style_.between_items;
    first = false;
    line_break();
  }

  void write_sequence(const Sequence& sequence) {
    if (sequence.items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    ++level_;
    bool first = true;
    for (const Value& item : sequence.items) {
      if (!run_.ok()) return;
      next(first);
      write(item);
    }
    --level_;
    line_break();
    out_ += ']';
  }

  void write_key(const Value& key) {
    if (key.is_string()) return append_json_text(key.text(), style_.ensure_ascii, out_);
    if (!key.is_none() && !key.is_number()) {
      run_.fail(std::string("keys must be str, int, float, bool or None, not ") + type_name(key));
      return;
    }
    out_ += '"';
    write(key);
    out_ += '"';
  }

  void write_dict(const Dict& dict) {
    if (dict.size() == 0) {
      out_ += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> pairs;
    for (const auto& pair : dict.items()) pairs.push_back(&pair);
    if (style_.sort_keys) sort(pairs);
    out_ += '{';
    ++level_;
    bool first = true;
    for (const auto* pair : pairs) {
      if (!run_.ok()) return;
      next(first);
      write_key(pair->first);
      out_ += style_.after_key;
      write(pair->second);
    }
    --level_;
    line_break();
    out_ += '}';
  }

  void sort(std::vector<const std::pair<Value, Value>*>& pairs) {
    run_.step(pairs.size());
    for (const auto* pair : pairs)
      if (!compare(pair->first, pairs.front()->first)) {
        run_.fail(std::string("'<' not supported between instances of '") + type_name(pair->first) +
                  "' and '" + type_name(pairs.front()->first) + "'");
        return;
      }
    std::ranges::stable_sort(pairs, [](const auto* left, const auto* right) {
      return compare(left->first, right->first) == Order::kLess;
    });
  }

  Run& run_;
  const JsonStyle& style_;
  std::string& out_;
  std::size_t level_ = 0;
};

}  // namespace

std::string text_of(Run& run, const Value& value) {
  if (value.is_string()) return value.text();
  if (value.is_undefined()) return {};
  return repr_of(run, value);
}

std::string repr_of(Run& run, const Value& value) {
  std::string out;
  append_repr(run, value, out);
  return out;
}

std::string json_of(Run& run, const Value& value, const JsonStyle& style) {
  std::string out;
  JsonWriter(run, style, out).write(value);
  return out;
}

}  // namespace tandem::jinja
