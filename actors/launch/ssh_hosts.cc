// The command of ssh is the user's, with words and quotes as a shell reads them, so that a shell
// starts it; it becomes ssh, by which signals and the parent's death reach ssh itself. ssh takes
// the first value of an option that it meets: those that must hold are before the user's, and
// defaults behind them.
#include "actors/launch/ssh_hosts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace tandem::launch {
namespace {

constexpr std::int64_t kPortMax = 65'535;

// Login shells of all kinds take these two lines as they are: they have no line break, and nothing
// between single quotes that csh or fish would read.
constexpr const char* kReadScript =
    "exec sh -c 'while IFS= read -r l && test \"$l\" != .; do "
    "s=$(printf \"%s\\n%s\" \"$s\" \"$l\"); done; eval \"$s\"' tandem-host";
// Trees that were not used for 30 days are removed, and those that a connection has left half.
constexpr const char* kTakeTree =
    "exec sh -c 'umask 077; d=${XDG_CACHE_HOME:-$HOME/.cache}/tandem/bin; "
    "t=$d/.new-$$-$(hostname); "
    "mkdir -p \"$t\" && tar -xf - -C \"$t\" && cd \"$t\" && "
    "sha256sum -c --status SHA256SUMS && cd .. && touch \"$t\" && "
    "{ mv -T \"$t\" \"$d/$0\" 2>/dev/null || test -e \"$d/$0/SHA256SUMS\"; }; "
    "c=$?; rm -rf \"$t\"; "
    "find \"$d\" -mindepth 1 -maxdepth 1 -name \".new-*\" -mmin +60 -exec rm -rf {} +; "
    "find \"$d\" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +; exit $c' ";

Error wrong(const std::string& text, const std::string& why) {
  return {ErrorCode::kInvalid, "`" + text + "` is no host: " + why, "",
          "[USER@]HOST[:PORT], as gpu-1 or root@10.0.0.2:2222; [ADDRESS]:PORT for IPv6"};
}

bool is_plain(std::string_view text, std::string_view besides) {
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           besides.find(c) != besides.npos;
  });
}

// A host in parts, before the names of nodes are chosen.
struct Parts {
  std::string user, host;
  std::optional<std::int64_t> port;
};

Result<std::int64_t> parse_port(const std::string& text, std::string_view port) {
  std::int64_t value = 0;
  const auto read = std::from_chars(port.data(), port.data() + port.size(), value);
  if (read.ec != std::errc() || read.ptr != port.data() + port.size() || value < 1 ||
      value > kPortMax)
    return wrong(text, "`" + std::string(port) + "` is no port");
  return value;
}

Result<Parts> parse_host(const std::string& text) {
  Parts parts;
  std::string_view rest = text;
  if (const auto at = rest.rfind('@'); at != rest.npos) {
    parts.user = rest.substr(0, at);
    if (!is_plain(parts.user, "._-+\\@")) return wrong(text, "its user is none");
    rest.remove_prefix(at + 1);
  }
  std::string_view port;
  bool has_port = false;
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    if (end == rest.npos) return wrong(text, "a bracket is open");
    parts.host = rest.substr(1, end - 1);
    if (!is_plain(parts.host, ".:%")) return wrong(text, "no address is in the brackets");
    rest.remove_prefix(end + 1);
    has_port = !rest.empty();
    if (has_port && !rest.starts_with(':')) return wrong(text, "a port begins with a colon");
    if (has_port) port = rest.substr(1);
  } else {
    const auto colon = rest.find(':');
    if (colon != rest.rfind(':')) return wrong(text, "an IPv6 address needs brackets");
    parts.host = rest.substr(0, colon);
    has_port = colon != rest.npos;
    if (has_port) port = rest.substr(colon + 1);
    if (!is_plain(parts.host, "._-")) return wrong(text, "its name is none");
  }
  if (!has_port) return parts;
  const auto value = parse_port(text, port);
  if (!value) return value.error();
  parts.port = *value;
  return parts;
}

std::string node_name(const Parts& parts, bool with_port) {
  std::string name = parts.host;
  std::ranges::replace_if(
      name, [](char c) { return c == ':' || c == '%'; }, '-');
  return with_port && parts.port ? name + "-" + std::to_string(*parts.port) : name;
}

// Hosts as they are written, each with its place for errors.
struct Written {
  std::string text, where;
};

