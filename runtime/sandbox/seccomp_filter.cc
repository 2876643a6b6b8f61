// Each refused call is two instructions: a comparison with its number and the return. The kernel
// remembers which numbers are allowed whatever their arguments, and does not run the filter for
// them, so the length of the list costs little.
#include "runtime/sandbox/seccomp_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace tandem::sandbox {
namespace {

// The two architectures that are known number their calls differently; read() tells them apart.
constexpr bool kX86 = SYS_read == 0;
constexpr std::uint32_t kArchitecture = kX86 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
constexpr std::uint32_t kX32Calls = 0x40000000;  // the first number of the x32 ABI on x86-64
constexpr std::uint32_t kLastKnown = 450;        // set_mempolicy_home_node, of Linux 5.17
constexpr std::uint32_t kX86Fork = 57, kX86Vfork = 58;
constexpr std::uint32_t kNewNamespaces = 0x7e020000;  // every CLONE_NEW* that clone() knows
constexpr std::uint32_t kOwnPid = 0x7fffffff;         // the place that filter_own_pid() fills
constexpr std::uint32_t kSocketType = 0xf;            // SOCK_STREAM and so on, without flags

// Refused with EPERM whatever the arguments.
constexpr long kRefused[] = {
    // other processes
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_process_madvise,
    SYS_process_mrelease,
    SYS_migrate_pages,
    SYS_move_pages,
    SYS_ioprio_set,
    SYS_pidfd_send_signal,
    // mounts and namespaces
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_sethostname,
    SYS_setdomainname,
    // the machine
    SYS_reboot,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_vhangup,
    SYS_nfsservctl,
    // parts of the kernel that most attacks on it go through
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_personality,
    // memory that no limit of the process counts
    SYS_memfd_create,
    SYS_memfd_secret,
    SYS_shmget,
    SYS_semget,
    SYS_msgget,
    SYS_mq_open,
    // sockets (XB-7)
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
};
// lookup_dcookie is gone from newer headers; the rest exists on x86-64 alone: iopl, ioperm,
// modify_ldt, uselib, _sysctl, ustat, sysfs, create_module, get_kernel_syms, query_module, vserver.
constexpr long kRefusedOnX86[] = {172, 173, 154, 134, 156, 136, 139, 174, 177, 178, 236, 212};

class Filter {
 public:
  void load(std::uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void argument(unsigned index) {  // its lower half; both architectures store that half first
    load(offsetof(seccomp_data, args) + 8 * index);
  }
  void number() { load(offsetof(seccomp_data, nr)); }
  void mask(std::uint32_t bits) { add(BPF_ALU | BPF_AND | BPF_K, bits); }
  void refuse(int error) { add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)); }
  void allow() { add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); }
  void kill() { add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS); }
  // The next `count` instructions run only if the loaded value compares so with `value`.
  void if_equal(std::uint32_t value, unsigned count = 1) { jump(BPF_JEQ, value, 0, count); }
  void if_not_equal(std::uint32_t value, unsigned count = 1) { jump(BPF_JEQ, value, count, 0); }
  void if_any_bit(std::uint32_t value, unsigned count = 1) { jump(BPF_JSET, value, 0, count); }
  void if_no_bit(std::uint32_t value, unsigned count = 1) { jump(BPF_JSET, value, count, 0); }
  void if_above(std::uint32_t value, unsigned count = 1) { jump(BPF_JGT, value, 0, count); }

  void refuse_call(long call, int error) {
    if_equal(static_cast<std::uint32_t>(call));
    refuse(error);
  }
  // The call is refused where its argument, a number of a process or thread, is not 0: the caller.
  void refuse_of_others(long call, unsigned index) {
    if_equal(static_cast<std::uint32_t>(call), 4);
    argument(index);
    if_not_equal(0);
    refuse(EPERM);
    allow();
  }
  std::vector<sock_filter> take() { return std::move(code_); }

 private:
  void jump(unsigned test, std::uint32_t value, unsigned if_true, unsigned if_false) {
    code_.push_back({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K),
                     static_cast<std::uint8_t>(if_true), static_cast<std::uint8_t>(if_false),
                     value});
  }
  void add(unsigned code, std::uint32_t k) {
    code_.push_back({static_cast<std::uint16_t>(code), 0, 0, k});
  }

  std::vector<sock_filter> code_;
};

