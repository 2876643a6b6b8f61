// A libnvidia-ml.so.1 for machines without a GPU: as many devices of 80 GiB as $FAKE_GPUS says;
// "broken" is a driver that does not answer.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

const char* setting() {
  const char* gpus = std::getenv("FAKE_GPUS");
  return gpus == nullptr ? "0" : gpus;
}

constexpr int kDriverNotLoaded = 9;
constexpr int kInvalidArgument = 2;

int write(const char* format, void* device, char* text, unsigned length) {
  const int index = static_cast<int>(reinterpret_cast<std::size_t>(device)) - 1;
  std::snprintf(text, length, format, index);
  return 0;
}

}  // namespace

extern "C" {

struct Memory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() { return std::strcmp(setting(), "broken") == 0 ? kDriverNotLoaded : 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int error) {
  return error == kDriverNotLoaded ? "Driver Not Loaded" : "Invalid Argument";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(std::atoi(setting()));
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (static_cast<int>(index) >= std::atoi(setting())) return kInvalidArgument;
  *device = reinterpret_cast<void*>(std::size_t{index} + 1);
  return 0;
}
int nvmlDeviceGetName(void* device, char* text, unsigned length) {
  return write("Fake GPU %d", device, text, length);
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  return write("GPU-%d0000000-fake", device, text, length);
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {.total = 80ull << 30, .free = 79ull << 30, .used = 1ull << 30};
  return 0;
}
}
