// What a program of this machine writes to its standard output, read as it comes. The reader waits
// for the program, so a slow reader slows the program down and nothing piles up.
//
//   PO-1  The reader never waits longer than `silence_max` for the next byte or for the program's
//         end: a program that is silent for longer is killed with its process group.
//   PO-2  Output of a program that failed has an error as its end, never a mere end: a reader that
//         gets 0 bytes knows that the program ended by itself with code 0.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/byte_source.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"
#include "runtime/node/last_lines.h"

namespace tandem::node {

struct OutputProgram {
  std::vector<std::string> argv;  // argv[0] is a path, or is looked up in PATH
  // The program sees PATH, HOME and the like (CE-1, child_program.h), and these.
  std::map<std::string, std::string> environment;
  Duration silence_max;
};

class ProgramOutput final : public ByteSource {
 public:
  // `input` becomes the program's standard input; with a regular file the program can open
  // /dev/stdin by name and seek in it, and reads the very file that is open here.
  static Result<std::unique_ptr<ProgramOutput>> start(const OutputProgram& program,
                                                      const OwnedFd& input);
  // Kills a program that still runs, with its group, and waits for its end.
  ~ProgramOutput() override;

  // PO-1, PO-2. Errors: kTimedOut for silence, kFailed for a program that failed, with the last
  // lines of its stderr in the message.
  Result<std::size_t> read(std::span<char> out) override;
  std::uint64_t bytes_read() const override { return bytes_read_; }
  // The code with which the program ended by itself; 0 until then, and of one that was killed.
  int exit_code() const { return exit_code_; }

 private:
  ProgramOutput(pid_t pid, std::string name, OwnedFd output, OwnedFd errors, Duration silence_max);

  Result<std::size_t> end();
  Error timed_out();
  // Appends what stderr has at this moment, up to a bound.
  void take_errors();
  std::string last_words() const;
  int reap();

  pid_t pid_;  // 0: reaped
  const std::string name_;
  const OwnedFd output_, errors_;
  const Duration silence_max_;
  LastLines last_lines_;
  std::uint64_t bytes_read_ = 0;
  int exit_code_ = 0;
};

}  // namespace tandem::node
