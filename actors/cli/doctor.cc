// One function per subject, each of which returns its findings and never fails. Everything is read
// from the kernel (/proc, file systems, limits) or from the libraries that a job would open. Ports
// are looked up in the kernel's tables and not bound.
//
// Thresholds are for small models: the real needs of a job are in the memory plan that `tandem run
// --dry-run` prints.
#include "actors/cli/doctor.h"

#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "actors/cli/table.h"
#include "actors/cli/views.h"
#include "actors/data/parquet_program.h"
#include "kernels/backend.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/collective/nccl_api.h"
#include "runtime/device/cuda_module.h"
#include "runtime/node/gpus.h"
#include "runtime/node/resources.h"
#include "runtime/sandbox/probe.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kMemoryUseful = 1.0 * (1 << 30);         // bytes; the quickstart needs less
constexpr double kSharedMemoryUseful = 64.0 * (1 << 20);  // bytes; K + 2 versions of a small model
constexpr double kDiskUseful = 1.0 * (1 << 30);
constexpr rlim_t kFilesUseful = 1024;
constexpr int kPorts = 3;

std::string read_all(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Finding examine_cpu() {
  std::istringstream lines(read_all("/proc/cpuinfo"));
  const long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  std::string detail = std::to_string(cpus) + " CPUs";
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    detail += ", " + line.substr(colon + 2);
    break;
  }
  return {"cpu", Health::kOk, detail, ""};
}

// The rate of matrix products, which take most of the time of a job on CPUs. Ranges: AVX-512 has
// twice AVX2's rate on processors with 512-bit multipliers, and the same rate on those that take a
// 512-bit instruction in two halves (Zen 4).
const char* rate_of_products(kernels::Isa isa) {
  switch (isa) {
    case kernels::Isa::kAvx2:
      return "f32 products at 1/2 to all of AVX-512's rate, bf16 at 1/4 to 1/2";
    case kernels::Isa::kAvx512:
      return "f32 products at full rate, bf16 at about 1/2 of that with AVX512_BF16";
    case kernels::Isa::kAvx512Bf16:
      return "f32 and bf16 products at full rate";
  }
  return "";
}

Finding examine_instruction_set() {
  constexpr const char* kSubject = "instruction set";
  const Result<kernels::Isa> isa = kernels::chosen_isa();
  if (!isa) return {kSubject, Health::kBad, isa.error().message, isa.error().help};
  std::string detail = std::string(kernels::name(*isa)) + ": " + rate_of_products(*isa);
  if (const kernels::Isa best = *kernels::detect_isa(); best != *isa)
    detail += "; chosen by TANDEM_ISA, this CPU has " + std::string(kernels::name(best));
  return {kSubject, Health::kOk, detail, ""};
}

// Bytes; the kernel reports KiB.
double meminfo(const std::string& name) {
  std::istringstream words(read_all("/proc/meminfo"));
  double kib = 0;
  for (std::string word; words >> word;)
    if (word == name + ":") words >> kib;
  return kib * 1024;
}

Finding examine_memory() {
  const double available = meminfo("MemAvailable");
  const bool enough = available >= kMemoryUseful;
  return {"memory", enough ? Health::kOk : Health::kWarning,
          short_bytes(available) + " of " + short_bytes(meminfo("MemTotal")) + " available",
          enough ? "" : "small models only; close what is not needed"};
}

Finding examine_space(const std::string& subject, const fs::path& path, double useful,
                      const std::string& help) {
  const auto space = node::disk_space(path);
  if (!space) return {subject, Health::kBad, path.string() + ": " + space.error().message, help};
  const auto free = static_cast<double>(space->free_bytes);
  const bool enough = free >= useful;
  return {subject, enough ? Health::kOk : Health::kWarning,
          short_bytes(free) + " free in " + path.string(), enough ? "" : help};
}

Finding examine_home(const fs::path& home) {
  std::error_code failure;
  fs::create_directories(home, failure);
  std::string probe = (home / "doctor-XXXXXX").string();
  const int file = failure ? -1 : ::mkstemp(probe.data());
  if (file < 0)
    return {"state folder", Health::kBad,
            home.string() + ": " + (failure ? failure.message() : errno_text(errno)),
            "set TANDEM_HOME to a folder that you may write"};
  ::close(file);
  ::unlink(probe.c_str());
  return {"state folder", Health::kOk, home.string() + " can be written", ""};
}

// Local ports in state LISTEN (0A), from the kernel's tables, whose numbers are hexadecimal.
std::set<int> listening_ports() {
  std::set<int> ports;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::istringstream lines(read_all(table));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      const std::size_t colon = local.rfind(':');
      if (state == "0A" && colon != std::string::npos)
        ports.insert(static_cast<int>(std::strtol(local.c_str() + colon + 1, nullptr, 16)));
    }
  }
  return ports;
}

// A port in use is only a warning: the cluster that runs here has it.
Finding examine_ports(int port) {
  const std::set<int> listening = listening_ports();
  std::string busy;
  for (int p = port; p < port + kPorts; ++p)
    if (listening.contains(p)) busy += (busy.empty() ? "" : ", ") + std::to_string(p);
  const std::string range = std::to_string(port) + "-" + std::to_string(port + kPorts - 1);
  if (busy.empty()) return {"ports", Health::kOk, range + " are free", ""};
  return {"ports", Health::kWarning, busy + " in use",
          "by a cluster that runs here (`tandem get nodes`), or use `tandem up --port 0`"};
}