Result<HostList> hosts_of(const std::vector<Written>& written) {
  std::vector<Parts> all;
  std::map<std::string, int> times;
  for (const Written& one : written) {
    auto parts = parse_host(one.text);
    if (!parts) {
      Error error = parts.error();
      error.where = one.where;
      return error;
    }
    ++times[parts->host];
    all.push_back(*std::move(parts));
  }
  if (all.empty()) return Error{ErrorCode::kInvalid, "there is no host", "", "name one at least"};
  if (all.size() > kSshHostsMax)
    return Error{ErrorCode::kInvalid,
                 "there are " + std::to_string(all.size()) + " hosts, and at most " +
                     std::to_string(kSshHostsMax) + " are reached by ssh",
                 "", "an engine for clusters starts more: `tandem slurm`, `kube` or `ray`"};
  HostList list;
  std::map<std::string, std::size_t> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Parts& parts = all[i];
    const std::string name = node_name(parts, times[parts.host] > 1);
    if (!names.emplace(name, i).second)
      return Error{ErrorCode::kInvalid, "`" + written[i].text + "` is there twice",
                   written[i].where, "one agent offers the whole host: leave one of both out"};
    list.hosts.push_back({.target = parts.user.empty() ? parts.host : parts.user + "@" + parts.host,
                          .port = parts.port,
                          .name = name});
  }
  return list;
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> words;
  while (true) {
    const auto begin = line.find_first_not_of(kBlanks);
    if (begin == line.npos) return words;
    const auto end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

// `sh -c SCRIPT ZEROTH`, behind which come the words of ssh, "$@" in the script.
std::vector<std::string> shell_argv(const std::string& script, const std::string& zeroth) {
  return {"sh", "-c", script, zeroth};
}

void add_host(std::vector<std::string>& argv, const SshHost& host) {
  if (host.port) argv.insert(argv.end(), {"-p", std::to_string(*host.port)});
  argv.insert(argv.end(), {"--", host.target});
}

void add_options(std::vector<std::string>& argv, const std::vector<std::string>& options) {
  for (const std::string& option : options) argv.insert(argv.end(), {"-o", option});
}

}  // namespace

Result<HostList> parse_hosts(std::string_view list) {
  std::vector<Written> written;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const auto words = words_of(list.substr(begin, end - begin));
    if (words.size() != 1)
      return wrong(std::string(list.substr(begin, end - begin)),
                   words.empty() ? "nothing is there" : "hosts are separated by commas");
    written.push_back({std::string(words.front()), "--hosts"});
    begin = end + 1;
  }
  return hosts_of(written);
}

Result<HostList> parse_hosts_file(std::string_view text, std::string_view origin) {
  std::vector<Written> written;
  std::vector<std::string> warnings;
  int line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string where = std::string(origin) + ":" + std::to_string(++line_number);
    const auto words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string word(words[i]);
      if (!word.starts_with("slots=") && !word.starts_with("max_slots=") &&
          !word.starts_with("max-slots="))
        return Error{ErrorCode::kInvalid, "`" + word + "` means nothing behind a host", where,
                     "one host in each line; behind # is a comment"};
      warnings.push_back(where + ": `" + word +
                         "` is left out: the agent of a host offers all of it");
    }
    written.push_back({std::string(words.front()), where});
  }
  auto list = hosts_of(written);
  if (!list) {
    Error error = list.error();
    if (error.where.empty()) error.where = origin;
    return error;
  }
  list->warnings = std::move(warnings);
  return list;
}

std::vector<std::string> connect_argv(const SshSettings& settings, const SshHost& host,
                                      const std::filesystem::path& control) {
  auto argv = shell_argv("exec " + settings.command + " \"$@\" 2>&1", "ssh");
  argv.emplace_back("-T");
  add_options(argv, {"BatchMode=yes", "ControlMaster=yes", "ControlPath=" + control.string(),
                     "ControlPersist=no", "ClearAllForwardings=yes"});
  add_options(argv, settings.options);
  add_options(argv, {"ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"});
  add_host(argv, host);
  argv.emplace_back(kReadScript);
  return argv;
}

std::vector<std::string> copy_argv(const SshSettings& settings, const SshHost& host,
                                   const std::filesystem::path& control,
                                   const std::filesystem::path& folder, const std::string& tree) {
  // The files are links into the build, which are followed.
  auto argv =
      shell_argv("tar -chf - -C \"$0\" . | " + settings.command + " \"$@\" 2>&1", folder.string());
  argv.emplace_back("-T");
  add_options(argv, {"BatchMode=yes", "ControlMaster=no", "ControlPath=" + control.string()});
  add_options(argv, settings.options);
  add_host(argv, host);
  argv.push_back(kTakeTree + tree);
  return argv;
}

std::vector<std::string> settings_argv(const SshSettings& settings, const SshHost& host) {
  auto argv = shell_argv("exec " + settings.command + " \"$@\"", "ssh");
  argv.emplace_back("-G");
  add_options(argv, settings.options);
  add_host(argv, host);
  return argv;
}

std::string address_in_settings(std::string_view text, const SshHost& host) {
  constexpr std::string_view kKey = "hostname ";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const auto line = text.substr(0, end); line.starts_with(kKey))
      return std::string(line.substr(kKey.size()));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto at = host.target.rfind('@');
  return at == host.target.npos ? host.target : host.target.substr(at + 1);
}

}  // namespace tandem::launch
