#include "tests/runtime/collective/fake_nccl/faults.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>

namespace fake_nccl {
namespace {

struct Told {
  std::mutex mutex;
  bool read = false;
  std::vector<Fault> faults;
};

Told& told() {
  static Told& only = *new Told;
  return only;
}

[[noreturn]] void misunderstood(const std::string& what) {
  const std::string text = "fake NCCL: cannot understand the fault \"" + what + "\"\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  ::abort();
}

template <class Value>
Value look_up(const std::map<std::string, Value>& names, const std::string& name) {
  const auto found = names.find(name);
  if (found == names.end()) misunderstood(name);
  return found->second;
}

Fault parse(const std::string& text) {
  Fault fault;
  std::istringstream settings(text);
  for (std::string setting; std::getline(settings, setting, ',');) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) misunderstood(text);
    const std::string key = setting.substr(0, equals), value = setting.substr(equals + 1);
    const std::map<std::string, int*> numbers{{"rank", &fault.rank},   {"at", &fault.at},
                                              {"comm", &fault.comm},   {"code", &fault.code},
                                              {"polls", &fault.polls}, {"ms", &fault.ms}};
    if (key == "op") {
      fault.op = value;
    } else if (key == "file") {
      fault.file = value;
    } else if (key == "when") {
      fault.when = look_up<When>(
          {{"before", When::kBefore}, {"in", When::kIn}, {"after", When::kAfter}}, value);
    } else if (key == "fault") {
      fault.kind = look_up<Kind>({{"block", Kind::kBlock},
                                  {"refuse", Kind::kRefuse},
                                  {"hang", Kind::kHang},
                                  {"stubborn", Kind::kStubborn},
                                  {"error", Kind::kError},
                                  {"die", Kind::kDie},
                                  {"late", Kind::kLate},
                                  {"slow", Kind::kSlow},
                                  {"corrupt", Kind::kCorrupt}},
                                 value);
    } else {
      *look_up(numbers, key) = std::atoi(value.c_str());
    }
  }
  return fault;
}

std::vector<Fault> parse_all(const char* text) {
  std::vector<Fault> faults;
  std::istringstream parts(text == nullptr ? "" : text);
  for (std::string part; std::getline(parts, part, ';');) faults.push_back(parse(part));
  return faults;
}

}  // namespace

void set_faults(const char* text) {
  const std::lock_guard lock(told().mutex);
  told().read = true;
  told().faults = parse_all(text);
}

std::vector<Fault> faults_of(const Call& call) {
  const std::lock_guard lock(told().mutex);
  if (!told().read) told().faults = parse_all(std::getenv("TANDEM_FAKE_NCCL_FAULTS"));
  told().read = true;
  std::vector<Fault> meant;
  for (const Fault& fault : told().faults) {
    if (fault.rank >= 0 && fault.rank != call.rank) continue;
    if (fault.comm > 0 && fault.comm != call.comm) continue;
    if (!fault.op.empty() && fault.op != call.op) continue;
    if (fault.at > 0 && fault.at != (fault.op.empty() ? call.nth_any : call.nth)) continue;
    if (!fault.file.empty() && ::unlink(fault.file.c_str()) != 0) continue;
    meant.push_back(fault);
  }
  return meant;
}

int begin_call(const Call& call, Mischief& mischief) {
  for (const Fault& fault : faults_of(call)) {
    switch (fault.kind) {
      case Kind::kBlock:
        block_forever();
      case Kind::kRefuse:
        return fault.code;
      case Kind::kHang:
        mischief.hang = true;
        break;
      case Kind::kStubborn:
        mischief.stubborn = true;
        break;
      case Kind::kError:
        mischief.hang = true;
        mischief.error_code = fault.code;
        mischief.error_polls = fault.polls;
        break;
      case Kind::kDie:
        if (fault.when == When::kBefore) die();
        (fault.when == When::kIn ? mischief.die_in : mischief.die_after) = true;
        break;
      case Kind::kLate:
        mischief.late_ms = fault.ms;
        break;
      case Kind::kSlow:
        mischief.slow_ms = fault.ms;
        break;
      case Kind::kCorrupt:
        mischief.corrupt = true;
        break;
    }
  }
  return 0;
}

void block_forever() {
  for (;;) ::pause();
}

void die() {
  ::kill(::getpid(), SIGKILL);
  block_forever();
}

}  // namespace fake_nccl
