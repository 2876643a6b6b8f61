// Both directions by msgpack-cxx, held so that bytes of a peer cannot make the library allocate,
// throw or recurse.
//
// The reader calls the library's parse() once for each value, with a visitor (WireReader::Value)
// that takes one value and refuses to be led into a container. So codec.h, which knows the type
// that it wants next, walks through the message, and checks counts, depth and memory before it
// allocates. The library's own unpack() makes a tree of all values first: 64 KiB of nested heads,
// each of which claims as many elements as the limits allow, take 126 MiB before anything is
// checked.
#include "runtime/wire/bytes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>
#include <variant>

// parse() reserves memory for so many nested containers at every call. Here it enters none.
#define MSGPACK_EMBED_STACK_SIZE 0
#include <msgpack.hpp>

#include "runtime/base/check.h"

namespace tandem::wire {
namespace {

// The library's packer writes to any object with such a write().
struct Appender {
  std::string& out;
  void write(const char* bytes, std::size_t size) { out.append(bytes, size); }
};

struct Packer : private Appender, msgpack::packer<Appender> {
  explicit Packer(std::string& bytes)
      : Appender{bytes}, msgpack::packer<Appender>(static_cast<Appender&>(*this)) {}
};

std::uint32_t length(std::size_t size) {
  CHECK(size <= std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(size);
}

// Kinds of values that differ on the wire although C++ has one type for them.
struct Nil {};
struct Text : std::string_view {};
struct Bin : std::string_view {};
enum class Array : std::uint32_t {};  // its elements follow
enum class Map : std::uint32_t {};    // its pairs follow

}  // namespace

std::string_view field_name(const char* names, std::size_t index) {
  std::string_view rest = names;
  for (; index > 0; --index) rest.remove_prefix(rest.find(',') + 1);
  rest = rest.substr(0, rest.find(','));
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

void WireWriter::nil() { Packer(out_).pack_nil(); }
void WireWriter::boolean(bool value) {
  value ? Packer(out_).pack_true() : Packer(out_).pack_false();
}
void WireWriter::integer(std::int64_t value) { Packer(out_).pack_int64(value); }
void WireWriter::unsigned_integer(std::uint64_t value) { Packer(out_).pack_uint64(value); }

// pack_float is not used: it writes every whole number as an integer, so that -0 loses its sign.
// The bits are written as an integer of the same width, and the tag is replaced by that of a float.
void WireWriter::float32(float value) {
  Packer(out_).pack_fix_uint32(std::bit_cast<std::uint32_t>(value));
  out_[out_.size() - 1 - sizeof(value)] = '\xca';
}

void WireWriter::float64(double value) {
  Packer(out_).pack_fix_uint64(std::bit_cast<std::uint64_t>(value));
  out_[out_.size() - 1 - sizeof(value)] = '\xcb';
}

void WireWriter::text(std::string_view value) {
  Packer(out_).pack_str(length(value.size())).pack_str_body(value.data(), length(value.size()));
}

void WireWriter::bin(const void* data, std::size_t bytes) {
  Packer(out_).pack_bin(length(bytes)).pack_bin_body(static_cast<const char*>(data), length(bytes));
}

void WireWriter::array(std::size_t elements) { Packer(out_).pack_array(length(elements)); }
void WireWriter::map(std::size_t pairs) { Packer(out_).pack_map(length(pairs)); }

// A visitor that holds the one value that parse() comes upon. It sees only the head of a container:
// start_array and start_map return false, which ends the parse.
struct WireReader::Value : msgpack::null_visitor {
  std::variant<std::monostate, Nil, bool, std::uint64_t, std::int64_t, float, double, Text, Bin,
               Array, Map>
      is;
  bool cut = false;  // the bytes end within the value

  bool visit_nil() { return seen(Nil{}); }
  bool visit_boolean(bool value) { return seen(value); }
  bool visit_positive_integer(std::uint64_t value) { return seen(value); }
  // The library also calls this for positive integers that the sender wrote in a signed form.
  bool visit_negative_integer(std::int64_t value) {
    return value < 0 ? seen(value) : seen(static_cast<std::uint64_t>(value));
  }
  bool visit_float32(float value) { return seen(value); }
  bool visit_float64(double value) { return seen(value); }
  bool visit_str(const char* at, std::uint32_t bytes) { return seen(Text{{at, bytes}}); }
  bool visit_bin(const char* at, std::uint32_t bytes) { return seen(Bin{{at, bytes}}); }
  bool start_array(std::uint32_t elements) { return !seen(Array{elements}); }
  bool start_map(std::uint32_t pairs) { return !seen(Map{pairs}); }
  void insufficient_bytes(std::size_t, std::size_t) { cut = true; }

 private:
  template <class T>
  bool seen(T value) {
    is = value;
    return true;
  }
};

WireReader::WireReader(std::string_view bytes, WireLimits limits) : bytes_(bytes), limits_(limits) {
  if (bytes.size() > limits.message_bytes_max) {
    fail("a message of " + std::to_string(bytes.size()) + " bytes is over the limit of " +
         std::to_string(limits.message_bytes_max));
  }
}

bool WireReader::fail(std::string what) {
  if (!failed_) {
    failed_ = true;
    failed_at_ = value_at_;
    what_ = std::move(what);
  }
  return false;
}

bool WireReader::failed_in(const char* type, const char* names, std::uint32_t index) {
  // "Inner.field" becomes "Outer.inner.field": the name of the field says enough about its type.
  const std::string inner = path_.empty() ? "" : path_.substr(path_.find('.'));
  path_ = std::string(type) + "." + std::string(field_name(names, index)) + inner;
  return false;
}

Error WireReader::error() const {
  CHECK(failed_);
  return {.code = ErrorCode::kInvalid,
          .message = "cannot decode " + (path_.empty() ? "a message" : path_) + ": " + what_,
          .where = "byte " + std::to_string(failed_at_)};
}

WireReader::Value WireReader::next() {
  Value value;
  if (failed_) return value;
  value_at_ = at_;
  // A container was refused, which leaves at_ on the last byte of its head.
  if (!msgpack::parse(bytes_.data(), bytes_.size(), at_, value)) ++at_;
  if (value.cut) fail("the bytes end early");
  return value;
}

template <class Kind, class T>
bool WireReader::take(T& value, const char* expected) {
  const Value found = next();
  const Kind* taken = std::get_if<Kind>(&found.is);
  if (taken == nullptr) return wrong(expected);
  value = static_cast<T>(*taken);
  return true;
}

bool WireReader::wrong(const char* expected) {
  if (failed_) return false;
  const auto found = static_cast<std::uint8_t>(bytes_[value_at_]);
  return fail(std::string("expected ") + expected + ", found tag " + std::to_string(found));
}

bool WireReader::charge(std::uint64_t bytes) {
  if (bytes > limits_.decoded_bytes_max - charged_)
    return fail("the value would take too much memory");
  charged_ += bytes;
  return true;
}

bool WireReader::finish() {
  value_at_ = at_;
  if (failed_) return false;
  return at_ == bytes_.size() || fail(std::to_string(bytes_.size() - at_) + " bytes are left over");
}

bool WireReader::nil() {
  // Any other value is given back by moving at_; a failure of next() stays recorded.
  const std::size_t here = at_;
  if (std::holds_alternative<Nil>(next().is)) return true;
  at_ = here;
  return false;
}

bool WireReader::boolean(bool& value) { return take<bool>(value, "a bool"); }
bool WireReader::unsigned_integer(std::uint64_t& value) {
  return take<std::uint64_t>(value, "an unsigned integer");
}

bool WireReader::integer(std::int64_t& value) {
  const Value found = next();
  if (const auto* negative = std::get_if<std::int64_t>(&found.is)) {
    value = *negative;
    return true;
  }
  const auto* positive = std::get_if<std::uint64_t>(&found.is);
  if (positive == nullptr) return wrong("an integer");
  // A value of 2^63 or more turns negative here, and is refused.
  value = static_cast<std::int64_t>(*positive);
  return value >= 0 || fail("an integer does not fit its field");
}

bool WireReader::float32(float& value) { return take<float>(value, "a float 32"); }
bool WireReader::float64(double& value) { return take<double>(value, "a float 64"); }
bool WireReader::text(std::string_view& value) { return take<Text>(value, "a string"); }
bool WireReader::bin(std::string_view& value) { return take<Bin>(value, "a numeric array as bin"); }

// Every value takes at least one byte: a count of more values than bytes are left cannot be true,
// and is refused before memory is taken for it.
bool WireReader::enter(std::uint64_t values) {
  if (values > bytes_.size() - at_) return fail("an array or map is longer than the message");
  if (++depth_ > limits_.depth_max) return fail("values are nested too deeply");
  return true;
}

bool WireReader::enter_array(std::uint32_t& elements) {
  return take<Array>(elements, "an array") && enter(elements);
}

bool WireReader::enter_struct(const char* type, std::uint32_t fields) {
  std::uint32_t found = 0;
  if (!enter_array(found)) return false;
  if (found == fields) return true;
  return fail(std::string(type) + " has " + std::to_string(fields) + " fields, found " +
              std::to_string(found));
}

bool WireReader::enter_map(std::uint32_t& pairs) {
  return take<Map>(pairs, "a map") && enter(pairs * std::uint64_t{2});
}

void copy_bytes(void* to, std::string_view from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace tandem::wire
