// The links of a simulated fleet: clients around one server, as LinkServer and LinkClient make them
// of sockets (same callbacks, same promises LK-1 … LK-4), in the virtual time of one executor.
// Packets of real Sessions travel with drawn delays, and are lost, repeated or overtaken as the
// conditions say; the Sessions mend it. Introductions, welcomes, fences and silence follow
// link_server.cc and link_client.cc case by case.
//
// Heartbeats travel only while something is wrong: a way that is cut, a process that is stopped, a
// client without its session. Until then nobody could be silent.
//
// Not responsible for what frames mean. One thread.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
  Duration down_after_max = std::chrono::milliseconds(200);  // until a process's end is noticed
  Duration peer_timeout = link::kPeerTimeout;                // as LinkOptions has it
  bool remote = false;  // the clients dial by TCP: silence does not end a session (LK-5)
  Duration grace = std::chrono::minutes(5);  // as LinkOptions::remote_grace
};

enum class Way : std::uint8_t { kToServer, kToClient };

class SimulatedNetwork {
 public:
  SimulatedNetwork(actor::SimulatedExecutor& executor, const NetworkConditions& conditions);

  void serve(link::LinkCallbacks callbacks);  // lets peers in
  // The server's process is gone, at once: packets on their way are lost. Clients hear of it and
  // dial; those that live are let in once there is another one.
  void lose_server();
  // The next server that is lost stood still, and wakes for a moment: after so long its sessions
  // send what they had left, and one frame more. Clients that another server has let in take
  // nothing of it and end those sessions (SE-3), which is CHECKed.
  void wake_lost_server_after(Duration time) { lost_server_wakes_after_ = time; }
  std::uint64_t late_packets_refused() const { return late_packets_refused_; }
  // A process on `host` dials. `progress`: what its heartbeats say of its work.
  void dial(const std::string& host, const link::Hello& hello, link::LinkCallbacks callbacks,
            std::function<link::ProgressReport()> progress = {});
  // The client's process is gone, at once: packets that it had sent arrive, packets to it are lost.
  void cut(const ActorId& client);
  void fence(const ActorId& peer);  // as LinkServer::fence()

  link::Sent to_server(const ActorId& from, std::string frame);
  link::Sent to_client(const ActorId& to, std::string frame);
  std::vector<link::PeerStatus> peers();  // as LinkServer::peers()
  std::uint64_t packets_sent() const { return packets_sent_; }
  // How often a parcel was offered to somebody whose mailbox was full, and is offered again.
  std::uint64_t put_off() const { return put_off_; }
  // Names that are not up, as LinkServer forgets them when it knows many.
  void forget_names() {
    std::erase_if(names_, [](const auto& name) { return !name.second.up; });
  }
  const NetworkConditions& conditions() const { return conditions_; }

  // Packets this way are lost from now on, of all processes of a host or of one process, by its
  // name; as often as it was cut it must be mended.
  void cut_way(const std::string& host_or_name, Way way);
  void mend_way(const std::string& host_or_name, Way way);
  // SIGSTOP and SIGCONT: a stopped process neither sends nor hears; packets wait for it.
  void stop(const ActorId& client);
  void go_on(const ActorId& client);
  // Frames are not taken until then, as by a mailbox that is full: of the server, or of a client.
  void fill_server(Time until) { server_full_until_ = until; }
  void fill_client(const ActorId& client, Time until);
  void lose_packets(double fraction);  // beside those of the conditions; 0 ends it

 private:
  struct End {
    explicit End(const link::SessionKey& key) : session(key, {}) {}
    link::Session session;
    std::deque<std::string> delivered;  // not yet taken by the user
    bool offering = false;              // later, by a timer
    std::optional<Time> deadline;       // a timer is set for it
    bool over = false;
  };
  // A process that dials; `end` is set while it is up.
  struct Client {
    ActorId id;
    link::Hello hello;
    std::string host;
    link::LinkCallbacks callbacks;
    std::function<link::ProgressReport()> progress;
    std::shared_ptr<End> end = nullptr;
    std::uint64_t attempt = 1;
    Epoch newest{};
    bool alive = true;
    bool given_up = false;
    int stops = 0;
    Time heard{};         // of the server
    bool silent = false;  // the server is, for this client
    Time full_until{};
    std::vector<std::function<void()>> held = {};  // packets for a stopped process
    std::array<Time, 2> last_arrival = {};         // by way
  };
  using SharedClient = std::shared_ptr<Client>;
  // A client as the server has it.
  struct Peer {
    SharedClient client;
    std::uint64_t attempt = 0;
    std::shared_ptr<End> end;
    Time heard{};
    bool silent = false;
    std::uint64_t progress_counter = 0;
    Time progress_changed{};
  };
  using SharedPeer = std::shared_ptr<Peer>;
  struct Name {
    Incarnation floor;
    SharedPeer up;
  };

  void wake(const std::vector<SharedPeer>& peers_of_lost_server);
  void take_late(const SharedClient& client, const std::shared_ptr<End>& sender,
                 const std::string& packet);
  void introduce(const SharedClient& client);
  void take_hello(const SharedClient& client, std::uint64_t attempt);
  void let_in(const SharedClient& client, std::uint64_t attempt);
  void welcome(const SharedPeer& peer);
  void take_welcome(const SharedClient& client, std::uint64_t attempt, Epoch epoch);
  void answer_stranger(const SharedClient& client);
  void send_fence(const SharedClient& client, Incarnation floor);
  void server_down(const SharedPeer& peer, link::Down::Reason reason);
  void client_down(const SharedClient& client, link::Down::Reason reason);
  void give_up(const SharedClient& client, link::Down::Reason reason);

  // A packet or a heartbeat has come.
  void hears(const SharedPeer& peer);
  void hears(const SharedClient& client);
  // Silence as LinkTraffic judges it.
  void judge(const SharedPeer& peer);
  void judge(const SharedClient& client);
  SharedPeer peer_of(const SharedClient& client) const;  // null: it is not up
  SharedClient find(const ActorId& id) const;
  bool way_cut(const Client& client, Way way) const;
  // Brings a packet to the other end, if it is not lost: `arrive` runs there.
  void carry(const SharedClient& client, Way way, std::function<void()> arrive);
  void pump(const SharedClient& client, Way way, const std::shared_ptr<End>& end);
  void take_frames(const SharedClient& client, Way way, const std::string& packet);
  void offer(const SharedClient& client, Way to, const std::shared_ptr<End>& end);

  // Heartbeats and silence, every kBeat until all is well.
  void disturbed();
  void beat();
  bool all_well() const;

  Duration draw(Duration min, Duration max);
  bool happens(double fraction) { return fraction > 0 && rng_.unit() < fraction; }

  actor::SimulatedExecutor& executor_;
  const NetworkConditions conditions_;
  Rng rng_;
  link::LinkCallbacks server_;
  Epoch epoch_{1};  // the server's
  Time server_full_until_{};
  std::map<ActorId, SharedClient> clients_;
  std::map<std::string, Name> names_;  // the server's
  std::multiset<std::pair<std::string, Way>> ways_cut_;
  double lost_ = 0;
  bool beating_ = false;
  std::uint64_t packets_sent_ = 0, put_off_ = 0;
  std::optional<Duration> lost_server_wakes_after_;
  std::uint64_t late_packets_refused_ = 0;
};

}  // namespace tandem::controller
