#include "lib/recipe/catalog/values.h"

#include <fmt/format.h>

#include <stdexcept>

namespace scaletrain::recipe {
namespace {

template <class T>
const T& option(const Component& component, const std::string& key) {
  const auto found = component.options.find(key);
  const T* const value =
      found == component.options.end() ? nullptr : std::get_if<T>(&found->second);
  if (value == nullptr) {
    throw std::logic_error(
        fmt::format(R"("{}" has no key "{}" of this type)", component.name, key));
  }
  return *value;
}

}  // namespace

std::int64_t Component::integer(const std::string& key) const {
  return option<std::int64_t>(*this, key);
}
double Component::number(const std::string& key) const { return option<double>(*this, key); }
bool Component::flag(const std::string& key) const { return option<bool>(*this, key); }
const std::string& Component::text(const std::string& key) const {
  return option<std::string>(*this, key);
}
const std::vector<double>& Component::numbers(const std::string& key) const {
  return option<std::vector<double>>(*this, key);
}

}  // namespace scaletrain::recipe