void known_calls_alone(Filter& filter) {
  filter.load(offsetof(seccomp_data, arch));
  filter.if_not_equal(kArchitecture);
  filter.kill();
  filter.number();
  filter.if_above(kX32Calls - 1);
  filter.kill();
  filter.if_above(kLastKnown);
  filter.refuse(ENOSYS);
}

void clones(Filter& filter, bool forks) {
  // clone3 has its flags behind a pointer. Without it libraries use clone.
  filter.refuse_call(SYS_clone3, ENOSYS);
  if (!forks && kX86) {
    filter.refuse_call(kX86Fork, EAGAIN);
    filter.refuse_call(kX86Vfork, EAGAIN);
  }
  filter.if_equal(SYS_clone, forks ? 4 : 6);
  filter.argument(0);
  filter.if_any_bit(kNewNamespaces);
  filter.refuse(EPERM);
  if (!forks) {
    filter.if_no_bit(CLONE_THREAD);
    filter.refuse(EAGAIN);
  }
  filter.allow();
}

// Streams of the Unix family alone, of a call whose first arguments are family and type.
void unix_streams(Filter& filter, long call) {
  filter.if_equal(static_cast<std::uint32_t>(call), 8);
  filter.argument(0);
  filter.if_not_equal(AF_UNIX);
  filter.refuse(EACCES);
  filter.argument(1);
  filter.mask(kSocketType);
  filter.if_not_equal(SOCK_STREAM);
  filter.refuse(EACCES);
  filter.allow();
}

void sockets(Filter& filter, bool may_connect) {
  unix_streams(filter, SYS_socketpair);
  if (may_connect) return unix_streams(filter, SYS_socket);
  filter.refuse_call(SYS_socket, EPERM);
  filter.refuse_call(SYS_connect, EPERM);
}

void settings_of_others(Filter& filter) {
  filter.refuse_of_others(SYS_prlimit64, 0);
  filter.refuse_of_others(SYS_sched_setaffinity, 0);
  filter.refuse_of_others(SYS_sched_setscheduler, 0);
  filter.refuse_of_others(SYS_sched_setparam, 0);
  filter.refuse_of_others(SYS_sched_setattr, 0);
  filter.refuse_of_others(SYS_setpriority, 1);
}

void signals_to_others(Filter& filter) {
  filter.refuse_call(SYS_tkill, EPERM);
  for (const long call : {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo}) {
    filter.if_equal(static_cast<std::uint32_t>(call), 4);
    filter.argument(0);
    filter.if_not_equal(kOwnPid);
    filter.refuse(EPERM);
    filter.allow();
  }
}

void terminals(Filter& filter) {
  constexpr std::uint32_t kLinuxConsole = 0x541c;  // TIOCLINUX
  filter.if_equal(SYS_ioctl, 6);
  filter.argument(1);
  filter.if_equal(TIOCSTI);
  filter.refuse(EPERM);
  filter.if_equal(kLinuxConsole);
  filter.refuse(EPERM);
  filter.allow();
}

}  // namespace

std::vector<sock_filter> seccomp_filter(const FilterWishes& wishes) {
  Filter filter;
  known_calls_alone(filter);
  for (const long call : kRefused) filter.refuse_call(call, EPERM);
  if (kX86)
    for (const long call : kRefusedOnX86) filter.refuse_call(call, EPERM);
  clones(filter, wishes.forks);
  sockets(filter, wishes.sockets);
  if (!wishes.settings) settings_of_others(filter);
  if (!wishes.signals) signals_to_others(filter);
  terminals(filter);
  filter.allow();
  return filter.take();
}

void filter_own_pid(sock_filter* filter, std::size_t size, std::uint32_t pid) {
  for (std::size_t i = 0; i < size; ++i)
    if (BPF_CLASS(filter[i].code) == BPF_JMP && filter[i].k == kOwnPid) filter[i].k = pid;
}

bool install(sock_filter* filter, std::size_t size) {
  const sock_fprog program{static_cast<unsigned short>(size), filter};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace tandem::sandbox
