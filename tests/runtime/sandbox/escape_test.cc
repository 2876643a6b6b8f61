// Tests runtime/sandbox/run.h, runtime/sandbox/cell.h, runtime/sandbox/keeper.h.
//
// A program that wants to leave, or to harm the machine, makes each attack (attacks.cc) first
// without a sandbox, where it can be made, and it must work there; in the sandbox it must fail. The
// rows are the plans that a machine may come to, for root and for another user: whoever runs the
// test, or `nobody` where that is root. A row that this machine or user cannot make is skipped, and
// says so.
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/base/file.h"
#include "runtime/sandbox/cell.h"
#include "runtime/sandbox/probe.h"
#include "runtime/sandbox/run.h"

namespace tandem::sandbox {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr uid_t kNobody = 65534;
constexpr int kInheritedFd = 100;
constexpr Duration kLong = 100s;  // ends a hang; no attack takes as long

void write_text(const fs::path& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  chmod(path.c_str(), mode);
}

// A program of the system's that gives us the rights of root, or "".
std::string setuid_program_of_system() {
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0) return "";
  for (const char* path :
       {"/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/bin/umount", "/usr/bin/chsh"}) {
    struct stat file {};
    struct statvfs mounted {};
    if (stat(path, &file) == 0 && file.st_uid == 0 && (file.st_mode & S_ISUID) != 0 &&
        access(path, X_OK) == 0 && statvfs(path, &mounted) == 0 &&
        (mounted.f_flag & ST_NOSUID) == 0)
      return path;
  }
  return "";
}

// The targets of the attacks: a state folder with a token and sockets, a job's folder with a script
// and a run folder, and ports of this machine.
class World {
 public:
  World() {
    std::string name = (fs::temp_directory_path() / "tandem-escape-XXXXXX").string();
    root_ = mkdtemp(name.data());
    for (const char* folder : {"", "state", "job", "job/runs", "scratch", "temporary", "link"}) {
      fs::create_directory(root_ / folder);
      chmod((root_ / folder).c_str(), 0777);
    }
    write_text(root_ / "state/token", "the token", 0644);
    write_text(root_ / "job/runs/answers", "the answers", 0644);
    for (const char* file : {"job/script", "job/spare"}) write_text(root_ / file, "#", 0666);
    fs::create_symlink("../state/token", root_ / "job/link");
    fs::copy_file(TANDEM_ATTACKS, program());
    make_setuid_program();
    setenv("TMPDIR", (root_ / "temporary").c_str(), 1);  // of scratch folders of the machine's
    listen_at_path(SOCK_STREAM, "state/agent.sock");
    listen_at_path(SOCK_DGRAM, "state/datagrams.sock");
    listen_at_path(SOCK_STREAM, "link/socket");
    listen_abstract();
    listen_tcp();
  }
  ~World() {
    unsetenv("TMPDIR");
    fs::remove_all(root_);
  }

  fs::path program() const { return root_ / "job/attacks"; }
  fs::path scratch() const { return root_ / "scratch"; }
  fs::path secret() const { return root_ / "state/token"; }
  bool has_scratch_left() const { return !fs::is_empty(root_ / "temporary"); }
  bool has_setuid_program() const { return !setuid_.empty(); }
  fs::path link_folder() const { return root_ / "link"; }
  Profile profile() const {
    return {.memory_bytes = 256u << 20,
            .processes = 32,
            .cpu_seconds = 20,
            .file_bytes = 16u << 20,
            .scratch_bytes = 32u << 20,
            .open_files = 64,
            .readable = {root_ / "job"},
            .hidden = {root_ / "job/runs", root_ / "state"}};
  }
  std::vector<std::string> arguments() const {
    return {"secret=" + secret().string(),
            "hidden=" + (root_ / "job/runs/answers").string(),
            "state=" + (root_ / "state").string(),
            "job=" + (root_ / "job").string(),
            "socket=" + (root_ / "state/agent.sock").string(),
            "datagrams=" + (root_ / "state/datagrams.sock").string(),
            "link=" + (root_ / "link/socket").string(),
            "abstract=" + root_.filename().string(),
            "tcp=" + std::to_string(port_),
            "setuid=" + setuid_,
            "preload=" + preload_,
            "fd=" + std::to_string(kInheritedFd)};
  }

