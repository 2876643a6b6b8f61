#include "runtime/wire/bytes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace tandem::runtime {
namespace {

// Tags of the msgpack specification, by the names used there.
enum Tag : std::uint8_t {
  kFixMap = 0x80,
  kFixArray = 0x90,
  kFixStr = 0xa0,
  kNil = 0xc0,
  kFalse = 0xc2,
  kTrue = 0xc3,
  kBin8 = 0xc4,
  kBin16 = 0xc5,
  kBin32 = 0xc6,
  kFloat32 = 0xca,
  kFloat64 = 0xcb,
  kUint8 = 0xcc,
  kUint16 = 0xcd,
  kUint32 = 0xce,
  kUint64 = 0xcf,
  kInt8 = 0xd0,
  kInt16 = 0xd1,
  kInt32 = 0xd2,
  kInt64 = 0xd3,
  kStr8 = 0xd9,
  kStr16 = 0xda,
  kStr32 = 0xdb,
  kArray16 = 0xdc,
  kArray32 = 0xdd,
  kMap16 = 0xde,
  kMap32 = 0xdf,
  kNegativeFixInt = 0xe0,
};

template <class T>
T swapped(T value) {
  if constexpr (sizeof(T) == 1) return value;
  if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(value));
  if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(value));
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(value));
}

std::string_view field_name(const char* names, std::uint32_t index) {
  std::string_view rest = names;  // "group, prompt_tokens", as the macro saw it
  for (; index > 0; --index) rest.remove_prefix(rest.find(',') + 1);
  rest = rest.substr(0, rest.find(','));
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

}  // namespace

template <class T>
void WireWriter::head(std::uint8_t tag, T argument) {
  char bytes[1 + sizeof(T)];
  bytes[0] = static_cast<char>(tag);
  const T big = swapped(argument);
  std::memcpy(bytes + 1, &big, sizeof(T));
  out_.append(bytes, sizeof(bytes));
}

void WireWriter::nil() { out_.push_back(static_cast<char>(kNil)); }
void WireWriter::boolean(bool value) { out_.push_back(static_cast<char>(value ? kTrue : kFalse)); }

void WireWriter::unsigned_integer(std::uint64_t value) {
  if (value < 0x80) {
    out_.push_back(static_cast<char>(value));
  } else if (value <= 0xff) {
    head(kUint8, static_cast<std::uint8_t>(value));
  } else if (value <= 0xffff) {
    head(kUint16, static_cast<std::uint16_t>(value));
  } else if (value <= 0xffff'ffff) {
    head(kUint32, static_cast<std::uint32_t>(value));
  } else {
    head(kUint64, value);
  }
}

void WireWriter::integer(std::int64_t value) {
  if (value >= 0) {
    unsigned_integer(static_cast<std::uint64_t>(value));
  } else if (value >= -32) {
    out_.push_back(static_cast<char>(value));
  } else if (value >= std::numeric_limits<std::int8_t>::min()) {
    head(kInt8, static_cast<std::uint8_t>(value));
  } else if (value >= std::numeric_limits<std::int16_t>::min()) {
    head(kInt16, static_cast<std::uint16_t>(value));
  } else if (value >= std::numeric_limits<std::int32_t>::min()) {
    head(kInt32, static_cast<std::uint32_t>(value));
  } else {
    head(kInt64, static_cast<std::uint64_t>(value));
  }
}

void WireWriter::float32(float value) { head(kFloat32, std::bit_cast<std::uint32_t>(value)); }
void WireWriter::float64(double value) { head(kFloat64, std::bit_cast<std::uint64_t>(value)); }

void WireWriter::text(std::string_view value) {
  CHECK(value.size() <= std::numeric_limits<std::uint32_t>::max());
  if (value.size() < 32) {
    out_.push_back(static_cast<char>(kFixStr | value.size()));
  } else if (value.size() <= 0xff) {
    head(kStr8, static_cast<std::uint8_t>(value.size()));
  } else if (value.size() <= 0xffff) {
    head(kStr16, static_cast<std::uint16_t>(value.size()));
  } else {
    head(kStr32, static_cast<std::uint32_t>(value.size()));
  }
  out_.append(value);
}

void WireWriter::bin(const void* data, std::size_t bytes) {
  CHECK(bytes <= std::numeric_limits<std::uint32_t>::max());
  if (bytes <= 0xff) {
    head(kBin8, static_cast<std::uint8_t>(bytes));
  } else if (bytes <= 0xffff) {
    head(kBin16, static_cast<std::uint16_t>(bytes));
  } else {
    head(kBin32, static_cast<std::uint32_t>(bytes));
  }
  if (bytes > 0) out_.append(static_cast<const char*>(data), bytes);
}

