// Texts of users that go into a manifest for Kubernetes. Each function returns what is wrong with a
// text, or an empty text. Pure.
#pragma once

#include <string>

namespace tandem::launch {

// The name of a job, of which the names of its objects, pods and hosts are made: those have 63
// characters at most, and Services begin with a letter.
std::string not_a_name(const std::string& text);
// A namespace or a queue; it may be a label's value.
std::string not_a_label(const std::string& text);
// The name of another object: a claim or a class.
std::string not_an_objects_name(const std::string& text);
std::string not_a_quantity(const std::string& text);  // "16Gi", "0.5", "500m"
std::string not_an_image(const std::string& text);

}  // namespace tandem::launch
