#include "runtime/base/missing_directory.h"

#include <cerrno>
#include <system_error>

namespace tandem {

Result<void> refuse_missing_directory(const std::filesystem::path& path) {
  const std::filesystem::path directory = path.parent_path();
  std::error_code failure;
  // The parent path of a bare file name is empty.
  if (directory.empty() ||
      std::filesystem::status(directory, failure).type() != std::filesystem::file_type::not_found)
    return {};
  return Error{.message = "cannot create file: there is no directory " + directory.string(),
               .where = path.string(),
               .help = "make it first: mkdir -p " + directory.string(),
               .os_error = ENOENT};
}

}  // namespace tandem
