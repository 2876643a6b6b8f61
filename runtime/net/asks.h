// Asks across a link: which of ours wait for an answer, and how an answer to one of theirs finds
// its way back. Used by remote.h alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/actor/ref.h"
#include "runtime/base/result.h"
#include "runtime/net/session.h"
#include "runtime/wire/codec.h"

namespace tandem::runtime {

TANDEM_WIRE(Address, name, incarnation)

// The way to a peer. Cheap to copy.
class ParcelSender {
 public:
  ParcelSender() = default;
  ParcelSender(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): nobody is there
  template <class F>
  requires std::is_invocable_r_v<Sent, const F&, std::string> ParcelSender(
      F send)  // NOLINT(google-explicit-constructor): as std::function's
      : send_(std::make_shared<const std::function<Sent(std::string)>>(std::move(send))) {}
  Sent operator()(std::string frame) const {
    return send_ ? (*send_)(std::move(frame)) : Sent::kGone;
  }

 private:
  std::shared_ptr<const std::function<Sent(std::string)>> send_;
};

inline constexpr std::size_t kAsksMax = 65'536;  // unanswered; beyond it the oldest ends

// What leads a parcel; the body follows.
struct ParcelHead {
  Address to;                 // incarnation 0: whichever lives
  std::uint64_t ask = 0;      // the number of an ask, or 0
  std::uint64_t answers = 0;  // the number of the ask that this answers, or 0
};
TANDEM_WIRE(ParcelHead, to, ask, answers)

namespace remote_detail {

// The asks of this process that wait for an answer from elsewhere.
class Asks {
 public:
  // Who asked, and how an answer to decode, or an Error, reaches it.
  struct Asker {
    std::shared_ptr<void> who;
    void (*hear)(void* who, Result<WireReader*> answer) = nullptr;
  };
  std::uint64_t await(const std::shared_ptr<const Address>& to, Asker asker);
  void forget(std::uint64_t ask);
  bool answer(std::uint64_t ask, WireReader& body);
  void fail(const std::optional<std::string>& to, const Error& error);

 private:
  struct Waiting {
    std::shared_ptr<const Address> to;
    Asker asker;
    void hear(Result<WireReader*> answer) const {
      if (asker.who) asker.hear(asker.who.get(), std::move(answer));
    }
  };
  using Map = std::map<std::uint64_t, Waiting>;
  Waiting take(Map::iterator found);

  std::mutex mutex_;
  Map waiting_;  // guarded by mutex_, as is:
  std::uint64_t last_ = 0;
  // Nodes of asks that have ended, for those to come: they are made on one thread and end on
  // another, which costs an allocator much.
  std::vector<Map::node_type> spare_;
};

// Holds the answer to an ask back until the mailbox has taken the question: if it had no room, the
// question is posted again, and its first ReplyTo must not be heard.
class AnswerGate {
 public:
  AnswerGate(std::uint64_t ask, ParcelSender back, std::shared_ptr<std::atomic<std::uint64_t>> lost)
      : ask_(ask), back_(std::move(back)), lost_(std::move(lost)) {}
  template <class Body>
  void answer(const Body& encode_body) {
    std::string frame;
    frame.reserve(kAnswerBytesUsual);
    WireWriter out(frame);
    encode_to(out, ParcelHead{.answers = ask_});
    encode_body(out);
    put(std::move(frame));
  }
  void open();  // the question was taken

 private:
  static constexpr std::size_t kAnswerBytesUsual = 96;
  void put(std::string frame);
  const std::uint64_t ask_;
  const ParcelSender back_;
  const std::shared_ptr<std::atomic<std::uint64_t>> lost_;
  std::mutex mutex_;
  bool open_ = false;                 // guarded by mutex_, as is:
  std::optional<std::string> frame_;  // an answer that came before
};

}  // namespace remote_detail

}  // namespace tandem::runtime
