// The program of escape_test.cc: each attack is a function that tries to leave a sandbox or to
// abuse it, and says whether it could. `attacks list` prints the table, `attacks NAME KEY=VALUE…`
// runs one: exit code 0 says that it worked, 1 that it was refused, with the reason on stdout.
//
// It is compiled without sanitizers, whose shadow memory would need more than a sandbox gives.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/runtime/sandbox/abuses.h"

namespace tandem::sandbox {
namespace {

std::map<std::string, std::string> given;  // KEY=VALUE of the command line

int number(const char* key) { return std::atoi(given[key].c_str()); }

bool can_read(const std::string& path) {
  std::ifstream file(path);
  return file.get() != EOF;
}

bool reads(const std::string& path, const std::string& text) {
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  return all.find(text) != std::string::npos;
}

bool can_open(const std::string& path, int flags) { return open(path.c_str(), flags, 0600) >= 0; }

bool lists(const std::string& folder, const std::string& name) {
  DIR* const all = opendir(folder.c_str());
  if (!all) return false;
  while (const dirent* entry = readdir(all))
    if (name == entry->d_name) return true;
  return false;
}

sockaddr_in loopback(int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return to;
}

sockaddr_un unix_address(const std::string& name, socklen_t* size) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, name.data(), name.size());
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() +
                                 (name[0] == '\0' ? 0 : 1));
  return to;
}

bool connects_unix(int type, const std::string& name) {
  socklen_t size = 0;
  const sockaddr_un to = unix_address(name, &size);
  const int fd = socket(AF_UNIX, type, 0);
  return fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&to), size) == 0;
}

// network
bool tcp_connect() {
  const sockaddr_in to = loopback(number("tcp"));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  return fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}
