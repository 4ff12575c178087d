// Variables of the environment for the length of a scope.
#pragma once

#include <cstdlib>
#include <map>
#include <string>

namespace scaletrain::launcher {

using Values = std::map<std::string, std::string>;

class Variables {
 public:
  explicit Variables(const Values& values) : values_(values) {
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  Values values_;
};

}  // namespace scaletrain::launcher
