// Names to things that make them: one registry per kind (model, loss, optimizer, ...), filled from
// an explicit list.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace scaletrain::core {

template <class Factory>
class Registry {
 public:
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  // Throws std::logic_error for a repeated name: a mistake of the programmer.
  void add(std::string name, Factory factory) {
    if (!factories_.emplace(name, std::move(factory)).second) {
      throw std::logic_error(kind_ + " \"" + name + "\" is registered twice");
    }
  }

  // Throws std::logic_error for an unknown name: recipes were validated against the same list.
  const Factory& find(std::string_view name) const {
    const auto found = factories_.find(name);
    if (found == factories_.end()) {
      throw std::logic_error("no " + kind_ + " is called \"" + std::string(name) + "\"");
    }
    return found->second;
  }

  bool has(std::string_view name) const { return factories_.find(name) != factories_.end(); }

 private:
  std::string kind_;
  std::map<std::string, Factory, std::less<>> factories_;
};

}  // namespace scaletrain::core