bool link_by_path() { return connects_unix(SOCK_STREAM, at("link")); }
bool tcp_listen() {
  const sockaddr_in any = loopback(0);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  return fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0 &&
         listen(fd, 1) == 0;
}
bool udp_send() {
  const sockaddr_in to = loopback(number("tcp"));
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  return fd >= 0 && sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 1;
}
bool ipv6_socket() { return socket(AF_INET6, SOCK_STREAM, 0) >= 0; }
bool netlink_socket() { return socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0; }
bool raw_socket() { return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0; }
bool packet_socket() { return socket(AF_PACKET, SOCK_RAW, 0) >= 0; }
bool machine_socket() { return socket(AF_VSOCK, SOCK_STREAM, 0) >= 0; }  // to the host of a VM
bool crypto_socket() { return socket(AF_ALG, SOCK_SEQPACKET, 0) >= 0; }
bool unix_by_path() { return connects_unix(SOCK_STREAM, at("socket")); }
bool unix_datagram_by_path() { return connects_unix(SOCK_DGRAM, at("datagrams")); }
bool unix_abstract() { return connects_unix(SOCK_STREAM, std::string(1, '\0') + at("abstract")); }
bool pair_sends_to_path() {
  int pair[2];
  socklen_t size = 0;
  const sockaddr_un to = unix_address(at("datagrams"), &size);
  return socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 &&
         sendto(pair[0], "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), size) == 1;
}

// files
bool read_secret() { return can_read(at("secret")); }
bool read_hidden() { return can_read(at("hidden")); }
bool list_state() { return lists(at("state"), "token"); }
bool read_by_link_of_folder() { return can_read(at("job") + "/link"); }
bool read_by_own_link() {
  return symlink(at("secret").c_str(), "own_link") == 0 && can_read("own_link");
}
bool read_by_hard_link() {
  return link(at("secret").c_str(), "hard_link") == 0 && can_read("hard_link");
}
bool read_by_dots() {
  std::string up;
  for (int i = 0; i < 20; ++i) up += "../";
  return can_read(up + at("secret"));
}
bool read_by_root_of_process() { return can_read("/proc/self/root" + at("secret")); }
bool read_by_root_of_keeper() { return can_read("/proc/1/root" + at("secret")); }
bool read_users() { return reads("/etc/passwd", "daemon"); }
bool read_shadow() { return can_read("/etc/shadow"); }
bool write_state() { return can_open(at("state") + "/new", O_CREAT | O_WRONLY); }
bool write_job() { return can_open(at("job") + "/new", O_CREAT | O_WRONLY); }
bool write_script() { return can_open(at("job") + "/script", O_WRONLY); }
bool truncate_script() { return truncate((at("job") + "/script").c_str(), 0) == 0; }
bool remove_script() { return unlink((at("job") + "/spare").c_str()) == 0; }
bool rename_script() {
  return rename((at("job") + "/script").c_str(), (at("job") + "/script").c_str()) == 0 &&
         can_open(at("job") + "/script", O_RDWR);
}
bool write_usr() { return can_open("/usr/tandem-attack", O_CREAT | O_WRONLY); }
bool write_root() { return mkdir("/tandem-attack", 0700) == 0; }
bool write_device_folder() { return can_open("/dev/tandem-attack", O_CREAT | O_WRONLY); }
bool write_shared_memory() { return can_open("/dev/shm/../tandem-attack", O_CREAT | O_WRONLY); }
bool make_device() { return mknod("disk", S_IFBLK | 0600, makedev(254, 0)) == 0; }
bool kernel_log() { return can_open("/dev/kmsg", O_RDONLY); }
bool write_core_pattern() { return can_open("/proc/sys/kernel/core_pattern", O_WRONLY); }
bool system_request() { return can_open("/proc/sysrq-trigger", O_WRONLY); }
bool memory_of_kernel() {
  return can_open("/proc/kcore", O_RDONLY) || can_open("/dev/mem", O_RDONLY);
}
bool symbols_of_kernel() { return can_read("/proc/kallsyms"); }
bool words_of_kernel() { return can_read("/proc/cmdline"); }
bool read_sys() { return can_read("/sys/kernel/notes") || lists("/sys", "kernel"); }
bool make_cgroup() {
  return mkdir("/sys/fs/cgroup/pids/tandem-attack", 0700) == 0 ||
         mkdir("/sys/fs/cgroup/tandem-attack", 0700) == 0;
}
bool inherited_descriptor() { return fcntl(number("fd"), F_GETFD) >= 0; }
bool own_executable() {
  return can_open("/proc/self/exe", O_RDONLY) && can_open(at("job") + "/attacks", O_RDWR);
}

// other processes
int victim() { return number("victim"); }
bool see_victim() { return lists("/proc", at("victim")); }
bool victims_environment() { return reads("/proc/" + at("victim") + "/environ", "TOKEN=secret"); }
bool victims_memory() { return can_open("/proc/" + at("victim") + "/mem", O_RDONLY); }
bool victims_root() { return can_read("/proc/" + at("victim") + "/root" + at("secret")); }
bool victims_descriptors() { return opendir(("/proc/" + at("victim") + "/fd").c_str()) != nullptr; }
bool signal_sibling() { return kill(number("sibling"), 0) == 0; }
bool siblings_environment() { return can_read("/proc/" + at("sibling") + "/environ"); }
bool siblings_file() { return can_read(at("sibling_folder") + "/mine"); }
bool keepers_memory() { return can_open("/proc/" + std::to_string(getppid()) + "/mem", O_RDONLY); }
bool keepers_environment() { return can_read("/proc/" + std::to_string(getppid()) + "/environ"); }
bool keepers_descriptors() {
  return opendir(("/proc/" + std::to_string(getppid()) + "/fd").c_str()) != nullptr;
}
bool signal_victim() { return kill(victim(), 0) == 0; }
bool queue_signal() { return sigqueue(victim(), 0, {}) == 0; }
bool pidfd_signal() {
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, victim(), 0));
  return fd >= 0 && syscall(SYS_pidfd_send_signal, fd, 0, nullptr, 0) == 0;
}
bool trace_victim() { return ptrace(PTRACE_ATTACH, victim(), nullptr, nullptr) == 0; }
bool trace_parent() { return ptrace(PTRACE_SEIZE, getppid(), nullptr, nullptr) == 0; }
bool trace_itself() { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0; }
bool read_victim() {
  char byte = 0;
  iovec here{&byte, 1},
      there{reinterpret_cast<void*>(std::strtoull(at("byte").c_str(), nullptr, 10)), 1};
  return process_vm_readv(victim(), &here, 1, &there, 1, 0) == 1;
}
bool limits_of_victim() {
  rlimit now{};
  return prlimit(victim(), RLIMIT_NOFILE, nullptr, &now) == 0;
}
bool priority_of_victim() {
  return setpriority(PRIO_PROCESS, static_cast<id_t>(victim()), 19) == 0;
}
bool affinity_of_victim() {
  cpu_set_t all;
  CPU_ZERO(&all);
  CPU_SET(0, &all);
  CPU_SET(1, &all);
  return sched_setaffinity(victim(), sizeof all, &all) == 0;
}
bool stop_parent() {
  if (kill(getppid(), SIGSTOP) != 0) return false;
  return reads("/proc/" + std::to_string(getppid()) + "/stat", ") T ");
}

