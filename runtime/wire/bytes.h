// msgpack as bytes: WireWriter appends values, WireReader takes them off one by one and checks each
// against the bytes that are left. Used by codec.h; nothing else needs it.
//
// The library msgpack-cxx does both, in bytes.cc alone: its headers cost each source that includes
// them a second of compilation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::wire {

// Limits on a message whose sender is not trusted. A message over one of them is an error.
struct WireLimits {
  std::uint64_t message_bytes_max = 64ull << 20;
  // Memory that the decoded value may take: a small message can claim much more than its own bytes.
  std::uint64_t decoded_bytes_max = 256ull << 20;
  // Levels of structs, arrays and maps within one another: bounds the stack.
  std::uint32_t depth_max = 64;
};

// The name of one field out of "group, prompt_tokens", the text of the arguments of TANDEM_WIRE.
std::string_view field_name(const char* names, std::size_t index);

// Writes each integer and each head in the shortest form that msgpack has. A length of 4 GiB or
// more is CHECKed. Used by one thread.
class WireWriter {
 public:
  // Appends to `out`, which must outlive the writer.
  explicit WireWriter(std::string& out) : out_(out) {}
  void nil();
  void boolean(bool value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void float32(float value);
  void float64(double value);
  void text(std::string_view value);
  void bin(const void* data, std::size_t bytes);
  // These write a head alone: the caller writes so many values, or pairs of key and value, next.
  void array(std::size_t elements);
  void map(std::size_t pairs);

 private:
  std::string& out_;
};

// Each call takes the next value off, or returns false. The first failure is remembered with its
// place, and every call after it fails as well: a caller checks at the end of a struct, or at once.
// Bytes of any content are safe. Used by one thread.
class WireReader {
 public:
  // `bytes` must outlive the reader, and the views that it gives out.
  WireReader(std::string_view bytes, WireLimits limits);

  // Takes a nil off if one is next. False without a failure otherwise: the value stays.
  bool nil();
  bool boolean(bool& value);
  bool integer(std::int64_t& value);
  bool unsigned_integer(std::uint64_t& value);
  bool float32(float& value);
  bool float64(double& value);
  // These two give views into the bytes.
  bool text(std::string_view& value);
  bool bin(std::string_view& value);
  // These take a head off; the caller takes so many values, or twice as many for pairs, and calls
  // leave(). A head that claims more values than the message has bytes is a failure.
  bool enter_array(std::uint32_t& elements);
  bool enter_struct(const char* type, std::uint32_t fields);  // an array of exactly `fields`
  bool enter_map(std::uint32_t& pairs);
  void leave() { --depth_; }
  // Ends a message: bytes that are left over are a failure.
  bool finish();
  // The bytes that no call has taken yet.
  std::string_view rest() const { return bytes_.substr(at_); }

  // Counts memory that the caller is about to allocate for the value against decoded_bytes_max.
  bool charge(std::uint64_t bytes);
  // Records the failure, unless one is recorded already. Always false.
  bool fail(std::string what);
  // Adds to the failure that it happened in field `index` of `type`; `names` are the names of all
  // fields, as fields.h has them. Called from the innermost struct outwards. Always false.
  bool failed_in(const char* type, const char* names, std::uint32_t index);
  // kInvalid, "cannot decode Outer.inner.field: …", with the byte as the place. May be called only
  // after a failure.
  Error error() const;

 private:
  struct Value;
  // The next value, or the head of a container. Empty where it cannot be read, or where it is of a
  // kind that no field has.
  Value next();
  template <class Kind, class T>
  bool take(T& value, const char* expected);
  // Fails: the value just taken is of another kind. Always false.
  bool wrong(const char* expected);
  bool enter(std::uint64_t values);

  const std::string_view bytes_;
  const WireLimits limits_;
  std::size_t at_ = 0;        // where the next value begins
  std::size_t value_at_ = 0;  // where the value last taken begins: errors name that place
  std::uint64_t charged_ = 0;
  std::uint32_t depth_ = 0;
  // The first failure: where, why, and in which field ("Outer.inner.field").
  bool failed_ = false;
  std::size_t failed_at_ = 0;
  std::string what_;
  std::string path_;
};

// memcpy that may be called with an empty view, whose pointers may be null.
void copy_bytes(void* to, std::string_view from);

}  // namespace tandem::wire
