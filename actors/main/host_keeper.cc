// What the children say comes on the thread of their pipes. It is kept with the number of the
// child, and taken by look(); what an earlier child of the host has said is of no meaning any more.
#include "actors/main/host_keeper.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSaidBytesMax = 400;  // of what a host says

// The same for all processes of one machine, or of one container with a network of its own.
std::string this_machine() {
  const auto boot = read_file("/proc/sys/kernel/random/boot_id");
  std::error_code failure;
  const fs::path network = fs::read_symlink("/proc/self/ns/net", failure);
  std::string text = boot ? *boot : "";
  while (text.ends_with('\n')) text.pop_back();
  return text + " " + network.string();
}

// ssh has the user's environment, for agents of keys and tickets, and none of our secrets.
std::map<std::string, std::string> environment_of_ssh() {
  std::map<std::string, std::string> variables;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text(*one);
    const std::size_t equals = text.find('=');
    if (equals == text.npos || text.starts_with("TANDEM_")) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace

// A running ssh, whose errors come among its lines (ssh_hosts.h).
struct HostKeeper::Child {
  std::uint64_t number = 0;  // 0: none
  std::unique_ptr<node::LineChild> process = nullptr;
  std::string last = {};  // line that no script of ours has said

  // What it said last, else how it has ended.
  std::string last_words(const node::ChildEnd& end) const {
    return last.empty() ? "ssh " + end.why : last;
  }
};

struct HostKeeper::Host {
  launch::SshHost host;
  std::size_t index;
  launch::HostCore core;
  fs::path control;
  std::uint64_t children = 0;  // that were started
  Child session = {}, copy = {};
};

struct HostKeeper::Arrived {
  std::size_t host;
  std::uint64_t child;
  std::optional<std::string> line;  // nothing: the child has ended
  std::optional<node::ChildEnd> end;
};

HostKeeper::HostKeeper(HostKeeperOptions options, link::IoThread& io, link::SocketFolder sockets,
                       const cli::Console& console)
    : options_(std::move(options)),
      console_(console),
      spawn_(node::process_spawner(io)),
      sockets_(std::move(sockets)),
      machine_(this_machine()),
      arrived_(std::make_shared<Guarded<std::vector<Arrived>>>()) {
  for (const launch::SshHost& host : options_.hosts)
    hosts_.push_back(std::make_unique<Host>(
        Host{.host = host,
             .index = hosts_.size(),
             .core = launch::HostCore({.build = options_.build.text,
                                       .controller = options_.agent.controller,
                                       .copies = options_.copies}),
             .control = sockets_.next().path}));
}

HostKeeper::~HostKeeper() = default;

HostKeeper::Child HostKeeper::start(Host& host, std::vector<std::string> argv) {
  // A session of its own: the terminal's Ctrl-C is for this process, which ends the agents first.
  argv.insert(argv.begin(), "setsid");
  const std::uint64_t number = ++host.children;
  const auto arrive = [all = arrived_, index = host.index, number](
                          std::optional<std::string> line, std::optional<node::ChildEnd> end) {
    all->with([&](auto& list) {
      list.push_back({index, number, std::move(line), std::move(end)});
    });
  };
  auto started = spawn_({.argv = std::move(argv), .env = environment_of_ssh(), .limits = {}},
                        {.line = [arrive](std::string line) { arrive(std::move(line), {}); },
                         .ended = [arrive](node::ChildEnd end) { arrive({}, std::move(end)); }});
  if (started) return {.number = number, .process = *std::move(started)};
  arrive({}, node::ChildEnd{.why = "cannot be started: " + started.error().message});
  return {.number = number};
}

void HostKeeper::connect(Host& host) {
  disconnect(host);
  std::error_code ignored;
  fs::remove(host.control, ignored);  // of a connection that was killed
  host.session = start(host, launch::connect_argv(options_.ssh, host.host, host.control));
  send(host, launch::script_lines());
  send(host, launch::program_lines(options_.build.program));
}

void HostKeeper::send(Host& host, std::vector<std::string> lines) {
  if (!host.session.process) return;
  for (std::string& line : lines) host.session.process->write_line(std::move(line));
}

void HostKeeper::copy(Host& host) {
  host.copy = start(host, launch::copy_argv(options_.ssh, host.host, host.control,
                                            options_.build.folder, options_.build.program.tree));
}

void HostKeeper::disconnect(Host& host) {
  host.copy = {};
  host.session = {};
}

void HostKeeper::carry_out(Host& host, launch::HostEffects effects) {
  struct Carry {
    HostKeeper& keeper;
    Host& host;
    void operator()(const launch::effect::Connect&) { keeper.connect(host); }
    void operator()(const launch::effect::Copy&) { keeper.copy(host); }
    void operator()(const launch::effect::Disconnect&) { keeper.disconnect(host); }
    void operator()(const launch::effect::StartAgent&) {
      launch::HostAgent agent = keeper.options_.agent;
      agent.name = host.host.name;
      keeper.send(host, launch::start_lines(agent));
    }
    void operator()(const launch::effect::Send& one) { keeper.send(host, {one.line}); }
    void operator()(const launch::effect::Say& one) {
      keeper.console_.err << "host " + host.host.name + ": " +
                                 visible(cut_utf8(one.text, kSaidBytesMax), Lines::kOne) + "\n"
                          << std::flush;
    }
  };
  for (const launch::HostEffect& effect : effects) std::visit(Carry{*this, host}, effect);
}

// Two names of one machine would offer its CPUs and GPUs twice.
void HostKeeper::check_machine(Host& host) {
  if (host.core.machine() == machine_)
    return carry_out(host, host.core.is_same_machine_as("the controller"));
  for (const auto& other : hosts_)
    if (other.get() != &host && !other->core.is_over() &&
        other->core.machine() == host.core.machine())
      return carry_out(host, host.core.is_same_machine_as(other->host.name));
}

void HostKeeper::take(const Arrived& arrived) {
  Host& host = *hosts_[arrived.host];
  const Time now = steady_now();
  const bool copies = arrived.child == host.copy.number;
  if (!copies && arrived.child != host.session.number) return;  // it was given up
  Child& child = copies ? host.copy : host.session;
  if (arrived.line) {
    const auto line = launch::parse_host_line(*arrived.line);
    if (!line) {
      child.last = *arrived.line;
      while (child.last.ends_with('\r')) child.last.pop_back();
    } else if (!copies) {
      carry_out(host, host.core.heard(*line, now));
      if (std::holds_alternative<launch::said::Machine>(*line)) check_machine(host);
    }
    return;
  }
  const std::string why = child.last_words(*arrived.end);
  if (!copies) return carry_out(host, host.core.disconnected(why, now));
  carry_out(host, arrived.end->clean ? host.core.copied(now) : host.core.not_copied(why, now));
}

void HostKeeper::look() {
  std::vector<Arrived> all;
  arrived_->with([&](auto& list) { std::swap(list, all); });
  for (const Arrived& one : all) take(one);
  if (const auto kept = sockets_.keep(steady_now()); !kept)
    log::warn("event=sockets_lost message=\"{}\"", kept.error().message);
  for (const auto& host : hosts_) carry_out(*host, host->core.look(steady_now()));
}

void HostKeeper::tell_to_end(bool at_once) {
  for (const auto& host : hosts_) carry_out(*host, host->core.told_to_end(at_once, steady_now()));
}

bool HostKeeper::all_over() const {
  return std::ranges::all_of(hosts_, [](const auto& host) { return host->core.is_over(); });
}

bool HostKeeper::all_given_up() const {
  return std::ranges::all_of(hosts_, [](const auto& host) { return host->core.was_given_up(); });
}

bool HostKeeper::awaits_nodes() const {
  return std::ranges::any_of(hosts_, [](const auto& host) { return host->core.awaits_join(); });
}

void HostKeeper::nodes_ready(const std::set<std::string>& names) {
  for (const auto& host : hosts_)
    if (names.contains(host->host.name)) carry_out(*host, host->core.joined());
}

}  // namespace tandem::app
