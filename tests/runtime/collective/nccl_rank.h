// The common part of tests of NCCL on the fake library: the library and its streams, and bytes that
// tell which rank made them.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/rng.h"
#include "runtime/collective/nccl_communicator.h"

namespace tandem::collective {

inline constexpr Duration kNcclPatience = std::chrono::seconds(60);  // ends a hang

struct FakeNccl {
  NcclApi api;
  NcclStreamFunctions streams;
  void (*set_faults)(const char* text) = nullptr;
};

inline FakeNccl open_fake_nccl() {
  FakeNccl fake{.api = open_nccl(TANDEM_FAKE_NCCL).value()};
  void* library = ::dlopen(TANDEM_FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);
  const auto find = [library]<class Function>(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    CHECK(function != nullptr);
  };
  find("tandem_fake_nccl_set_faults", fake.set_faults);
  find("tandem_fake_event_create", fake.streams.create_event);
  find("tandem_fake_event_record", fake.streams.record_event);
  find("tandem_fake_event_done", fake.streams.event_done);
  find("tandem_fake_event_destroy", fake.streams.destroy_event);
  return fake;
}

// The bytes of rank `rank` in operation `operation`: no two are alike.
inline std::vector<std::byte> bytes_of_rank(int rank, int operation, std::size_t count) {
  Rng rng(derive_seed(static_cast<std::uint64_t>(rank), {static_cast<std::uint64_t>(operation)}));
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.next());
  return bytes;
}

// One operation that all ranks take part in, and the memory of one of them.
struct SharedOperation {
  enum class Form {
    kBroadcast,  // from `root`
    kRing,       // a group: each rank sends to the next and receives from the one before
    kPair,       // rank `root` sends to the next; the others do nothing
    kSum,        // of all ranks' floats
  };
  Form form = Form::kBroadcast;
  int root = 0;
  std::size_t bytes = 1;
};

class RankMemory {
 public:
  RankMemory(const SharedOperation& operation, int number, int rank, int size)
      : operation_(operation), number_(number), rank_(rank), size_(size) {
    const bool roots = operation.form == SharedOperation::Form::kRing || rank == operation.root;
    out_ = roots ? bytes_of_rank(rank, number, operation.bytes)
                 : std::vector<std::byte>(operation.bytes);
    in_.resize(operation.bytes);
    if (operation.form == SharedOperation::Form::kSum) out_ = floats(static_cast<float>(rank + 1));
  }

  bool takes_part() const { return !transfers().empty(); }

  std::vector<NcclTransfer> transfers() const {
    const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
    auto* out = const_cast<std::byte*>(out_.data());
    auto* in = const_cast<std::byte*>(in_.data());
    const NcclTransfer send{NcclKind::kSend, out, operation_.bytes, next};
    const NcclTransfer receive{NcclKind::kReceive, in, operation_.bytes, before};
    switch (operation_.form) {
      case SharedOperation::Form::kBroadcast:
        return {{NcclKind::kBroadcast, out, operation_.bytes, operation_.root}};
      case SharedOperation::Form::kRing:
        return {send, receive};
      case SharedOperation::Form::kSum:
        return {{NcclKind::kAllReduce, out, operation_.bytes}};
      case SharedOperation::Form::kPair:
        if (rank_ == operation_.root) return {send};
        if (before == operation_.root) return {receive};
        return {};
    }
    return {};
  }

  // Whether the memory holds the bytes that a success leaves there.
  bool right() const {
    const bool broadcast = operation_.form == SharedOperation::Form::kBroadcast;
    const int before = (rank_ + size_ - 1) % size_;
    if (operation_.form == SharedOperation::Form::kSum)
      return out_ == floats(static_cast<float>(size_ * (size_ + 1)) / 2);
    if (broadcast) return out_ == bytes_of_rank(operation_.root, number_, operation_.bytes);
    if (operation_.form == SharedOperation::Form::kPair && before != operation_.root) return true;
    return in_ == bytes_of_rank(before, number_, operation_.bytes);
  }

 private:
  std::vector<std::byte> floats(float value) const {
    const std::vector<float> all(operation_.bytes / sizeof value, value);
    const auto bytes = std::as_bytes(std::span(all));
    return {bytes.begin(), bytes.end()};
  }

  SharedOperation operation_;
  int number_;
  int rank_;
  int size_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
};

}  // namespace tandem::collective
