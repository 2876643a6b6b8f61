// The cause of an error is its errno (Error::os_error); 0 means that no system call failed, so that
// the content was wrong.
#include "actors/rank/rank_failure.h"

#include <cerrno>
#include <utility>

#include "runtime/base/file.h"

namespace tandem::rank {
namespace {

// A path that leads nowhere: reading it again gives the same answer.
bool not_there(int os_error) {
  return os_error == ENOENT || os_error == ENOTDIR || os_error == EISDIR ||
         os_error == ENAMETOOLONG || os_error == ELOOP;
}

// No space, no quota, a read-only disk or missing rights: no restart mends these.
bool for_a_person(int os_error) {
  return os_error == ENOSPC || os_error == EDQUOT || os_error == EROFS || os_error == EACCES ||
         os_error == EPERM;
}

}  // namespace

Error of_input(Error error) {
  if (error.code != ErrorCode::kFailed) return error;
  if (error.os_error == 0) error.code = ErrorCode::kInvalid;
  if (not_there(error.os_error)) error.code = ErrorCode::kNotFound;
  return error;
}

messages::RankFailed rank_failed(const node::RankId& id, const Error& why) {
  const std::string where = why.where.empty() ? "" : " (" + why.where + ")";
  const bool lasting = why.code == ErrorCode::kFailed && for_a_person(why.os_error);
  return {id.actor,
          id.incarnation,
          id.rank,
          why.message + where,
          lasting ? ErrorCode::kInvalid : why.code,
          lacks_disk(why)};
}

messages::RankFailed rank_failed_at_work(const node::RankId& id, Error why) {
  if (why.code == ErrorCode::kNotFound || why.code == ErrorCode::kInfeasible)
    why.code = ErrorCode::kFailed;
  messages::RankFailed failed = rank_failed(id, why);
  failed.disk = false;  // an actor at work waits for its disk itself, before it fails
  return failed;
}

}  // namespace tandem::rank
