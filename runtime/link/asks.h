// Asks across a link. Asks keeps the asks of this process that wait for an answer from another
// process; AnswerGate sends back the answer to an ask that came from another process. Used by
// remote.h alone.
//
// Threading: any thread may call. Callbacks of askers run without a lock held, because an asker may
// ask again from within one.
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
#include "runtime/link/session.h"
#include "runtime/wire/codec.h"

namespace tandem::link {

// The way to a peer: hands one frame to the link and says whether the link took it. Cheap to copy.
// A sender that was made from nothing or from nullptr answers kGone.
class ParcelSender {
 public:
  ParcelSender() = default;
  ParcelSender(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): no peer is there
  template <class F>
  requires std::is_invocable_r_v<Sent, const F&, std::string> ParcelSender(
      F send)  // NOLINT(google-explicit-constructor): as std::function's
      : send_(std::make_shared<const std::function<Sent(std::string)>>(std::move(send))) {}
  Sent operator()(std::string frame) const {
    return send_ ? (*send_)(std::move(frame)) : Sent::kGone;
  }

 private:
  // Shared, so that a copy per parcel costs no allocation.
  std::shared_ptr<const std::function<Sent(std::string)>> send_;
};

// Asks of one process that wait at the same time. One more ends the oldest with kTimedOut.
inline constexpr std::size_t kAsksMax = 65'536;

// The beginning of every parcel; the body of the message, or of the answer, follows it.
struct ParcelHead {
  ActorId to;             // the receiver of a message; incarnation 0: any incarnation of that name
  std::uint64_t ask = 0;  // the number of an ask, or 0
  std::uint64_t answers = 0;  // the number of the ask that this answers, or 0
};
TANDEM_WIRE(ParcelHead, to, ask, answers)

namespace remote_detail {

// The asks of this process that wait for an answer from elsewhere.
// Shared by a Directory and the Refs that it made. At most kAsksMax asks wait.
class Asks {
 public:
  // The one who asked. `hear` is called at most once, with `who` and either a reader that stands at
  // the answer's body, valid during the call alone, or the Error with which the ask ends.
  struct Asker {
    std::shared_ptr<void> who;  // null: the asker does not want the answer
    void (*hear)(void* who, Result<wire::WireReader*> answer) = nullptr;
  };
  // Remembers an ask to `to` and returns its number, from 1, which travels in ParcelHead::ask.
  std::uint64_t await(const std::shared_ptr<const ActorId>& to, Asker asker);
  // The question was not sent, so no answer can come; `hear` is not called.
  void forget(std::uint64_t ask);
  // Delivers an answer to its asker. False: no such ask waits, for example because it has ended.
  bool answer(std::uint64_t ask, wire::WireReader& body);
  // Ends the asks to this name, or all of them, with the Error.
  void fail(const std::optional<std::string>& to, const Error& error);

 private:
  struct Waiting {
    std::shared_ptr<const ActorId> to;
    Asker asker;
    void hear(Result<wire::WireReader*> answer) const {
      if (asker.who) asker.hear(asker.who.get(), std::move(answer));
    }
  };
  using Map = std::map<std::uint64_t, Waiting>;
  Waiting take(Map::iterator found);

  std::mutex mutex_;
  Map waiting_;  // guarded by mutex_, as is:
  std::uint64_t last_ = 0;
  // Map nodes of asks that have ended, to be used again. A node is made on one thread and freed on
  // another, which is slow in an allocator that keeps memory per thread.
  std::vector<Map::node_type> spare_;
};

// Holds the answer to a peer's ask back until the mailbox has taken the question. A mailbox without
// room drops the message, and with it the ReplyTo, which then answers with an Error. The link
// offers the same question again later, so this first answer must not travel: the gate is destroyed
// unopened.
class AnswerGate {
 public:
  AnswerGate(std::uint64_t ask, ParcelSender back, std::shared_ptr<std::atomic<std::uint64_t>> lost)
      : ask_(ask), back_(std::move(back)), lost_(std::move(lost)) {}
  // Encodes the answer, and sends it or keeps it until open(). An answer that the link refuses is
  // counted in `lost`.
  template <class Body>
  void answer(const Body& encode_body) {
    std::string frame;
    frame.reserve(kAnswerBytesUsual);
    wire::WireWriter out(frame);
    encode_to(out, ParcelHead{.answers = ask_});
    encode_body(out);
    put(std::move(frame));
  }
  // Sends an answer that has come already, and lets a later one pass.
  void open();  // the question was taken

 private:
  // Reserved for an answer, so that a small one is allocated once.
  static constexpr std::size_t kAnswerBytesUsual = 96;
  // Sends the frame if the gate is open, else keeps it.
  void put(std::string frame);
  const std::uint64_t ask_;
  const ParcelSender back_;
  // Counts answers that the link did not accept.
  const std::shared_ptr<std::atomic<std::uint64_t>> lost_;
  std::mutex mutex_;
  bool open_ = false;                 // guarded by mutex_, as is:
  std::optional<std::string> frame_;  // an answer that was given before open()
};

}  // namespace remote_detail

}  // namespace tandem::link