 private:
  // Only root can make one that gives rights.
  void make_setuid_program() {
    if (geteuid() == 0) {
      setuid_ = root_ / "job/setuid_attacks";
      fs::copy_file(TANDEM_ATTACKS, setuid_);
      chmod(setuid_.c_str(), 04755);
    } else {
      setuid_ = setuid_program_of_system();
      preload_ = root_ / "job/gains_nothing";
      fs::copy_file(TANDEM_GAINS_NOTHING, preload_);
    }
  }
  void keep(OwnedFd fd) { open_.push_back(std::move(fd)); }
  void listen_at(int type, const sockaddr_un& address, socklen_t size) {
    OwnedFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    CHECK(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
    if (type == SOCK_STREAM) CHECK(listen(fd.get(), 64) == 0);
    keep(std::move(fd));
  }
  void listen_at_path(int type, const char* name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const fs::path path = root_ / name;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
    listen_at(type, address, sizeof address);
    chmod(path.c_str(), 0777);
  }
  void listen_abstract() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = root_.filename().string();
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    listen_at(SOCK_STREAM, address,
              static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
  }
  void listen_tcp() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(listen(fd.get(), 64) == 0);
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    keep(std::move(fd));
  }

  fs::path root_;
  std::string setuid_, preload_;  // of run_setuid_program
  int port_ = 0;
  std::vector<OwnedFd> open_;
};

// A program without a sandbox.
struct Plain {
  pid_t pid = -1;
  OwnedFd output;
};
Plain start_plain(const World& world, std::vector<std::string> argv) {
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  char token[] = "TOKEN=secret";
  char* const environment[] = {token, nullptr};
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  const OwnedFd write_end(ends[1]);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool moved = chdir(world.scratch().c_str()) == 0;
    dup2(open("/dev/null", O_RDWR), STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    if (moved) execve(words[0], words.data(), environment);
    _exit(3);
  }
  return {pid, OwnedFd(ends[0])};
}