// The soft limit, which main() has raised as far as the hard one goes.
Finding examine_limits() {
  struct rlimit files {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const bool enough = files.rlim_cur >= kFilesUseful;
  return {
      "open files", enough ? Health::kOk : Health::kWarning,
      "at most " + std::to_string(files.rlim_cur),
      enough ? "" : "raise the hard limit: `ulimit -Hn 4096` by root, or that of the container"};
}

Finding examine_libraries() {
  return {"libraries", Health::kOk, std::string("libc ") + ::gnu_get_libc_version(), ""};
}

// Only a run of Python would tell whether it has pyarrow, which may take seconds.
Finding examine_parquet() {
  constexpr const char* kSubject = "parquet";
  const data::ParquetPrograms programs = data::find_parquet_programs();
  if (programs.duckdb) return {kSubject, Health::kOk, "read by " + programs.duckdb->string(), ""};
  if (programs.python)
    return {kSubject, Health::kOk,
            "read by " + programs.python->string() + " if it has pyarrow; no duckdb in PATH", ""};
  const Error none = data::no_parquet_program({});
  return {kSubject, Health::kWarning, "no duckdb and no python3 in PATH", none.help};
}

// NCCL is useful only to groups of GPUs: without several of them its absence is no warning.
Finding examine_nccl(bool is_useful) {
  const Result<collective::NcclApi> nccl = collective::open_nccl();
  if (nccl)
    return {"nccl", Health::kOk, collective::nccl_version_text(nccl->version) + ", " + nccl->path,
            ""};
  const Error& error = nccl.error();
  if (is_useful) return {"nccl", Health::kWarning, error.message, error.help};
  return {"nccl", Health::kOk,
          error.code == ErrorCode::kNotFound ? std::string("not found") : error.message, ""};
}

// A machine without a GPU is healthy. A GPU that could not be used is a warning.
std::vector<Finding> examine_gpus() {
  constexpr const char* kSeeDriver = "see nvidia-smi and the kernel's log (dmesg | grep NVRM)";
  const Result<node::GpuListing> gpus = node::read_gpus();
  if (!gpus)
    return {{"gpus", Health::kOk, gpus.error().message + ": CPU only", ""}, examine_nccl(false)};
  std::vector<Finding> findings;
  for (const std::string& trouble : gpus->unusable)
    findings.push_back({"gpu", Health::kWarning, trouble, kSeeDriver});
  for (const node::Gpu& gpu : gpus->usable)
    findings.push_back({"gpu", Health::kOk,
                        gpu.name + ", " + short_bytes(static_cast<double>(gpu.memory_free_bytes)) +
                            " of " + short_bytes(static_cast<double>(gpu.memory_bytes)) +
                            " free, " + gpu.uuid,
                        ""});
  if (const auto& module = device::cuda_module(); module)
    findings.push_back({"cuda module", Health::kOk, device::cuda_module_path(), ""});
  else
    findings.push_back(
        {"cuda module", Health::kWarning, module.error().message, module.error().help});
  findings.push_back(examine_nccl(gpus->usable.size() > 1));
  return findings;
}

const char* name(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kWarning:
      return "warning";
    case Health::kBad:
      return "bad";
  }
  return "bad";
}

}  // namespace

namespace {

// Rewards of type `code` are in a sandbox unless a job says otherwise.
Finding examine_sandbox() {
  const sandbox::Layers layers = sandbox::probe_layers();
  const auto whole = sandbox::plan_of(sandbox::SandboxMode::kStrict, layers);
  return {"sandbox", whole ? Health::kOk : Health::kWarning, text(layers),
          whole ? "" : whole.error().help};
}

}  // namespace

std::vector<Finding> examine_machine(const fs::path& home, int port) {
  std::vector<Finding> findings{examine_cpu(), examine_instruction_set(), examine_memory()};
  findings.push_back(examine_space("shared memory", "/dev/shm", kSharedMemoryUseful,
                                   "weights travel there: enlarge it (docker run --shm-size), or "
                                   "set weight_broadcast.type: disk"));
  findings.push_back(examine_home(home));
  // Without the folder there is no disk to measure.
  if (findings.back().health != Health::kBad)
    findings.push_back(
        examine_space("disk", home, kDiskUseful, "checkpoints and payloads are written there"));
  findings.push_back(examine_ports(port));
  findings.push_back(examine_limits());
  findings.push_back(examine_sandbox());
  findings.push_back(examine_libraries());
  findings.push_back(examine_parquet());
  for (Finding& finding : examine_gpus()) findings.push_back(std::move(finding));
  return findings;
}

std::string render_findings(const std::vector<Finding>& findings, OutputForm form, int width) {
  nlohmann::json list = nlohmann::json::array();
  std::vector<Row> rows;
  std::string help;
  for (const Finding& finding : findings) {
    list.push_back({{"subject", finding.subject},
                    {"health", name(finding.health)},
                    {"detail", finding.detail},
                    {"help", finding.help}});
    rows.push_back({finding.subject, name(finding.health), finding.detail});
    if (!finding.help.empty()) help += finding.subject + ": " + finding.help + "\n";
  }
  if (form == OutputForm::kJson) return dump_json(list, 2) + "\n";
  if (form == OutputForm::kYaml) return to_yaml(list);
  return render_table({{"WHAT", Align::kLeft, 12}, {"HEALTH", Align::kLeft, 7}, {"DETAIL"}}, rows,
                      width) +
         (help.empty() ? "" : "\n" + help);
}

bool any_bad(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& f) { return f.health == Health::kBad; });
}

}  // namespace tandem::cli
