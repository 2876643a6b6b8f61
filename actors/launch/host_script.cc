// The agent is a child of the script. A script whose connection is lost goes on waiting for it; the
// script of a later connection finds the agent by its pid and the time of its start, and writes its
// own mark into `owner`, by which the earlier script knows that the agent is no longer its to end.
#include "actors/launch/host_script.h"

#include <charconv>
#include <utility>

namespace tandem::launch {
namespace {

constexpr std::string_view kOurs = "tandem-host ";  // begins each line that the script says
constexpr const char* kScript = R"sh(
umask 077
trap "" HUP
say() { printf "tandem-host %s\n" "$*"; }
digest() { { sha256sum <"$1"; } 2>/dev/null | cut -d " " -f 1; }
born() { cut -d " " -f 22 "/proc/$1/stat" 2>/dev/null; }
IFS= read -r tree
IFS= read -r entry
IFS= read -r sha
IFS= read -r file
IFS= read -r program
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tandem
look() {
  found='' other=''
  if test -e "$cache/bin/$tree/SHA256SUMS"; then
    found=$cache/bin/$tree/$entry
    touch "$cache/bin/$tree"
  elif test "$(digest "$file")" = "$sha"; then
    found=$program
  elif there=$(command -v tandem) && there=$(readlink -f "$there"); then
    held=$there
    test -e "${there%/*}/../libexec/tandem" && held=${there%/*}/../libexec/tandem
    if test "$(digest "$held")" = "$sha"; then
      found=$there
    else
      other="$("$there" --version 2>/dev/null | head -n 1), sha256 $(digest "$held" | cut -c 1-12)"
    fi
  fi
  if test -n "$found"; then say found "$found"; else say not-found "$other"; fi
}
say machine "$(cat /proc/sys/kernel/random/boot_id) $(readlink /proc/self/ns/net)"
look
order=''
while IFS= read -r order; do
  test "$order" = look || break
  look
done
test "$order" = run || exit 0
IFS= read -r name
IFS= read -r controller
IFS= read -r cluster
IFS= read -r public
IFS= read -r secret
IFS= read -r ports
home=$cache/hosts/$cluster/$name
mkdir -p "$home/keys" && cd "$home" && chmod 700 . keys &&
  printf "%s\n" "$public" >keys/.public && mv keys/.public keys/controller.public &&
  printf "%s\n" "$secret" >keys/.secret && mv keys/.secret keys/node.secret ||
  { say failed "$home cannot be written"; exit 1; }
unset secret
me="$$ $(born $$)"
printf "%s\n" "$me" >owner
alive() { test -n "$since" && test "$(born "$pid")" = "$since"; }
mine() { test "$(cat owner 2>/dev/null)" = "$me"; }
pid='' since='' child=''
{ read -r pid since <agent; } 2>/dev/null
if alive; then
  say taken-over "$pid"
else
  # The agent keeps its log within its limits.
  TANDEM_HOME=$home TANDEM_LOG=$home/node.log "$found" node --controller "$controller" --join \
    --name "$name" ${ports:+--ports "$ports"} </dev/null >>node.log 2>&1 &
  pid=$! child=1
  since=$(born "$pid")
  printf "%s %s\n" "$pid" "$since" >agent
  say running "$pid"
fi
exec 3<&0 </dev/null
{
  told=''
  while IFS= read -r order <&3; do
    case $order in
      end) told=1; alive && kill -TERM "$pid" ;;
      now) told=1; alive && kill -INT "$pid" ;;
    esac
  done
  waited=0
  while test -z "$told" && test $waited -lt ALONE && mine && alive; do
    sleep 1
    waited=$((waited + 1))
  done
  test -z "$told" && mine && alive && kill -TERM "$pid"
} >/dev/null 2>&1 &
reader=$!
exec 3<&-
code=-
if test -n "$child"; then
  wait "$pid"
  code=$?
else
  while alive; do sleep 1; done
fi
kill "$reader" 2>/dev/null
mine && rm -rf keys agent owner
last=$(tail -n 20 node.log 2>/dev/null | grep -a "^error" | tail -n 1)
test -n "$last" || last=$(tail -n 1 node.log 2>/dev/null)
say ended "$code" "$last"
)sh";

std::string_view first_word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

}  // namespace

std::vector<std::string> script_lines() {
  std::string script = kScript;
  constexpr std::string_view kGap = "ALONE";
  script.replace(script.find(kGap), kGap.size(), std::to_string(kAloneSeconds));
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < script.size();) {
    const std::size_t end = std::min(script.find('\n', begin), script.size());
    if (end > begin) lines.push_back(script.substr(begin, end - begin));
    begin = end + 1;
  }
  lines.emplace_back(".");
  return lines;
}

std::vector<std::string> program_lines(const HostProgram& program) {
  return {program.tree, program.entry, program.sha256, program.file, program.program};
}

std::vector<std::string> start_lines(const HostAgent& agent) {
  return {"run",
          agent.name,
          agent.controller,
          agent.cluster,
          agent.controller_public,
          agent.node_secret,
          agent.ports};
}

std::optional<HostLine> parse_host_line(std::string_view line) {
  if (!line.starts_with(kOurs)) return std::nullopt;
  line.remove_prefix(kOurs.size());
  const std::string_view word = first_word(line);
  if (word == "machine") return said::Machine{std::string(line)};
  if (word == "found") return said::Found{std::string(line)};
  if (word == "not-found") return said::NotFound{std::string(line)};
  if (word == "running" || word == "taken-over")
    return said::Running{.pid = std::string(line), .taken_over = word == "taken-over"};
  if (word == "failed") return said::Failed{std::string(line)};
  if (word != "ended") return std::nullopt;
  const std::string_view code = first_word(line);
  said::Ended ended{.code = {}, .why = std::string(line)};
  int value = 0;
  const auto read = std::from_chars(code.data(), code.data() + code.size(), value);
  if (read.ec == std::errc() && read.ptr == code.data() + code.size()) ended.code = value;
  return ended;
}

}  // namespace tandem::launch
