#include "tests/e2e/ssh_host.h"

#include <gtest/gtest.h>

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;

// $1: the folder of its files; $2: its address; $3: the folder that it does not see, or nothing.
constexpr const char* kStartHost = R"sh(
set -e
w="$1" address="$2" hidden="$3"
sshd=$(command -v sshd || echo /usr/sbin/sshd)
for program in ssh ssh-keygen "$sshd" unshare; do command -v "$program" >/dev/null || exit 77; done
[ "$(id -u)" = 0 ] || exit 77
mkdir -p "$w/cache" "$w/empty" /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$w/host_key"
ssh-keygen -q -t ed25519 -N '' -f "$w/user_key"
cat >"$w/sshd_config" <<CONF
ListenAddress $address
HostKey $w/host_key
AuthorizedKeysFile $w/user_key.pub
PidFile $w/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
SetEnv XDG_CACHE_HOME=$w/cache
CONF
echo "$address $(cut -d' ' -f1,2 "$w/host_key.pub")" >"$w/known_hosts"
cat >"$w/config" <<CONF
Host *
  User root
  IdentityFile $w/user_key
  IdentitiesOnly yes
  UserKnownHostsFile $w/known_hosts
CONF
if [ -n "$hidden" ]; then
  exec unshare --mount sh -c 'mount --bind "$1" "$2" && exec "$3" -f "$4" -E "$5"' sh \
    "$w/empty" "$hidden" "$sshd" "$w/sshd_config" "$w/sshd.log"
fi
exec "$sshd" -f "$w/sshd_config" -E "$w/sshd.log"
)sh";
constexpr const char* kEndHost = R"sh(
for pid in $(ip netns pids "$(ip netns identify $$)"); do
  [ "$pid" = $$ ] || kill -9 "$pid" 2>/dev/null
done
)sh";
constexpr const char* kHostProcesses = R"sh(
for pid in $(ip netns pids "$(ip netns identify $$)"); do
  [ "$pid" = $$ ] && continue
  case $(cat "/proc/$pid/comm" 2>/dev/null) in
    sshd | ip | "") ;;
    *) tr '\0' ' ' <"/proc/$pid/cmdline"; echo ;;
  esac
done
)sh";

}  // namespace

std::unique_ptr<SshHost> SshHost::make(const Home& home, const Network& network, Files files) {
  std::unique_ptr<SshHost> host(new SshHost(home, network));
  const std::string hidden =
      files == Files::kOwn ? fs::path(TANDEM_BINARY).parent_path().string() : "";
  const Finished started =
      home.start_program(network.on_second() + Words{"sh", "-c", kStartHost, "sh",
                                                     host->folder_.string(), host->name(), hidden})
          .wait();
  if (started.code == 77) return nullptr;
  EXPECT_EQ(started.code, 0) << started.text();
  return host;
}

SshHost::~SshHost() {
  home_.start_program(network_.on_second() + Words{"sh", "-c", kEndHost}).wait();
}

std::string SshHost::processes() const {
  return home_.start_program(network_.on_second() + Words{"sh", "-c", kHostProcesses}).wait().out;
}

}  // namespace tandem::e2e
