// The links of a simulated fleet: clients around one server, as LinkServer and LinkClient make them
// of sockets (same callbacks, same promises LK-1 … LK-3), in the virtual time of one executor.
// Packets of real Sessions travel with drawn delays, and are lost, repeated or overtaken as the
// conditions say; the Sessions mend it.
//
// Not responsible for what frames mean. One thread.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/actor/simulated_executor.h"
#include "runtime/base/rng.h"
#include "runtime/link/link.h"

namespace tandem::controller {

struct NetworkConditions {
  Duration delay_min = std::chrono::microseconds(100);  // how long a packet takes at least
  Duration delay_max = std::chrono::milliseconds(3);
  double lost = 0;                                           // fraction of packets
  double repeated = 0;                                       // fraction of packets
  bool overtaken = false;                                    // a later packet may arrive earlier
  Duration down_after_max = std::chrono::milliseconds(200);  // until a client's end is noticed
};

class SimulatedNetwork {
 public:
  SimulatedNetwork(actor::SimulatedExecutor& executor, const NetworkConditions& conditions);

  void serve(link::LinkCallbacks callbacks);  // once, before anybody dials
  // The server's process is gone, at once: packets on their way are lost. Clients hear of it and
  // dial; those that live are let in once there is another one.
  void lose_server();
  void dial(const link::Hello& hello, link::LinkCallbacks callbacks);
  // The client's process is gone, at once: packets that it had sent arrive, packets to it are lost.
  void cut(const ActorId& client);

  link::Sent to_server(const ActorId& from, std::string frame);
  link::Sent to_client(const ActorId& to, std::string frame);
  std::size_t clients_up() const;
  std::uint64_t packets_sent() const { return packets_sent_; }

 private:
  enum class Side : std::size_t { kServer, kClient };
  struct End {
    explicit End(const link::SessionKey& key) : session(key, {}) {}
    link::Session session;
    std::deque<std::string> delivered;  // not yet taken by the user
    bool offering = false;              // later, by a timer
    std::optional<Time> deadline;       // a timer is set for it
    Time last_arrival;                  // when the last packet on its way to this end arrives
  };
  struct Connection {
    ActorId peer;
    link::Hello hello;
    link::LinkCallbacks callbacks;  // the client's
    std::array<End, 2> ends;
    bool up = false;
    bool alive = true;  // the client's process is
    bool over = false;
    End& end(Side side) { return ends[static_cast<std::size_t>(side)]; }
  };
  using Shared = std::shared_ptr<Connection>;

  void connected(const Shared& connection);
  void dial_again(const Shared& connection, bool was_up);
  void down(const Shared& connection, link::Down::Reason reason);
  link::Sent send(const Shared& connection, Side from, std::string frame);
  void pump(const Shared& connection, Side side);
  void transmit(const Shared& connection, Side to, std::string packet);
  void arrive(const Shared& connection, Side side, const std::string& packet);
  void offer(const Shared& connection, Side side);
  bool listens(const Connection& connection, Side side) const;
  Shared find(const ActorId& peer) const;
  Duration draw(Duration min, Duration max);
  bool happens(double fraction) { return fraction > 0 && rng_.unit() < fraction; }

  actor::SimulatedExecutor& executor_;
  const NetworkConditions conditions_;
  Rng rng_;
  link::LinkCallbacks server_;
  Epoch epoch_{1};  // the server's
  std::map<ActorId, Shared> connections_;
  std::uint64_t packets_sent_ = 0;
};

}  // namespace tandem::controller