void WireWriter::array(std::size_t elements) {
  CHECK(elements <= std::numeric_limits<std::uint32_t>::max());
  if (elements < 16) {
    out_.push_back(static_cast<char>(kFixArray | elements));
  } else if (elements <= 0xffff) {
    head(kArray16, static_cast<std::uint16_t>(elements));
  } else {
    head(kArray32, static_cast<std::uint32_t>(elements));
  }
}

void WireWriter::map(std::size_t pairs) {
  CHECK(pairs <= std::numeric_limits<std::uint32_t>::max());
  if (pairs < 16) {
    out_.push_back(static_cast<char>(kFixMap | pairs));
  } else if (pairs <= 0xffff) {
    head(kMap16, static_cast<std::uint16_t>(pairs));
  } else {
    head(kMap32, static_cast<std::uint32_t>(pairs));
  }
}

WireReader::WireReader(std::string_view bytes, WireLimits limits) : bytes_(bytes), limits_(limits) {
  if (bytes.size() > limits.message_bytes_max) {
    fail("a message of " + std::to_string(bytes.size()) + " bytes is over the limit of " +
         std::to_string(limits.message_bytes_max));
  }
}

bool WireReader::fail(std::string what) {
  if (!failed_) {
    failed_ = true;
    failed_at_ = at_;
    what_ = std::move(what);
  }
  return false;
}

