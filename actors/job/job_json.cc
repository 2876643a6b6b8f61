#include "actors/job/job_json.h"

#include "actors/job/print_job.h"
#include "runtime/base/json.h"

namespace tandem::job {
namespace {

using nlohmann::json;

// One overload per alternative of FieldRef; a missing one does not compile.
struct ToJson {
  json operator()(const std::filesystem::path* v) const { return v->string(); }
  json operator()(const EnumField& v) const {
    const auto name = v.get();
    return name ? json(std::string(*name)) : json();
  }
  json operator()(const WordOrNumber& v) const {
    return std::visit(
        [&](const auto* number) { return *number ? json(**number) : json(std::string(v.word)); },
        v.number);
  }
  json operator()(const std::vector<std::filesystem::path>* v) const {
    json list = json::array();
    for (const auto& path : *v) list.push_back(path.string());
    return list;
  }
  json operator()(const std::map<std::string, std::string>* v) const {
    json names = json::array();
    for (const auto& [name, value] : *v) names.push_back(name);
    return names;
  }
  json operator()(const JsonObject* v) const { return parse_json(v->text); }
  json operator()(const NameOrPath* v) const { return v->text; }
  json operator()(const PlacedName* v) const { return v->text; }
  template <class T>
  json operator()(const std::optional<T>* v) const {
    return *v ? (*this)(&**v) : json();
  }
  template <class T>
  json operator()(const T* v) const {
    return *v;
  }
};

// The place of a path such as "learner.optimizer.lr", with the objects on the way.
json& place(json& root, const std::string& path) {
  json* at = &root;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    at = &(*at)[path.substr(begin, end - begin)];
    begin = end + 1;
  }
  return *at;
}

}  // namespace

json job_json(const JobSpec& job) {
  json root = json::object();
  for_each_field(job, [&root](const std::string& path, const FieldRef& field) {
    place(root, path) = std::visit(ToJson{}, field);
  });
  return root;
}

}  // namespace tandem::job
