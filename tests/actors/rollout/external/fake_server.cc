#include "tests/actors/rollout/external/fake_server.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "actors/model/safetensors.h"

namespace tandem::rollout {
namespace {

constexpr const char* kFaultArguments[] = {"--fault", "--fault-at", "--fault-once"};

bool is_one_of(const std::string& word, std::span<const char* const> words) {
  return std::ranges::find(words, word) != words.end();
}

FakeOptions options_of(const std::vector<std::string>& words, const KnownArguments& known) {
  FakeOptions options{.program = known.program};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (is_one_of(word, known.flags)) {
      options.flags.insert(word);
    } else if (is_one_of(word, known.values) || is_one_of(word, kFaultArguments)) {
      if (++i == words.size()) stop(options, 2, "argument " + word + ": expected one argument");
      options.values[word] = words[i];
    } else if (word.starts_with("-") || known.model || !options.model.empty()) {
      stop(options, 2, "unrecognized arguments: " + word);
    } else {
      options.model = word;
    }
  }
  if (known.model) options.model = options.value(known.model);
  return options;
}

}  // namespace

std::string FakeOptions::value(const std::string& argument, const std::string& otherwise) const {
  const auto found = values.find(argument);
  return found == values.end() ? otherwise : found->second;
}

void stop(const FakeOptions& options, int code, const std::string& why) {
  std::fprintf(stderr, "%s: error: %s\n", options.program.c_str(), why.c_str());
  std::fflush(nullptr);
  std::_Exit(code);
}

Faults::Faults(const FakeOptions& options)
    : name_(options.value("--fault")),
      once_(options.value("--fault-once")),
      left_(std::stoi(options.value("--fault-at", "1"))) {}

bool Faults::now(const std::string& name) {
  if (!is(name)) return false;
  if (!once_.empty() && std::ifstream(once_).good()) return false;
  if (left_-- != 1) return false;
  if (!once_.empty()) std::ofstream(once_) << name;
  return true;
}

void LateAnswers::hold(std::function<void()> give) {
  held_.with([&](auto& held) { held[0].push_back(std::move(give)); });
}

void LateAnswers::figures_asked() {
  const auto due = held_.with([](auto& held) {
    auto older = std::exchange(held[1], std::exchange(held[0], {}));
    return older;
  });
  for (const auto& give : due) give();
}

http::HttpResponse answer(const nlohmann::json& body) { return {.body = dump_json(body)}; }

http::HttpAnswer never() {
  return http::HttpLater{.start = [](auto respond) { static auto kept = respond; }};
}

bool fits(const FakeRequest& request, std::int64_t positions) {
  return !request.prompt.empty() && std::ssize(request.prompt) + request.max_tokens <= positions;
}

Result<device::Arena> read_folder(const std::string& folder, const device::Manifest& manifest) {
  auto arena = device::Arena::allocate(manifest, "the weights that a server reads");
  if (!arena) return arena.error();
  std::vector<model::NamedTensor> tensors;
  for (const device::ParameterSpec& parameter : manifest.parameters) {
    const device::TensorView view = arena->view(parameter.name);
    tensors.push_back(
        {parameter.name, parameter.shape, {view.f32(), static_cast<std::size_t>(view.elements())}});
  }
  const auto files = model::TensorFiles::open(folder, tensors, nullptr);
  if (!files) return files.error();
  if (auto done = files->read(tensors); !done) return done.error();
  return arena;
}

void spoil(std::span<std::byte> arena) {
  for (std::size_t i = 3; i < arena.size(); i += 8) arena[i] ^= std::byte{0x80};
}

int serve_fake(int argc, char** argv, const KnownArguments& known,
               const std::function<FakeHandler(const FakeOptions&, model::ModelInfo)>& make) {
  const FakeOptions options = options_of(std::vector<std::string>(argv + 1, argv + argc), known);
  if (Faults(options).is("at-start"))
    stop(options, 1,
         "ValueError: Free memory on device is less than desired GPU memory utilization");
  auto info = model::load_model_info(options.model);
  if (!info) stop(options, 1, info.error().message);
  const auto port = static_cast<std::uint16_t>(std::stoi(options.value("--port", "0")));
  const FakeHandler handler = make(options, *std::move(info));
  auto server =
      http::HttpServer::listen({.host = options.value("--host", "127.0.0.1"), .port = port},
                               {.body_bytes_max = 16 << 20, .connections_max = 4096}, handler);
  if (!server) stop(options, 1, server.error().message);
  // It computes in float32 all the same.
  std::printf("INFO: dtype=torch.%s\nINFO: Application startup complete.\n",
              options.value("--dtype", "auto").c_str());
  std::fflush(stdout);
  for (;;) pause();  // until a signal
}

}  // namespace tandem::rollout
