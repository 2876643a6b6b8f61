#include "runtime/link/program_build.h"

namespace tandem::link {
namespace {

constexpr std::size_t kDigitsShown = 12;

std::string short_id(const std::string& id) {
  return id.empty() ? "without an id" : id.substr(0, kDigitsShown);
}

}  // namespace

std::string to_string(const ProgramBuild& build) {
  if (build.version.empty()) return "a program that names no build";
  return build.version + " build " + short_id(build.id) +
         (build.cuda_module.empty() ? "" : " with the CUDA module " + short_id(build.cuda_module));
}

Result<void> one_program(const ProgramBuild& ours, const std::string& our_name,
                         const ProgramBuild& theirs, const std::string& their_name) {
  if (ours.version.empty() || theirs.version.empty()) return {};
  const bool modules_differ = !ours.cuda_module.empty() && !theirs.cuda_module.empty() &&
                              ours.cuda_module != theirs.cuda_module;
  if (ours.version == theirs.version && ours.id == theirs.id && !modules_differ) return {};
  return Error{
      ErrorCode::kInvalid,
      our_name + " is " + to_string(ours) + ", and " + their_name + " is " + to_string(theirs), "",
      "start every process of a cluster from copies of one binary and its module"};
}

}  // namespace tandem::link
