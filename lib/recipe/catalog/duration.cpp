#include "lib/recipe/catalog/duration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace scaletrain::recipe {
namespace {

constexpr double kMostSteps = 1e12;

// Key of one unit: reading it sets the unit of the duration.
class UnitKey : public Type {
 public:
  UnitKey(Duration& value, Duration::Unit unit, bool may_be_zero)
      : value_(value),
        unit_(unit),
        range_(unit == Duration::Unit::kSteps ? from(may_be_zero ? 0 : 1).to(kMostSteps)
               : may_be_zero                  ? from(0).to(kMostSteps)
                                              : above(0).to(kMostSteps)) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    Duration found{unit_, 0};
    if (unit_ == Duration::Unit::kSteps) {
      std::int64_t steps = 0;
      integer(steps, range_)->read(node, pointer, problems);
      found.value = static_cast<double>(steps);
    } else {
      number(found.value, range_)->read(node, pointer, problems);
    }
    value_ = found;
  }
  Json write() const override {
    if (value_.unit != unit_) return {};
    const bool is_whole = value_.value == std::floor(value_.value);
    return is_whole ? Json(static_cast<std::int64_t>(value_.value)) : Json(value_.value);
  }
  Json schema() const override {
    std::int64_t steps = 0;
    double other = 0;
    return unit_ == Duration::Unit::kSteps ? integer(steps, range_)->schema()
                                           : number(other, range_)->schema();
  }
  std::string phrase() const override {
    return (unit_ == Duration::Unit::kSteps ? "an integer " : "a number ") + range_.phrase();
  }

 private:
  Duration& value_;
  Duration::Unit unit_;
  Range range_;
};

const char* unit_help(Duration::Unit unit) {
  switch (unit) {
    case Duration::Unit::kSteps:
      return "optimizer steps";
    case Duration::Unit::kEpochs:
      return "epochs, for example 0.5 or 10";
    case Duration::Unit::kMinutes:
      return "minutes";
  }
  return "";
}

}  // namespace

const Units& any_unit() {
  static const Units units{Duration::Unit::kSteps, Duration::Unit::kEpochs,
                           Duration::Unit::kMinutes};
  return units;
}

std::string unit_name(Duration::Unit unit) {
  switch (unit) {
    case Duration::Unit::kSteps:
      return "steps";
    case Duration::Unit::kEpochs:
      return "epochs";
    case Duration::Unit::kMinutes:
      return "minutes";
  }
  return "";
}

void add_units(Object& keys, Duration& value, const Units& units, bool may_be_zero,
               const std::string& help) {
  std::vector<std::string> names;
  for (const Duration::Unit unit : units) {
    names.push_back(unit_name(unit));
    keys.add(names.back(), std::make_unique<UnitKey>(value, unit, may_be_zero),
             fmt::format("{} in {}.", help, unit_help(unit)));
  }
  keys.exactly_one(names);
}

TypePtr duration(Duration& value, const Units& units, bool may_be_zero) {
  std::vector<std::string> forms;
  for (const Duration::Unit unit : units) {
    forms.push_back(fmt::format("{{\"{}\": n}}", unit_name(unit)));
  }
  auto result = std::make_unique<Object>(fmt::format("{}", fmt::join(forms, " or ")));
  add_units(*result, value, units, may_be_zero, "Length");
  return result;
}

}  // namespace scaletrain::recipe