std::string first_line(const OwnedFd& fd) {
  std::string line;
  for (char c = 0; read(fd.get(), &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

// A program in a sandbox of its own, beside that of the attacks.
class Sibling {
 public:
  Sibling(const World& world, const Plan& plan) {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    const OwnedFd output(ends[0]), theirs(ends[1]), null(open("/dev/null", O_RDWR | O_CLOEXEC));
    auto started = Cell::start(plan, world.profile(),
                               {.argv = {world.program(), "be_sibling"},
                                .environment = {"TOKEN=secret"},
                                .input = null.get(),
                                .output = theirs.get(),
                                .errors = null.get()});
    CHECK(started);
    cell_ = *std::move(started);
    folder_ = first_line(output);
  }
  std::vector<std::string> arguments() const {
    return {"sibling=" + std::to_string(cell_->program().value_or(0)), "sibling_folder=" + folder_};
  }

 private:
  std::unique_ptr<Cell> cell_;
  std::string folder_;
};

// One plan for one user. All is done in a child, which takes the user's rights and returns faults.
class Row {
 public:
  Row(const World& world, Plan plan, Profile profile)
      : world_(world), plan_(std::move(plan)), profile_(std::move(profile)) {
    dup2(open(world_.secret().c_str(), O_RDONLY), kInheritedFd);  // which stays open on exec
    victim_ = start_plain(world_, {world_.program(), "be_victim"});
    arguments_ = world_.arguments();
    arguments_.push_back("victim=" + std::to_string(victim_.pid));
    arguments_.push_back("byte=" + first_line(victim_.output));
  }
  ~Row() {
    kill(victim_.pid, SIGKILL);
    waitpid(victim_.pid, nullptr, 0);
  }

  // The faults of all attacks, a line for each; empty: there are none.
  std::string attack_all() {
    const Sibling sibling(world_, plan_);
    for (const std::string& argument : sibling.arguments()) arguments_.push_back(argument);
    std::istringstream list(output_of({world_.program(), "list"}));
    for (std::string name, outside; list >> name >> outside;) {
      if (outside == "act") continue;
      if (name == "run_setuid_program" && !world_.has_setuid_program()) {
        skipped_ = "; " + name + " is skipped: no program here gives the rights of root";
        continue;
      }
      const bool must_work = outside == "all" || (outside == "root" && geteuid() == 0);
      if (must_work && !works_outside(name)) fault(name, "does not work outside a sandbox");
      if (plan_.layers.namespaces == Namespaces::kNone && kNeedOwnFiles.contains(name)) continue;
      expect_refused(name);
      held_ += 1;
      proven_ += must_work ? 1 : 0;
    }
    if (held_ < kAttacksAtLeast) fault("list", "only " + std::to_string(held_) + " were tried");
    return faults_.str();
  }
  // The faults of programs that do not want to end, or to leave anything.
  std::string abuse_all() {
    const Duration soon = 300ms;
    expect_end("spin", RunEnd::kSignal, SIGXCPU, kLong);
    expect_end("spin_and_ignore", RunEnd::kSignal, SIGKILL, kLong);
    expect_end("wait_for_ever", RunEnd::kDeadline, {}, soon);
    expect_end("flood", RunEnd::kOutput, {}, kLong);
    expect_end("flood_errors", RunEnd::kOutput, {}, kLong);
    expect_end("fork_for_ever", RunEnd::kDeadline, {}, soon);
    expect_end("fork_and_leave", {}, {}, soon);
    // A process that needs forks: without them it has none to share its memory with.
    if (plan_.end != EndOfAll::kNoForks) {
      const bool counted = plan_.layers.memory_group;
      expect_end("memory_of_many", counted ? std::nullopt : std::optional(RunEnd::kMemory), {},
                 counted ? soon : kLong);
    }
    expect_end("dump_core", RunEnd::kSignal, SIGABRT, kLong);
    expect_end("grandchild", RunEnd::kExited, 0, kLong);
    expect_end("leave_much", RunEnd::kExited, 0, kLong);
    if (world_.has_scratch_left()) fault("leave_much", "a scratch folder is left");
    if (!fs::exists(world_.secret())) fault("leave_much", "a link was followed");
    return faults_.str();
  }
  // Its link is there for a program that has one.
  std::string connect_link() {
    expect_end("link_by_path", RunEnd::kExited, 0, kLong);
    return faults_.str();
  }
  int held() const { return held_; }
  int proven() const { return proven_; }
  const std::string& skipped() const { return skipped_; }  // and why

 private:
  static constexpr int kAttacksAtLeast = 40;
  // Without a file system of its own a program's scratch folder is one of the machine's, whose
  // files are bounded one by one.
  static inline const std::set<std::string> kNeedOwnFiles{"fill_scratch", "many_files"};

  void fault(const std::string& name, const std::string& what) {
    faults_ << name << ": " << what << "\n";
  }
  std::string output_of(const std::vector<std::string>& argv) {
    const Plain plain = start_plain(world_, argv);
    std::string text;
    for (std::string line; !(line = first_line(plain.output)).empty();) text += line + "\n";
    waitpid(plain.pid, nullptr, 0);
    return text;
  }
  std::vector<std::string> argv_of(const std::string& name) const {
    std::vector<std::string> argv{world_.program(), name};
    argv.insert(argv.end(), arguments_.begin(), arguments_.end());
    return argv;
  }
  bool works_outside(const std::string& name) {
    const Plain plain = start_plain(world_, argv_of(name));
    int status = 0;
    waitpid(plain.pid, &status, 0);
    for (const auto& file : fs::directory_iterator(world_.scratch())) fs::remove(file.path());
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  Result<Outcome> run_inside(const std::string& name, const Profile& profile, Duration deadline) {
    return run(plan_, profile,
               {.argv = argv_of(name), .environment = {"PATH=/bin"}, .deadline = deadline});
  }
  void expect_refused(const std::string& name) {
    const auto outcome = run_inside(name, profile_, kLong);
    if (!outcome) return fault(name, outcome.error().message);
    const bool refused = outcome->end == RunEnd::kExited && outcome->code == 1;
    if (!refused && outcome->end != RunEnd::kSignal)
      fault(name, std::string(spelling(outcome->end)) + " " + std::to_string(outcome->code) +
                      " within the sandbox");
  }
  void expect_end(const std::string& name, std::optional<RunEnd> end, std::optional<int> code,
                  Duration deadline) {
    Profile profile = profile_;
    profile.cpu_seconds = 1;
    const auto outcome = run_inside(name, profile, deadline);
    if (!outcome) return fault(name, outcome.error().message);
    if ((end && outcome->end != *end) || (code && outcome->code != *code))
      fault(name, "ended otherwise: " + std::string(spelling(outcome->end)) + " " +
                      std::to_string(outcome->code));
    if (outcome->output.size() > 1u << 20) fault(name, "more output than allowed");
  }

  const World& world_;
  const Plan plan_;
  const Profile profile_;
  Plain victim_;
  std::vector<std::string> arguments_;
  std::ostringstream faults_;
  std::string skipped_;
  int held_ = 0, proven_ = 0;
};

enum class Files { kOwn, kOfMachine };
enum class User { kRoot, kOther };

uid_t uid_of(User user) {
  if (user == User::kRoot) return 0;
  return geteuid() == 0 ? kNobody : geteuid();
}

// What a child says, as that user; or "SKIP" and why.
std::string as_user(uid_t uid, const std::function<std::string()>& work) {
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  OwnedFd read_end(ends[0]), write_end(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    if (uid != geteuid() && (setgroups(0, nullptr) != 0 || setresgid(uid, uid, uid) != 0 ||
                             setresuid(uid, uid, uid) != 0))
      _exit(3);
    prctl(PR_SET_DUMPABLE, 1);  // as after an exec
    const std::string text = work();
    const bool told =
        write(write_end.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(told ? 0 : 3);
  }
  write_end = OwnedFd();
  std::string text;
  char bytes[4096];
  for (ssize_t got; (got = read(read_end.get(), bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(got));
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? text : text + "the child ended with status " + std::to_string(status);
}

struct Case {
  const char* name;
  SandboxMode mode;
  User user;
  Files files = Files::kOwn;
  int landlock_abi_max = 100;  // as on an older kernel
  bool link = false;           // the program may connect to a socket
};

class Escape : public testing::TestWithParam<Case> {};

// Takes from the machine's layers what the case has not.
std::string try_case(const World& world, const Case& c,
                     const std::function<std::string(Row&)>& work) {
  Layers layers = probe_layers();
  if (c.files == Files::kOwn && layers.namespaces == Namespaces::kNone)
    return "SKIP no namespaces here: " + layers.no_namespaces;
  if (c.files == Files::kOfMachine) layers.namespaces = Namespaces::kNone;
  if (c.files == Files::kOfMachine && layers.landlock_abi == 0) return "SKIP no Landlock here";
  layers.landlock_abi = std::min(layers.landlock_abi, c.landlock_abi_max);
  const auto plan = plan_of(c.mode, layers);
  if (!plan) return plan.error().message;
  const bool whole = c.files == Files::kOwn && layers.landlock_abi > 0;
  if (!whole && plan_of(SandboxMode::kStrict, layers)) return "strict is content with less";
  Profile profile = world.profile();
  if (c.link) profile.sockets = world.link_folder();
  Row row(world, *plan, profile);
  const std::string faults = work(row);
  if (row.held() > 0)
    std::printf("[          ] %s: %d attacks fail, %d of them work without a sandbox%s; %s\n",
                c.name, row.held(), row.proven(), row.skipped().c_str(), text(layers).c_str());
  std::fflush(stdout);
  return faults;
}

void expect_no_faults(const Case& c, const std::function<std::string(Row&)>& work) {
  const uid_t uid = uid_of(c.user);
  if (uid == 0 && geteuid() != 0) GTEST_SKIP() << "a row of root's";
  const World world;
  const std::string faults = as_user(uid, [&] { return try_case(world, c, work); });
  if (faults.starts_with("SKIP")) GTEST_SKIP() << faults;
  EXPECT_EQ(faults, "");
}

TEST_P(Escape, EachAttackFails_XB3_XB4_XB7) {
  const bool link = GetParam().link;
  expect_no_faults(
      GetParam(), [link](Row& row) { return row.attack_all() + (link ? row.connect_link() : ""); });
}

TEST_P(Escape, EachAbuseEndsAndLeavesNothing_XB2_XB6_XB5_XB8) {
  if (GetParam().link) GTEST_SKIP() << "a link changes nothing here";
  expect_no_faults(GetParam(), [](Row& row) { return row.abuse_all(); });
}

constexpr auto kStrict = SandboxMode::kStrict, kAuto = SandboxMode::kAuto;
constexpr auto kRoot = User::kRoot, kOther = User::kOther;
INSTANTIATE_TEST_SUITE_P(
    All, Escape,
    testing::Values(Case{"RootStrict", kStrict, kRoot}, Case{"RootAuto", kAuto, kRoot},
                    Case{"RootAutoWithoutNamespaces", kAuto, kRoot, Files::kOfMachine},
                    Case{"AUserStrict", kStrict, kOther}, Case{"AUserAuto", kAuto, kOther},
                    Case{"AUserAutoWithoutLandlock", kAuto, kOther, Files::kOwn, 0},
                    Case{"AUserAutoWithoutNamespaces", kAuto, kOther, Files::kOfMachine},
                    Case{"AUserAutoWithOldLandlock", kAuto, kOther, Files::kOfMachine, 5},
                    Case{"RootStrictWithALink", kStrict, kRoot, Files::kOwn, 100, true},
                    Case{"AUserAutoWithALink", kAuto, kOther, Files::kOwn, 100, true}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace tandem::sandbox
