// Opens the module by dlopen and turns each way in which that can fail into an error that names the
// next step for the user. The loader's own text is the only source of the library's name that is
// missing, so errors are told apart by that text.
#include "runtime/device/cuda_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace tandem::device {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "libtandem_cuda.so";

// The module exists, and a library of NVIDIA's that it needs was not found. `why` names the
// library.
Error no_library(const std::string& path, const std::string& why) {
  const char* given = std::getenv("LD_LIBRARY_PATH");
  return {.code = ErrorCode::kInfeasible,
          .message = "no CUDA module: cannot open " + path + ": " + why + "; looked in " +
                     (given == nullptr || *given == 0 ? std::string("no LD_LIBRARY_PATH")
                                                      : "LD_LIBRARY_PATH=" + std::string(given)) +
                     ", " + fs::absolute(path).parent_path().string() +
                     ", /usr/local/cuda/lib64 and the system's folders",
          .help =
              "install the CUDA 13 toolkit's libraries, or Python's nvidia-cublas and set "
              "LD_LIBRARY_PATH to its folder, …/site-packages/nvidia/cu13/lib"};
}

Error no_module(const std::string& path, const std::string& why) {
  if (why.find("libcublas") != std::string::npos) return no_library(path, why);
  return {
      .code = ErrorCode::kInfeasible,
      .message = "no CUDA module: cannot open " + path + ": " + why,
      .help = "build Tandem where a CUDA toolkit is found (without -DTANDEM_CUDA=OFF) and keep " +
              std::string(kFileName) + " beside the binary"};
}

Result<void> find_device(const CudaModule& module) {
  const CudaDevices devices = module.devices();
  const std::string reason = devices.error == nullptr ? "" : devices.error;
  // The driver is asked first: without one the count of devices is 0 for a reason that would
  // mislead.
  if (devices.driver_version == 0) {
    return Error{
        .code = ErrorCode::kInfeasible,
        .message =
            "no NVIDIA driver: libcuda.so.1 is not there or does not answer (" + reason + ")",
        .help = "install the NVIDIA driver, or start the container with its GPUs passed in"};
  }
  if (devices.count == 0) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return Error{
        .code = ErrorCode::kInfeasible,
        .message =
            "no CUDA device: the driver (CUDA " + std::to_string(devices.driver_version / 1000) +
            "." + std::to_string(devices.driver_version % 1000 / 10) + ") shows none: " + reason +
            (visible == nullptr ? std::string() : "; CUDA_VISIBLE_DEVICES=" + std::string(visible)),
        .help = "see what nvidia-smi lists on this machine"};
  }
  return {};
}

}  // namespace

Result<const CudaModule*> open_cuda_module(const std::string& path) {
  // The library is never closed: kernels and CUDA's context stay in use until the process ends.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return no_module(path, ::dlerror());
  auto* entry = reinterpret_cast<CudaModuleEntry*>(::dlsym(library, kCudaModuleEntry));
  if (entry == nullptr) return no_module(path, ::dlerror());
  const CudaModule* module = entry(kCudaModuleAbi);
  if (module == nullptr) return no_module(path, "it is of another build than this binary");
  if (Result<void> found = find_device(*module); !found) return found.error();
  return module;
}

std::string cuda_module_path() {
  if (const char* path = std::getenv("TANDEM_CUDA_MODULE")) return path;
  // Without /proc the name alone remains, and the loader's own rules find the file.
  std::error_code ignored;
  const fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path beside = executable.parent_path() / kFileName;
  const fs::path library = executable.parent_path().parent_path() / "lib" / kFileName;
  return !fs::exists(beside, ignored) && fs::exists(library, ignored) ? library : beside;
}

const Result<const CudaModule*>& cuda_module() {
  static const Result<const CudaModule*> module = open_cuda_module(cuda_module_path());
  return module;
}

}  // namespace tandem::device
