// A library to preload into the processes of a run: a rollout that receives the prompt
// $DEADLY_PROMPT dies by SIGSEGV, as an engine does that a prompt makes access bad memory.
#include <dlfcn.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace {

bool is_rollout() {
  std::ifstream file("/proc/self/cmdline");
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  return words.find("/rollout/") != std::string::npos;
}

}  // namespace

// The C library's function, whose messages may come in pieces: the end of the last one is kept.
extern "C" ssize_t recv(int socket, void* buffer, size_t size, int flags) {
  using Recv = ssize_t (*)(int, void*, size_t, int);
  static const auto real = reinterpret_cast<Recv>(dlsym(RTLD_NEXT, "recv"));
  static const char* const prompt = std::getenv("DEADLY_PROMPT");
  static const bool dies = prompt != nullptr && is_rollout();
  const ssize_t count = real(socket, buffer, size, flags);
  if (!dies || count <= 0) return count;
  thread_local std::map<int, std::string> tails;
  std::string& seen = tails[socket];
  seen.append(static_cast<const char*>(buffer), static_cast<size_t>(count));
  if (seen.find(prompt) != std::string::npos) std::raise(SIGSEGV);
  const std::string words = prompt;
  if (seen.size() > words.size()) seen.erase(0, seen.size() - words.size());
  return count;
}
