// The common part of the processes of all ranks, whether of this binary or of a user's program:
// they die with an agent that does not keep its ranks, block the signals that end them, dial the
// controller, report their failure, and end when they are told to, or when their actor has failed.
// A rank whose controller dies, hangs or is cut off works on and dials again; if no controller
// comes for the time that the last one has told, its agent ends it, and it does so by itself. A
// controller that says good-bye, or refuses the rank, ends it. The owner of a RankSession adds the
// executor and the actors.
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
#include <optional>

#include "actors/messages/rank.h"
#include "actors/rank/rank_words.h"
#include "runtime/base/guarded.h"
#include "runtime/link/link.h"
#include "runtime/link/remote.h"
#include "runtime/node/log_rotation.h"
#include "runtime/node/owner.h"
#include "runtime/node/signals.h"

namespace tandem::rank {

// The names of the ports of every rank and of the controller (runtime/link/remote.h).
inline constexpr const char* kRankInboxPort = "rank";
inline constexpr const char* kControllerRanksPort = "controller/ranks";

// For how long a rank works without a controller, as this one tells in its Hello.
Duration alone_max(const link::Hello& controller);
// Whether a rank is to look for another link after the end of one.
bool may_come_back(link::Down::Reason reason, bool remote);

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
  // Arms the parent-death signal, unless the rank may outlive its agent. `program` is the build of
  // Tandem's own binary; a user's program names none. Errors: the agent has ended already.
  static Result<std::unique_ptr<RankSession>> begin(RankWords words, ReportProgress progress,
                                                    Passing passing = {},
                                                    link::ProgramBuild program = {});

  link::Directory& directory() { return directory_; }
  const link::ParcelSender& to_controller() const { return to_controller_; }
  const RankWords& words() const { return words_; }
  // Messages to it are lost with it, but for RankListening: each controller that follows is told.
  actor::Ref<messages::RankEvents> controller();

  void start();  // dials
  // The next signal: SIGINT, or SIGTERM from outside or from end() and failed().
  int wait();
  // The same within `most`, else 0.
  int wait_for(Duration most);
  // Whether the signal of the last wait came neither from this process nor from its agent.
  bool told_from_outside() const;
  // An actor has failed for good: reports it, and ends the process with 1.
  void failed(const ActorId& who, const Error& why);
  void end(int exit_status);  // after several calls the greatest status counts
  bool ending() const { return ending_; }
  int exit_status() const { return exit_status_; }
  void close();

 private:
  RankSession(RankWords words, node::OwnLog log, ReportProgress progress, Passing passing,
              link::ProgramBuild program);
  class ToController;
  void controller_met(const link::Hello& controller);
  void controller_lost(const link::Down& down);

  const RankWords words_;
  node::OwnLog log_;  // the main thread's, in wait()
  const Passing passing_;
  node::Signals signals_{SIGTERM, SIGINT};
  // Set where this is a job of `tandem run`: the rank ends with that process.
  std::optional<node::OwnerWatch> owner_;
  std::atomic<int> exit_status_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<bool> linked_ = false;
  std::atomic<Time> alone_since_ = steady_now();  // while there is no link
  std::atomic<Duration> alone_max_ = node::kNodeGraceDefault;
  Guarded<std::optional<messages::RankListening>> listening_;
  link::Directory directory_;
  link::IoThread io_{"link"};
  std::unique_ptr<link::LinkClient> link_;
  link::ParcelSender to_controller_;
};

}  // namespace tandem::rank
