// Values of recipe keys besides plain numbers and texts: durations, and components chosen by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace scaletrain::recipe {

// A length of training: {"steps": n}, {"epochs": n} or {"minutes": n}. Steps are optimizer steps;
// epochs may be fractional.
struct Duration {
  enum class Unit { kSteps, kEpochs, kMinutes };
  Unit unit = Unit::kSteps;
  double value = 0;
};

// A component chosen by name, with the keys that its row in a list (models.def, ...) declares.
// After loading, every declared key is present.
class Component {
 public:
  using Value = std::variant<std::int64_t, double, bool, std::string, std::vector<double>>;

  std::string name;
  std::map<std::string, Value> options;

  // Returns the value of a declared key; throws std::logic_error for an undeclared key or another
  // type.
  std::int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  bool flag(const std::string& key) const;
  const std::string& text(const std::string& key) const;
  const std::vector<double>& numbers(const std::string& key) const;
};

}  // namespace scaletrain::recipe
