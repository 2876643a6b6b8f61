#include "runtime/base/secret.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"

namespace tandem {
namespace {

// The rights of everybody but the owner.
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

Error not_private(const std::filesystem::path& path, const std::string& why) {
  return {ErrorCode::kUnauthorised, "this secret is not private: " + why, path.string(),
          "remove it and start again; a new one is made"};
}

}  // namespace

std::string random_secret() {
  std::array<unsigned char, kSecretBytes> bytes;
  // For up to 256 bytes the call returns all of them at once, and waits only until the generator
  // has been seeded at boot.
  CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return hex(std::as_bytes(std::span(bytes)));
}

std::string hmac_hex(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
             &length) != nullptr);
  return hex(std::as_bytes(std::span(digest).first(length)));
}

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<std::string> read_secret(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe would hold the call up until somebody writes to it.
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return file_error("read the secret", path);
  if (!S_ISREG(status.st_mode)) return not_private(path, "it is not a plain file");
  if (status.st_uid != ::geteuid()) return not_private(path, "it belongs to another user");
  if ((status.st_mode & kOthers) != 0) return not_private(path, "others may read or write it");
  // Reads from the descriptor that was checked: the path may lead to another file by now.
  auto content = read_file(fd, path);
  if (!content) return content;
  while (!content->empty() && content->back() == '\n') content->pop_back();
  if (content->empty()) return not_private(path, "it is empty");
  return content;
}

Result<bool> write_secret(const std::filesystem::path& path, std::string_view content) {
  std::string temporary = path.string() + ".XXXXXX";
  // mkostemp makes the file with mode 0600: there is no moment in which others can open it.
  const OwnedFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return file_error("make the secret", path);
  const bool written =
      ::write(fd.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
      ::fsync(fd.get()) == 0;
  // A link, unlike a rename, fails where the name is taken: of several writers one wins, and its
  // file has its whole content before it gets the name.
  const bool linked = written && ::link(temporary.c_str(), path.c_str()) == 0;
  const int reason = errno;
  ::unlink(temporary.c_str());
  if (linked) return true;
  errno = reason;
  if (written && reason == EEXIST) return false;
  return file_error("make the secret", path);
}

Result<std::string> shared_secret(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    // False (another process was first) is no error: that process's secret is read below.
    if (const auto made = write_secret(path, random_secret() + "\n"); !made) return made.error();
  }
  return read_secret(path);
}

Result<void> make_private_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  struct stat status {};
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return file_error("make the directory", path);
  }
  if (::stat(path.c_str(), &status) != 0) return file_error("look at the directory", path);
  if (!S_ISDIR(status.st_mode)) {
    errno = ENOTDIR;
    return file_error("use the directory", path);
  }
  if (status.st_uid != ::geteuid()) {
    return Error{ErrorCode::kUnauthorised, "this directory belongs to another user", path.string(),
                 "choose one of your own: TANDEM_HOME for the state, TMPDIR for sockets"};
  }
  if ((status.st_mode & kOthers) == 0) return {};
  if (::chmod(path.c_str(), status.st_mode & ~kOthers & 07777) != 0) {
    return file_error("make the directory private", path);
  }
  return {};
}

}  // namespace tandem
