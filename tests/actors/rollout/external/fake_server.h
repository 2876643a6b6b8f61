// What the fakes of inference servers have in common: a command line that refuses what the real one
// refuses, faults, and the listening.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "actors/model/checkpoint.h"
#include "runtime/base/guarded.h"
#include "runtime/base/json.h"
#include "runtime/http/http_server.h"
#include "tests/actors/rollout/external/fake_model.h"

namespace tandem::rollout {

// The arguments that a fake takes, by the real one's names. All take --fault, --fault-at and
// --fault-once besides.
struct KnownArguments {
  const char* program = "";             // before each error: "vllm"
  std::span<const char* const> values;  // arguments with a value
  std::span<const char* const> flags;
  const char* model = nullptr;  // the argument that names the model; null: the one without a name
};

struct FakeOptions {
  std::string program;
  std::string model;
  std::map<std::string, std::string> values;
  std::set<std::string> flags;

  std::string value(const std::string& argument, const std::string& otherwise = "") const;
};

// Ends the process as the real one does, with `why` as its last words.
[[noreturn]] void stop(const FakeOptions& options, int code, const std::string& why);

// With --fault NAME a fake has one fault, once: the first time that it meets its place, or the
// --fault-at-th time. --fault-once FILE: only where FILE is not there; it is made then.
class Faults {
 public:
  explicit Faults(const FakeOptions& options);
  bool now(const std::string& name);  // whether this fault happens
  bool is(const std::string& name) const { return name_ == name; }
  int at() const { return left_; }  // --fault-at, before the fault has happened

 private:
  const std::string name_, once_;
  std::atomic<int> left_;
};

// Under the fault late-answers, answers that wait: one is given when the figures are asked for the
// second time after it was held, so that whoever asks has seen its tokens counted before.
class LateAnswers {
 public:
  void hold(std::function<void()> give);
  void figures_asked();

 private:
  Guarded<std::array<std::vector<std::function<void()>>, 2>> held_;  // newer ones, older ones
};

http::HttpResponse answer(const nlohmann::json& body);
http::HttpAnswer never();  // the connection stays open

// Whether so many tokens of a prompt and a completion fit in so many positions.
bool fits(const FakeRequest& request, std::int64_t positions);
// The f32 weights of a folder with model.safetensors, laid out by the manifest.
Result<device::Arena> read_folder(const std::string& folder, const device::Manifest& manifest);
// Weights that are not those of the version: signs of every other float are turned.
void spoil(std::span<std::byte> arena);

// Reads the command line, loads the model's configuration, makes the fake and serves until a
// signal. --fault at-start ends it before.
using FakeHandler = std::function<http::HttpAnswer(const http::HttpRequest&)>;
int serve_fake(int argc, char** argv, const KnownArguments& known,
               const std::function<FakeHandler(const FakeOptions&, model::ModelInfo)>& make);

}  // namespace tandem::rollout
