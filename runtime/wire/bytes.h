// msgpack as bytes: WireWriter appends values, WireReader takes them off one by one and checks each
// against what is left. Used by codec.h; nothing else needs it.
//
// msgpack-cxx does both, in bytes.cc alone: its headers cost whoever includes them a second of
// compilation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::runtime {

struct WireLimits {
  std::uint64_t message_bytes_max = 64ull << 20;
  std::uint64_t decoded_bytes_max = 256ull << 20;  // memory that the decoded value may take
  std::uint32_t depth_max = 64;                    // of nested structs and arrays
};

class WireWriter {
 public:
  explicit WireWriter(std::string& out) : out_(out) {}  // appends; borrows
  void nil();
  void boolean(bool value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void float32(float value);
  void float64(double value);
  void text(std::string_view value);
  void bin(const void* data, std::size_t bytes);
  void array(std::size_t elements);  // that many values follow
  void map(std::size_t pairs);       // that many pairs follow

 private:
  std::string& out_;
};

// Each call takes the next value off, or returns false and remembers the first failure.
class WireReader {
 public:
  WireReader(std::string_view bytes, WireLimits limits);  // borrows

  bool nil();  // takes a nil off, if one is next; anything else stays, and is no failure
  bool boolean(bool& value);
  bool integer(std::int64_t& value);
  bool unsigned_integer(std::uint64_t& value);
  bool float32(float& value);
  bool float64(double& value);
  bool text(std::string_view& value);  // a view into the bytes
  bool bin(std::string_view& value);   // a view into the bytes
  bool enter_array(std::uint32_t& elements);
  bool enter_struct(const char* type, std::uint32_t fields);  // an array of exactly so many
  bool enter_map(std::uint32_t& pairs);
  void leave() { --depth_; }
  bool finish();  // nothing may be left

  bool charge(std::uint64_t bytes);  // of memory about to be allocated
  bool fail(std::string what);       // false
  // Adds that this happened in field `index` of `type`, innermost first. False.
  bool failed_in(const char* type, const char* names, std::uint32_t index);
  Error error() const;

 private:
  struct Value;
  Value next();  // empty if it failed, or is of a kind that no field has
  template <class Kind, class T>
  bool take(T& value, const char* expected);
  bool wrong(const char* expected);  // the value just taken is of another kind
  bool enter(std::uint64_t values);

  const std::string_view bytes_;
  const WireLimits limits_;
  std::size_t at_ = 0;
  std::size_t value_at_ = 0;  // where the value last taken begins: errors name that place
  std::uint64_t charged_ = 0;
  std::uint32_t depth_ = 0;
  bool failed_ = false;
  std::size_t failed_at_ = 0;
  std::string what_;
  std::string path_;
};

void copy_bytes(void* to, std::string_view from);  // memcpy; nothing for an empty view

}  // namespace tandem::runtime