bool WireReader::failed_in(const char* type, const char* names, std::uint32_t index) {
  // "Inner.field" becomes "Outer.inner.field": inside a field its type is known.
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

bool WireReader::take(std::size_t bytes, const char*& at) {
  if (failed_) return false;
  if (bytes > bytes_.size() - at_) return fail("the bytes end early");
  at = bytes_.data() + at_;
  at_ += bytes;
  return true;
}

template <class T>
bool WireReader::argument(T& value) {
  const char* at = nullptr;
  if (!take(sizeof(T), at)) return false;
  std::memcpy(&value, at, sizeof(T));
  value = swapped(value);
  return true;
}

bool WireReader::tag(std::uint8_t& value) { return argument(value); }

bool WireReader::wrong(const char* expected) {
  --at_;
  const auto found = static_cast<std::uint8_t>(bytes_[at_]);
  return fail(std::string("expected ") + expected + ", found tag " + std::to_string(found));
}

bool WireReader::charge(std::uint64_t bytes) {
  if (bytes > limits_.decoded_bytes_max - charged_)
    return fail("the value would take too much memory");
  charged_ += bytes;
  return true;
}

bool WireReader::finish() {
  if (failed_) return false;
  return at_ == bytes_.size() || fail(std::to_string(bytes_.size() - at_) + " bytes are left over");
}

bool WireReader::nil() {
  if (failed_ || at_ == bytes_.size() || static_cast<std::uint8_t>(bytes_[at_]) != kNil) {
    return false;
  }
  ++at_;
  return true;
}

bool WireReader::boolean(bool& value) {
  std::uint8_t t = 0;
  if (!tag(t)) return false;
  if (t != kTrue && t != kFalse) return wrong("a bool");
  value = t == kTrue;
  return true;
}

bool WireReader::unsigned_integer(std::uint64_t& value) {
  std::uint8_t t = 0;
  if (!tag(t)) return false;
  if (t < 0x80) {
    value = t;
    return true;
  }
  const auto wide = [&]<class T>(T narrow) {
    if (!argument(narrow)) return false;
    value = narrow;
    return true;
  };
  switch (t) {
    case kUint8:
      return wide(std::uint8_t{});
    case kUint16:
      return wide(std::uint16_t{});
    case kUint32:
      return wide(std::uint32_t{});
    case kUint64:
      return wide(std::uint64_t{});
    default:
      return wrong("an unsigned integer");
  }
}

bool WireReader::integer(std::int64_t& value) {
  if (failed_) return false;
  if (at_ == bytes_.size()) return fail("the bytes end early");
  const auto t = static_cast<std::uint8_t>(bytes_[at_]);
  if (t < kInt8 || (t > kInt64 && t < kNegativeFixInt)) {
    std::uint64_t positive = 0;
    if (!unsigned_integer(positive)) return false;
    if (positive > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return fail("an integer does not fit its field");
    }
    value = static_cast<std::int64_t>(positive);
    return true;
  }
  ++at_;
  const auto wide = [&]<class Signed>(Signed) {
    std::make_unsigned_t<Signed> narrow{};
    if (!argument(narrow)) return false;
    value = static_cast<Signed>(narrow);
    return true;
  };
  switch (t) {
    case kInt8:
      return wide(std::int8_t{});
    case kInt16:
      return wide(std::int16_t{});
    case kInt32:
      return wide(std::int32_t{});
    case kInt64:
      return wide(std::int64_t{});
    default:
      value = static_cast<std::int8_t>(t);
      return true;
  }
}

bool WireReader::float32(float& value) {
  std::uint8_t t = 0;
  std::uint32_t bits = 0;
  if (!tag(t)) return false;
  if (t != kFloat32) return wrong("a float 32");
  if (!argument(bits)) return false;
  value = std::bit_cast<float>(bits);
  return true;
}

bool WireReader::float64(double& value) {
  std::uint8_t t = 0;
  std::uint64_t bits = 0;
  if (!tag(t)) return false;
  if (t != kFloat64) return wrong("a float 64");
  if (!argument(bits)) return false;
  value = std::bit_cast<double>(bits);
  return true;
}

bool WireReader::text(std::string_view& value) {
  std::uint8_t t = 0;
  if (!tag(t)) return false;
  std::uint32_t bytes = 0;
  const auto length = [&]<class T>(T narrow) {
    if (!argument(narrow)) return false;
    bytes = narrow;
    return true;
  };
  if ((t & 0xe0) == kFixStr) {
    bytes = t & 0x1f;
  } else if (t == kStr8) {
    if (!length(std::uint8_t{})) return false;
  } else if (t == kStr16) {
    if (!length(std::uint16_t{})) return false;
  } else if (t == kStr32) {
    if (!length(std::uint32_t{})) return false;
  } else {
    return wrong("a string");
  }
  const char* at = nullptr;
  if (!take(bytes, at)) return false;
  value = {at, bytes};
  return true;
}

bool WireReader::bin(std::string_view& value) {
  std::uint8_t t = 0;
  if (!tag(t)) return false;
  std::uint32_t bytes = 0;
  const auto length = [&]<class T>(T narrow) {
    if (!argument(narrow)) return false;
    bytes = narrow;
    return true;
  };
  if (t == kBin8) {
    if (!length(std::uint8_t{})) return false;
  } else if (t == kBin16) {
    if (!length(std::uint16_t{})) return false;
  } else if (t == kBin32) {
    if (!length(std::uint32_t{})) return false;
  } else {
    return wrong("a numeric array as bin");
  }
  const char* at = nullptr;
  if (!take(bytes, at)) return false;
  value = {at, bytes};
  return true;
}

// Every value takes at least one byte, so a count beyond what is left is a lie.
bool WireReader::enter(std::uint64_t values) {
  if (values > bytes_.size() - at_) return fail("an array or map is longer than the message");
  if (++depth_ > limits_.depth_max) return fail("values are nested too deeply");
  return true;
}

bool WireReader::enter_array(std::uint32_t& elements) {
  std::uint8_t t = 0;
  if (!tag(t)) return false;
  if ((t & 0xf0) == kFixArray) {
    elements = t & 0x0f;
  } else if (t == kArray16) {
    std::uint16_t narrow = 0;
    if (!argument(narrow)) return false;
    elements = narrow;
  } else if (t == kArray32) {
    if (!argument(elements)) return false;
  } else {
    return wrong("an array");
  }
  return enter(elements);
}

bool WireReader::enter_struct(const char* type, std::uint32_t fields) {
  std::uint32_t found = 0;
  if (!enter_array(found)) return false;
  if (found == fields) return true;
  return fail(std::string(type) + " has " + std::to_string(fields) + " fields, found " +
              std::to_string(found));
}

bool WireReader::enter_map(std::uint32_t& pairs) {
  std::uint8_t t = 0;
  if (!tag(t)) return false;
  if ((t & 0xf0) == kFixMap) {
    pairs = t & 0x0f;
  } else if (t == kMap16) {
    std::uint16_t narrow = 0;
    if (!argument(narrow)) return false;
    pairs = narrow;
  } else if (t == kMap32) {
    if (!argument(pairs)) return false;
  } else {
    return wrong("a map");
  }
  return enter(pairs * std::uint64_t{2});
}

void copy_bytes(void* to, std::string_view from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace tandem::runtime