// rights
bool become_root() { return setresuid(0, 0, 0) == 0 && geteuid() == 0; }
bool is_root() { return geteuid() == 0; }
// Either root's copy of this program or a program of the system's, which gains_nothing.cc ends
// if it is given no rights.
bool run_setuid_program() {
  const std::string program = at("setuid"), preload = at("preload");
  if (!preload.empty()) setenv("LD_PRELOAD", preload.c_str(), 1);
  execl(program.c_str(), program.c_str(), preload.empty() ? "is_root" : "--help", nullptr);
  return false;
}
bool set_capability() { return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0) == 0; }
bool mount_tmpfs() { return mount("none", "/tmp", "tmpfs", 0, nullptr) == 0; }
bool remount_root() { return mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND, nullptr) == 0; }
bool unmount_usr() { return umount2("/usr", MNT_DETACH) == 0; }
bool mount_by_new_calls() { return syscall(SYS_fsopen, "tmpfs", 0) >= 0; }
bool clone_mount() { return syscall(SYS_open_tree, AT_FDCWD, "/", 1) >= 0; }
bool change_root() { return chroot(".") == 0; }
bool new_user_namespace() { return unshare(CLONE_NEWUSER) == 0; }
bool new_user_namespace_by_clone() {
  const long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, 0);
  if (pid == 0) _exit(0);
  return pid > 0;
}
bool new_user_namespace_by_clone3() {
  struct {
    std::uint64_t flags, pidfd, child, parent, signal, stack, stack_size, tls;
  } arguments{CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0};
  const long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) _exit(0);
  return pid > 0;
}
bool enter_namespace() {
  const int fd = open(("/proc/" + at("victim") + "/ns/user").c_str(), O_RDONLY);
  return fd >= 0 && (setns(fd, CLONE_NEWUSER) == 0 || errno == EINVAL);  // it is our own already
}
bool set_host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return sethostname(name, std::strlen(name)) == 0;
}
bool add_key() {
  return syscall(SYS_add_key, "user", "tandem", "x", 1, KEY_SPEC_PROCESS_KEYRING) >= 0;
}
bool session_keyring() {
  return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1) >= 0;
}
bool request_key() {
  return syscall(SYS_request_key, "user", "tandem", nullptr, 0) >= 0 || errno == ENOKEY;
}
// Refused for its wrong arguments, rather than as a whole: then the kernel's part is within reach.
bool bpf() { return syscall(SYS_bpf, 0xffff, nullptr, 0) >= 0 || errno == EINVAL; }
bool perf_event() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof attributes;
  attributes.exclude_kernel = 1;
  return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0) >= 0 || errno == ENOENT;
}
bool user_fault() { return syscall(SYS_userfaultfd, 1) >= 0; }
bool io_uring() {
  char parameters[256] = {};
  return syscall(SYS_io_uring_setup, 1, parameters) >= 0;
}
bool handle_of_file() {
  struct {
    unsigned bytes;
    int type;
    char handle[128];
  } handle{128, 0, {}};
  int mount_id = 0;
  return syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &handle, &mount_id, 0) == 0;
}
bool change_personality() { return personality(0x0400000) >= 0; }  // READ_IMPLIES_EXEC
bool type_into_terminal() {
  const int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
  return ioctl(terminal >= 0 ? terminal : 0, TIOCSTI, "x") == 0;
}
bool old_abi() { return syscall(0x40000000 | SYS_getpid) > 0; }
bool unknown_call() { return syscall(462, nullptr, 0, 0) == 0; }  // mseal, where the kernel has it
bool swap_off() { return syscall(SYS_swapoff, "/nowhere") == 0 || errno == ENOENT; }
bool set_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return clock_settime(CLOCK_REALTIME, &now) == 0;
}

