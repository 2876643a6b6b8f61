// Asks across a link: which of ours wait for an answer, and how an answer to one of theirs finds
// its way back. Used by remote.h alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/actor/ref.h"
#include "runtime/base/result.h"
#include "runtime/net/session.h"
#include "runtime/wire/codec.h"

namespace tandem::runtime {

TANDEM_WIRE(Address, name, incarnation)

using ParcelSender = std::function<Sent(std::string frame)>;

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
  using OnAnswer = std::function<void(Result<WireReader*>)>;  // an answer to decode, or an Error
  std::uint64_t await(const std::string& to, OnAnswer on_answer);
  void forget(std::uint64_t ask);
  bool answer(std::uint64_t ask, WireReader& body);
  void fail(const std::optional<std::string>& to, const Error& error);

 private:
  struct Waiting {
    std::string to;
    OnAnswer on_answer;
  };
  std::mutex mutex_;
  std::map<std::uint64_t, Waiting> waiting_;  // guarded by mutex_, as is:
  std::uint64_t last_ = 0;
};

// Holds the answer to an ask back until the mailbox has taken the question: if it had no room, the
// question is posted again, and its first ReplyTo must not be heard.
class AnswerGate {
 public:
  AnswerGate(std::uint64_t ask, ParcelSender back, std::shared_ptr<std::atomic<std::uint64_t>> lost)
      : ask_(ask), back_(std::move(back)), lost_(std::move(lost)) {}
  template <class Body>
  void answer(const Body& encode_body) {
    std::string frame = encode(ParcelHead{.answers = ask_});
    WireWriter out(frame);
    encode_body(out);
    put(std::move(frame));
  }
  void open();  // the question was taken

 private:
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
