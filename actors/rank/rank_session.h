// The common part of the processes of all ranks, whether of this binary or of a user's program:
// they die with an agent that does not keep its ranks, block the signals that end them, dial the
// controller, report their failure, and end when they are told to, or when their actor has failed.
// A rank whose controller dies or hangs works on and dials again; if no controller comes, its agent
// ends it, or without an agent it ends by itself after kAloneMax. A controller that says good-bye,
// or refuses the rank, ends it. The owner of a RankSession adds the executor and the actors.
//
//   RankSession::begin(words, progress)       // before the process's first thread
//   … actors; directory().expose("rank", …)
//   session.start();
//   session.wait();
//   … executor.stop();
//   session.close();                          // last, so that messages of handlers still leave
//
// Threading: failed(), end() and the senders from any thread; all else by the thread that owns it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "actors/messages/rank.h"
#include "actors/rank/rank_words.h"
#include "runtime/link/link.h"
#include "runtime/link/remote.h"
#include "runtime/node/signals.h"

namespace tandem::rank {

// The names of the ports of every rank and of the controller (runtime/link/remote.h).
inline constexpr const char* kRankInboxPort = "rank";
inline constexpr const char* kControllerRanksPort = "controller/ranks";

// Longer than an agent keeps ranks without a controller, and a controller those without an agent.
inline constexpr Duration kAloneMax = std::chrono::minutes(6);

class RankSession {
 public:
  using ReportProgress = std::function<link::ProgressReport()>;
  // Where the actor is in another process: what becomes of parcels, which else are for directory(),
  // and the coming and going of the controller. Called on the link's thread; all three or none.
  struct Passing {
    std::function<link::Offer(const std::string& frame)> parcel;
    std::function<void(const link::Hello& controller)> up;
    std::function<void()> down;
  };
  // Arms the parent-death signal, unless the rank may outlive its agent. Errors: the agent has
  // ended already.
  static Result<std::unique_ptr<RankSession>> begin(RankWords words, ReportProgress progress,
                                                    Passing passing = {});

  link::Directory& directory() { return directory_; }
  const link::ParcelSender& to_controller() const { return to_controller_; }
  const RankWords& words() const { return words_; }
  actor::Ref<messages::RankEvents> controller();

  void start();  // dials
  // The next signal: SIGINT, or SIGTERM from outside or from end() and failed().
  int wait();
  // An actor has failed for good: reports it, and ends the process with 1.
  void failed(const ActorId& who, const Error& why);
  void end(int exit_status);  // after several calls the greatest status counts
  bool ending() const { return ending_; }
  int exit_status() const { return exit_status_; }
  void close();

 private:
  RankSession(RankWords words, ReportProgress progress, Passing passing);
  void controller_lost(const link::Down& down);

  const RankWords words_;
  const Passing passing_;
  node::Signals signals_{SIGTERM, SIGINT};
  std::atomic<int> exit_status_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<bool> linked_ = false;
  std::atomic<Time> alone_since_ = steady_now();  // while there is no link
  link::Directory directory_;
  link::IoThread io_{"link"};
  std::unique_ptr<link::LinkClient> link_;
  link::ParcelSender to_controller_;
};

}  // namespace tandem::rank
