// Values are checked where they are parsed, so that a mistake has exit code 64 and nothing is
// started.
#include "actors/cli/cluster_options.h"

#include <algorithm>
#include <cctype>

#include "actors/cli/arguments.h"

namespace tandem::cli {
namespace {

constexpr const char* kPortHelp =
    "First of three ports: nodes dial PORT, payloads travel by PORT+1, and HTTP, which commands "
    "and --address use, is PORT+2. 0: any free ones; without it 7420, and HTTP 7422";

constexpr const char* kSizeExample = "as in 8GiB or 512MiB";

// Characters of a host's name or an IPv4 address; whether it exists is not asked.
std::string not_a_host(const std::string& text) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-'; };
  const bool is_host = !text.empty() && std::isalnum(static_cast<unsigned char>(text[0])) != 0 &&
                       std::ranges::all_of(text, plain);
  return is_host ? "" : "`" + text + "` is neither an IPv4 address nor a host's name";
}
// An empty text means that the value is good.
const CLI::Validator kHost(not_a_host, "");

}  // namespace

void add_listening_options(CLI::App* app, int& port, DoorFlags& door) {
  // The two ports behind it must exist too.
  app->add_option("--port", port, kPortHelp)->option_text("PORT")->check(CLI::Range(0, 65533));
  app->add_option("--bind", door.bind,
                  "The address of this machine at which nodes of other hosts reach the controller; "
                  "127.0.0.1 without it. HTTP stays on 127.0.0.1")
      ->option_text("ADDRESS")
      ->check(CLI::ValidIPV4);
  app->add_option("--allow-host", door.allow_hosts,
                  "A name, besides localhost, by which HTTP clients may call this controller; "
                  "repeatable")
      ->option_text("NAME")
      ->allow_extra_args(false);
  app->add_flag("--metrics-without-token", door.metrics_without_token,
                "Serve /metrics to whoever can connect");
}

void add_node_options(CLI::App* app, NodeCommand& node, std::string& memory) {
  app->add_option("--name", node.name, "Its name; else the host's")->option_text("NAME");
  app->add_option("--controller", node.controller,
                  "Where the controller listens for nodes, its --port; else from the file that it "
                  "wrote")
      ->option_text("HOST:PORT");
  app->add_option(
         "--bind", node.bind,
         "The address of this machine at which its actors serve weights to other hosts and "
         "the learner's ranks meet; else the one from which it reaches --controller")
      ->option_text("ADDRESS")
      ->check(CLI::ValidIPV4);
  app->add_option("--advertise", node.advertise,
                  "How other hosts reach --bind, where they use another address")
      ->option_text("ADDRESS")
      ->check(kHost);
  app->add_option("--cpus", node.cpus, "CPUs it offers; else those this process may use")
      ->option_text("N")
      ->check(CLI::Range(0.01, 65536.0));
  add_memory_option(app, memory);
}

void add_memory_option(CLI::App* app, std::string& memory) {
  app->add_option("--memory", memory,
                  "Memory that the node offers, if the machine has it; else what the machine and "
                  "its cgroup leave")
      ->option_text("SIZE");
}

Result<std::optional<std::int64_t>> memory_offer(const std::string& memory) {
  if (memory.empty()) return std::optional<std::int64_t>();
  const std::optional<std::int64_t> bytes = parse_bytes(memory);
  if (!bytes) return usage_error("`--memory " + memory + "` is not a size", kSizeExample);
  if (*bytes < kMemoryOfferMin)
    return usage_error("`--memory " + memory + "` is " + std::to_string(*bytes) +
                           " bytes, and a node offers at least 64 MiB",
                       kSizeExample);
  return bytes;
}

}  // namespace tandem::cli