// resources
bool many_processes() {
  std::vector<pid_t> made;
  while (made.size() < 200) {
    const pid_t pid = fork();
    if (pid < 0) break;
    if (pid == 0)
      for (;;) pause();
    made.push_back(pid);
  }
  const int error = errno;
  for (const pid_t pid : made) kill(pid, SIGKILL);
  errno = error;
  return made.size() == 200;
}
bool many_threads() {
  for (int i = 0; i < 200; ++i) {
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    const auto wait = [](void*) -> void* {
      for (;;) pause();
    };
    if ((errno = pthread_create(&thread, &small, wait, nullptr)) != 0) return false;
  }
  return true;
}
bool much_memory() {
  return touch(static_cast<char*>(mmap(nullptr, kMuchMemory, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
               kMuchMemory);
}
bool shared_memory() {
  const int id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
  if (id < 0) return false;
  shmctl(id, IPC_RMID, nullptr);
  return true;
}
bool memory_file() { return syscall(SYS_memfd_create, "x", 0) >= 0; }
bool locked_memory() {
  void* const bytes =
      mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mlock(bytes, 1 << 20) == 0;
}
bool fill_file(const char* name, std::size_t size) {
  static char block[1 << 20];
  const int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  for (std::size_t done = 0; fd >= 0 && done < size; done += sizeof block)
    if (write(fd, block, sizeof block) != sizeof block) return false;
  return fd >= 0 && close(fd) == 0;
}
bool large_file() {
  signal(SIGXFSZ, SIG_IGN);
  return fill_file("large", 32u << 20);
}
bool sparse_file() {
  signal(SIGXFSZ, SIG_IGN);
  const int fd = open("sparse", O_CREAT | O_WRONLY, 0600);
  return fd >= 0 && ftruncate(fd, off_t{1} << 40) == 0;
}
bool fill_scratch() {
  for (int i = 0; i < 64; ++i)
    if (!fill_file(("part" + std::to_string(i)).c_str(), 1 << 20)) return false;
  return true;
}
bool many_files() {
  for (int i = 0; i < 3000; ++i) {
    const int fd = open(("file" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY, 0600);
    if (fd < 0) return false;
    close(fd);
  }
  return true;
}
bool many_descriptors() {
  for (int i = 0; i < 500; ++i)
    if (open("/dev/null", O_RDONLY) < 0) return false;
  return true;
}
bool raise_limit() {
  rlimit wanted{RLIM_INFINITY, RLIM_INFINITY};
  return setrlimit(RLIMIT_FSIZE, &wanted) == 0;
}

struct Attack {
  const char* name;
  bool (*run)();
  // Where the attack is known to work without a sandbox: `all`, `root` alone, or `untried`, since
  // it would harm the machine or the test, or since the machine may refuse it anyway. `act`: the
  // test looks at what becomes of the run.
  const char* outside;
};
#define ATTACK(name, outside) \
  { #name, name, outside }
constexpr Attack kAttacks[] = {
    ATTACK(tcp_connect, "all"),
    ATTACK(tcp_listen, "all"),
    ATTACK(udp_send, "all"),
    ATTACK(ipv6_socket, "untried"),
    ATTACK(netlink_socket, "all"),
    ATTACK(raw_socket, "root"),
    ATTACK(packet_socket, "root"),
    ATTACK(machine_socket, "untried"),
    ATTACK(crypto_socket, "untried"),
    ATTACK(unix_by_path, "all"),
    ATTACK(unix_datagram_by_path, "all"),
    ATTACK(unix_abstract, "all"),
    ATTACK(pair_sends_to_path, "all"),
    ATTACK(read_secret, "all"),
    ATTACK(read_hidden, "all"),
    ATTACK(list_state, "all"),
    ATTACK(read_by_link_of_folder, "all"),
    ATTACK(read_by_own_link, "all"),
    ATTACK(read_by_hard_link, "root"),
    ATTACK(read_by_dots, "all"),
    ATTACK(read_by_root_of_process, "all"),
    ATTACK(read_by_root_of_keeper, "untried"),
    ATTACK(read_users, "all"),
    ATTACK(read_shadow, "root"),
    ATTACK(write_state, "all"),
    ATTACK(write_job, "all"),
    ATTACK(write_script, "all"),
    ATTACK(truncate_script, "all"),
    ATTACK(remove_script, "untried"),
    ATTACK(rename_script, "all"),
    ATTACK(write_usr, "untried"),
    ATTACK(write_root, "untried"),
    ATTACK(write_device_folder, "untried"),
    ATTACK(write_shared_memory, "untried"),
    ATTACK(make_device, "root"),
    ATTACK(kernel_log, "untried"),
    ATTACK(write_core_pattern, "root"),
    ATTACK(system_request, "untried"),
    ATTACK(memory_of_kernel, "untried"),
    ATTACK(symbols_of_kernel, "untried"),
    ATTACK(words_of_kernel, "all"),
    ATTACK(read_sys, "all"),
    ATTACK(make_cgroup, "untried"),
    ATTACK(inherited_descriptor, "all"),
    ATTACK(own_executable, "untried"),
    ATTACK(see_victim, "all"),
    ATTACK(victims_environment, "all"),
    ATTACK(victims_memory, "all"),
    ATTACK(victims_root, "all"),
    ATTACK(victims_descriptors, "all"),
    ATTACK(signal_sibling, "untried"),
    ATTACK(siblings_environment, "untried"),
    ATTACK(siblings_file, "untried"),
    ATTACK(keepers_memory, "untried"),
    ATTACK(keepers_environment, "untried"),
    ATTACK(keepers_descriptors, "untried"),
    ATTACK(signal_victim, "all"),
    ATTACK(queue_signal, "all"),
    ATTACK(pidfd_signal, "all"),
    ATTACK(trace_victim, "untried"),
    ATTACK(trace_parent, "untried"),
    ATTACK(trace_itself, "all"),
    ATTACK(read_victim, "all"),
    ATTACK(limits_of_victim, "all"),
    ATTACK(priority_of_victim, "all"),
    ATTACK(affinity_of_victim, "all"),
    ATTACK(stop_parent, "untried"),
    ATTACK(become_root, "root"),
    ATTACK(is_root, "root"),
    ATTACK(run_setuid_program, "all"),
    ATTACK(set_capability, "untried"),
    ATTACK(mount_tmpfs, "untried"),
    ATTACK(remount_root, "untried"),
    ATTACK(unmount_usr, "untried"),
    ATTACK(mount_by_new_calls, "root"),
    ATTACK(clone_mount, "root"),
    ATTACK(change_root, "root"),
    ATTACK(new_user_namespace, "all"),
    ATTACK(new_user_namespace_by_clone, "all"),
    ATTACK(new_user_namespace_by_clone3, "all"),
    ATTACK(enter_namespace, "all"),
    ATTACK(set_host_name, "root"),
    ATTACK(add_key, "all"),
    ATTACK(session_keyring, "all"),
    ATTACK(request_key, "all"),
    ATTACK(bpf, "untried"),
    ATTACK(perf_event, "untried"),
    ATTACK(user_fault, "untried"),
    ATTACK(io_uring, "untried"),
    ATTACK(handle_of_file, "untried"),
    ATTACK(change_personality, "all"),
    ATTACK(type_into_terminal, "untried"),
    ATTACK(old_abi, "untried"),
    ATTACK(unknown_call, "untried"),
    ATTACK(swap_off, "untried"),
    ATTACK(set_clock, "untried"),
    ATTACK(many_processes, "all"),
    ATTACK(many_threads, "all"),
    ATTACK(much_memory, "all"),
    ATTACK(shared_memory, "all"),
    ATTACK(memory_file, "all"),
    ATTACK(locked_memory, "untried"),
    ATTACK(large_file, "all"),
    ATTACK(sparse_file, "all"),
    ATTACK(fill_scratch, "all"),
    ATTACK(many_files, "all"),
    ATTACK(many_descriptors, "all"),
    ATTACK(raise_limit, "untried"),
    ATTACK(spin, "act"),
    ATTACK(spin_and_ignore, "act"),
    ATTACK(wait_for_ever, "act"),
    ATTACK(flood, "act"),
    ATTACK(flood_errors, "act"),
    ATTACK(fork_for_ever, "act"),
    ATTACK(fork_and_leave, "act"),
    ATTACK(memory_of_many, "act"),
    ATTACK(dump_core, "act"),
    ATTACK(grandchild, "act"),
    ATTACK(link_by_path, "act"),
    ATTACK(leave_much, "act"),
    ATTACK(be_sibling, "act"),
    ATTACK(be_victim, "act"),
};

int run_attack(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "list";
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    given[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  for (const Attack& attack : kAttacks) {
    if (name == "list") std::printf("%s %s\n", attack.name, attack.outside);
    if (name != attack.name) continue;
    errno = 0;
    if (attack.run()) return 0;
    std::printf("refused: %s\n", std::strerror(errno));
    return 1;
  }
  return name == "list" ? 0 : 2;
}

}  // namespace

const std::string& at(const char* key) { return given[key]; }

}  // namespace tandem::sandbox

int main(int argc, char** argv) { return tandem::sandbox::run_attack(argc, argv); }
