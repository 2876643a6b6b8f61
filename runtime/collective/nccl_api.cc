// Finding and opening NCCL. A library that the user names is the only one tried. Otherwise these
// are tried in order: the one that the loader finds, the CUDA toolkit's, and that of an active
// Python environment.
//
// A library is used only if its version is known to have the interface that nccl_api.h declares,
// and every required function is there. Nothing is called before that, except ncclGetVersion.
#include "runtime/collective/nccl_api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "runtime/base/file.h"

namespace tandem::collective {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNcclFileName = "libnccl.so.2";

// Where Python's package nvidia-nccl-cu13 puts the library in the environment at `prefix`.
void add_python_places(const char* prefix, std::vector<std::string>& places) {
  if (prefix == nullptr || *prefix == 0) return;
  // The folder of an environment has one subfolder for each version of Python.
  std::error_code ignored, error;  // a folder that cannot be listed counts as one without NCCL
  fs::directory_iterator entry(fs::path(prefix) / "lib", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!entry->path().filename().string().starts_with("python3")) continue;
    const fs::path library = entry->path() / "site-packages/nvidia/nccl/lib" / kNcclFileName;
    if (fs::exists(library, ignored)) places.push_back(library);
  }
}

std::vector<std::string> places_of_nccl() {
  const char* path = std::getenv("TANDEM_NCCL_LIBRARY");
  if (path != nullptr && *path != 0) return {path};
  std::vector<std::string> places{kNcclFileName,
                                  std::string("/usr/local/cuda/lib64/") + kNcclFileName};
  add_python_places(std::getenv("VIRTUAL_ENV"), places);
  add_python_places(std::getenv("CONDA_PREFIX"), places);
  return places;
}

Error no_nccl(const std::string& why) {
  return {.code = ErrorCode::kNotFound,
          .message = "no NCCL library: " + why,
          .where = {},
          .help =
              "install NCCL 2.19 or later (the CUDA toolkit's, or Python's nvidia-nccl-cu13) and "
              "set LD_LIBRARY_PATH to its folder, or TANDEM_NCCL_LIBRARY to its file"};
}

Error unfit_nccl(const std::string& path, const std::string& why) {
  return {.code = ErrorCode::kInfeasible,
          .message = "the NCCL library " + path + " cannot be used: " + why,
          .where = {},
          .help = "set TANDEM_NCCL_LIBRARY to a libnccl.so.2 of version " +
                  nccl_version_text(kNcclVersionMin) + " or later"};
}

Result<void*> open_first(const std::vector<std::string>& places) {
  std::string reasons;
  for (const std::string& place : places) {
    // The open of a FIFO would wait for its writer. A bare name is looked for by the loader.
    if (const auto regular = refuse_irregular(place); !regular && place.find('/') != place.npos) {
      reasons += (reasons.empty() ? "" : "; ") + place + ": " + regular.error().message;
      continue;
    }
    // RTLD_LOCAL: its symbols must not take the place of another library's.
    if (void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    reasons += (reasons.empty() ? "" : "; ") + std::string(::dlerror());
  }
  return no_nccl(reasons);
}

// Looks functions up by name, and remembers the first that is missing.
class NcclSymbols {
 public:
  explicit NcclSymbols(void* library) : library_(library) {}

  template <class Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  template <class Function>
  void require(const char* name, Function*& function) {
    find(name, function);
    if (function == nullptr && !missing_) missing_ = name;
  }
  const std::optional<std::string>& missing() const { return missing_; }

 private:
  void* library_;
  std::optional<std::string> missing_;
};

std::string path_of(void* symbol) {
  Dl_info info{};
  return ::dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : kNcclFileName;
}

void find_functions(NcclSymbols& symbols, NcclApi& api) {
  symbols.require("ncclGetUniqueId", api.get_unique_id);
  symbols.require("ncclCommInitRankConfig", api.comm_init_rank_config);
  symbols.require("ncclCommFinalize", api.comm_finalize);
  symbols.require("ncclCommDestroy", api.comm_destroy);
  symbols.require("ncclCommAbort", api.comm_abort);
  symbols.require("ncclCommGetAsyncError", api.comm_get_async_error);
  symbols.require("ncclGetErrorString", api.get_error_string);
  symbols.require("ncclGetLastError", api.get_last_error);
  symbols.require("ncclGroupStart", api.group_start);
  symbols.require("ncclGroupEnd", api.group_end);
  symbols.require("ncclBroadcast", api.broadcast);
  symbols.require("ncclAllReduce", api.all_reduce);
  symbols.require("ncclSend", api.send);
  symbols.require("ncclRecv", api.receive);
  symbols.require("ncclMemAlloc", api.mem_alloc);
  symbols.require("ncclMemFree", api.mem_free);
  symbols.require("ncclCommRegister", api.comm_register);
  symbols.require("ncclCommDeregister", api.comm_deregister);
  symbols.find("ncclCommRevoke", api.comm_revoke);
}

}  // namespace

std::string nccl_version_text(int version) {
  // Up to 2.8 the code is major * 1000 + minor * 100 + patch, from 2.9 on major * 10000 + …
  const int major_unit = version < 10000 ? 1000 : 10000;
  return std::to_string(version / major_unit) + "." + std::to_string(version % major_unit / 100) +
         "." + std::to_string(version % 100);
}

std::string describe_nccl_failure(const NcclApi& api, const char* function, NcclResult result,
                                  NcclApi::Comm comm) {
  const char* const reason = api.get_error_string(result);
  std::string text = std::string(function) + ": " + (reason == nullptr ? "unknown" : reason);
  const char* const last = api.get_last_error(comm);
  if (last != nullptr && *last != 0) text += " (" + std::string(last) + ")";
  return text;
}

Result<NcclApi> open_nccl(const std::string& path) {
  // The library is never closed: NCCL has threads of its own, whose code must stay.
  const Result<void*> library =
      open_first(path.empty() ? places_of_nccl() : std::vector<std::string>{path});
  if (!library) return library.error();
  NcclApi api;
  NcclSymbols symbols(*library);
  symbols.require("ncclGetVersion", api.get_version);
  if (api.get_version == nullptr)
    return unfit_nccl(path.empty() ? kNcclFileName : path, "it has no ncclGetVersion");
  api.path = path_of(reinterpret_cast<void*>(api.get_version));
  if (const NcclResult got = api.get_version(&api.version); got != NcclResult::kSuccess)
    return unfit_nccl(api.path, "ncclGetVersion gives error " + std::to_string(int(got)));
  if (api.version < kNcclVersionMin)
    return unfit_nccl(api.path, "its version " + nccl_version_text(api.version) +
                                    " is older than " + nccl_version_text(kNcclVersionMin));
  find_functions(symbols, api);
  if (symbols.missing()) return unfit_nccl(api.path, "it has no " + *symbols.missing());
  return api;
}

}  // namespace tandem::collective
