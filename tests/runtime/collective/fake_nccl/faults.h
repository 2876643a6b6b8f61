// The faults of the fake NCCL: $TANDEM_FAKE_NCCL_FAULTS, or the text that a test has set since,
// with faults separated by ';', each a list of settings:
//   rank=1,op=broadcast,at=3,fault=hang
// rank   of the communicator; none: every rank
// op     init, register, broadcast, send, recv, finalize, destroy or abort, or memalloc, which
//        belongs to no rank; none: any of them
// at     the n-th such call of a communicator, from 1; none: every one
// comm   the n-th communicator of the process, from 1; none: every one
// file   a path: only while this file is there, which the fault removes; so it happens once, and
//        when the test wants it
// fault  block     the call never returns
//        refuse    the call returns `code`
//        hang      the call returns, and its operation never ends until an abort
//        stubborn  likewise, and an abort does not end it either
//        error     likewise to hang, and ncclCommGetAsyncError gives `code` after `polls` calls
//        die       the process is killed `when` the call is made (before), is half done (in), or is
//                  done (after)
//        late      its operation goes on after `ms`: of init the joining
//        slow      half of it is done, the rest after `ms`
//        corrupt   one byte travels wrong
#pragma once

#include <string>
#include <vector>

namespace fake_nccl {

enum class Kind { kBlock, kRefuse, kHang, kStubborn, kError, kDie, kLate, kSlow, kCorrupt };
enum class When { kBefore, kIn, kAfter };

struct Fault {
  int rank = -1;
  std::string op;
  std::string file;
  int at = 0;
  int comm = 0;
  Kind kind = Kind::kHang;
  When when = When::kBefore;
  int code = 6;
  int polls = 0;
  int ms = 0;
};

struct Call {
  int rank = 0;
  int comm = 0;
  std::string op;
  int nth = 0;      // counts calls of this op
  int nth_any = 0;  // counts all calls of the communicator
};

void set_faults(const char* text);
std::vector<Fault> faults_of(const Call& call);

// The faults of one call together, without those that have taken effect in the call already.
struct Mischief {
  bool hang = false, stubborn = false, corrupt = false, die_in = false, die_after = false;
  int late_ms = 0, slow_ms = 0;
  int error_code = 0, error_polls = 0;  // 0: none
};

// Carries out the faults that take effect in the call itself. Returns the code that the call
// returns, or 0 to go on.
int begin_call(const Call& call, Mischief& mischief);

[[noreturn]] void block_forever();
[[noreturn]] void die();

}  // namespace fake_nccl
