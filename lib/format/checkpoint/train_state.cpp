#include "lib/format/checkpoint/train_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/format/checkpoint/train_state_check.h"
#include "lib/format/json_fields.h"

namespace scaletrain::format {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kStateFormat = 1;

// 64 bits as text: readers that hold numbers as doubles would lose the last eleven.
std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::uint64_t parse_hex(const std::string& text, const std::string& place) {
  if (const auto value = core::parse_number<std::uint64_t>(text, 16)) return *value;
  throw core::CheckpointError(place, "is not a hexadecimal number", "use another checkpoint");
}

std::vector<std::vector<std::int64_t>> parse_layout(const nlohmann::json& json,
                                                    const std::string& place) {
  const auto check = [&](bool fits) {
    if (fits) return;
    throw core::CheckpointError(place, "is not a list of lists of whole numbers from 0",
                                "use another checkpoint");
  };
  std::vector<std::vector<std::int64_t>> layout;
  check(json.is_array());
  for (const nlohmann::json& bucket : json) {
    check(bucket.is_array());
    layout.emplace_back();
    for (const nlohmann::json& number : bucket) {
      check(number.is_number_unsigned());
      layout.back().push_back(number.get<std::int64_t>());
    }
  }
  return layout;
}

std::vector<std::int64_t> parse_numbers(const nlohmann::json& json, std::int64_t lowest,
                                        const std::string& place) {
  std::vector<std::int64_t> numbers;
  bool sound = json.is_array();
  for (const nlohmann::json& number : json) {
    sound = sound && number.is_number_integer() && number >= lowest;
    if (sound) numbers.push_back(number.get<std::int64_t>());
  }
  if (!sound) {
    throw core::CheckpointError(place,
                                fmt::format("is not a list of whole numbers from {}", lowest),
                                "use another checkpoint");
  }
  return numbers;
}

std::vector<RankedStep> parse_ranked(const nlohmann::json& json, const std::string& place) {
  std::vector<RankedStep> result;
  bool sound = json.is_array();
  for (const nlohmann::json& one : json) {
    sound = sound && one.is_array() && one.size() == 2 && one[0].is_number_unsigned() &&
            one[1].is_number();
    if (sound) result.push_back({one[0].get<std::int64_t>(), one[1].get<double>()});
  }
  // Some metrics are better when higher, others when lower.
  const auto is_sorted = [&](auto comes_first) {
    return std::is_sorted(result.begin(), result.end(), [&](const auto& a, const auto& b) {
      return comes_first(a.metric, b.metric);
    });
  };
  sound = sound && (is_sorted(std::greater<>()) || is_sorted(std::less<>()));
  if (!sound) {
    throw core::CheckpointError(place, "is not a list of [step, metric], the best first",
                                "use another checkpoint");
  }
  return result;
}

std::vector<StepMeasure> parse_measures(const nlohmann::json& json, const std::string& place) {
  std::vector<StepMeasure> result;
  bool sound = json.is_array();
  for (const nlohmann::json& one : json) {
    sound = sound && one.is_array() && one.size() == 3 && one[0].is_number_unsigned() &&
            one[1].is_number() && one[2].is_number();
    if (!sound) break;
    const StepMeasure measure{one[0].get<std::int64_t>(), one[1].get<double>(),
                              one[2].get<double>()};
    sound = result.empty() ? measure.step > 0 : measure.step > result.back().step;
    result.push_back(measure);
  }
  if (!sound) {
    throw core::CheckpointError(place, "is not a list of [step, loss, norm], the last step last",
                                "use another checkpoint");
  }
  return result;
}

OrderedJson render_measures(const std::vector<StepMeasure>& measures) {
  OrderedJson result = OrderedJson::array();
  for (const StepMeasure& one : measures) {
    result.push_back({one.step, one.loss, one.grad_norm});
  }
  return result;
}

OrderedJson render_ranked(const std::vector<RankedStep>& ranked) {
  OrderedJson result = OrderedJson::array();
  for (const RankedStep& one : ranked) result.push_back({one.step, one.metric});
  return result;
}

// Values as JSON holds them.
template <class T>
const T& written(const T& value) {
  return value;
}
std::string written(std::uint64_t value) { return hex(value); }
OrderedJson written(const std::vector<RankedStep>& value) { return render_ranked(value); }
OrderedJson written(const std::vector<StepMeasure>& value) { return render_measures(value); }

class Reader {
 public:
  Reader(JsonFields& fields, const std::string& place) : fields_(fields), place_(place) {}

  template <class T>
  void operator()(const char* name, T& value, const FieldRule& rule) const {
    if (!rule.later || fields_.has(name)) read(name, value, rule);
  }

 private:
  using Numbers = std::vector<std::int64_t>;

  void read(const char* name, std::int64_t& value, const FieldRule& rule) const {
    value = fields_.integer(name, rule.lowest);
  }
  void read(const char* name, int& value, const FieldRule& rule) const {
    const std::int64_t found = fields_.integer(name, rule.lowest);
    value = static_cast<int>(std::min<std::int64_t>(found, std::numeric_limits<int>::max()));
  }
  void read(const char* name, std::uint64_t& value, const FieldRule& /*rule*/) const {
    value = parse_hex(fields_.text(name), place_of(name));
  }
  void read(const char* name, double& value, const FieldRule& /*rule*/) const {
    value = fields_.number(name);
  }
  void read(const char* name, std::string& value, const FieldRule& /*rule*/) const {
    value = fields_.text(name);
  }
  void read(const char* name, bool& value, const FieldRule& /*rule*/) const {
    const nlohmann::json& found = fields_.value(name);
    if (!found.is_boolean()) {
      throw core::CheckpointError(place_of(name), "is not true or false", "use another checkpoint");
    }
    value = found.get<bool>();
  }
  void read(const char* name, nlohmann::json& value, const FieldRule& /*rule*/) const {
    value = fields_.value(name);
  }
  void read(const char* name, Numbers& value, const FieldRule& rule) const {
    value = parse_numbers(fields_.value(name), rule.lowest, place_of(name));
  }
  void read(const char* name, std::vector<std::string>& value, const FieldRule& /*rule*/) const {
    const nlohmann::json& found = fields_.value(name);
    const bool sound =
        found.is_array() &&
        std::all_of(found.begin(), found.end(), [](const auto& one) { return one.is_string(); });
    if (!sound) {
      throw core::CheckpointError(place_of(name), "is not a list of texts",
                                  "use another checkpoint");
    }
    value = found.get<std::vector<std::string>>();
  }
  void read(const char* name, std::vector<Numbers>& value, const FieldRule& /*rule*/) const {
    value = parse_layout(fields_.value(name), place_of(name));
  }
  void read(const char* name, std::vector<RankedStep>& value, const FieldRule& /*rule*/) const {
    value = parse_ranked(fields_.value(name), place_of(name));
  }
  void read(const char* name, std::vector<StepMeasure>& value, const FieldRule& /*rule*/) const {
    value = parse_measures(fields_.value(name), place_of(name));
  }

  std::string place_of(const char* name) const { return place_ + ": /" + name; }

  JsonFields& fields_;
  const std::string& place_;
};

}  // namespace

std::string render_state(const TrainState& state) {
  OrderedJson json = {{"format", kStateFormat}};
  visit_fields(state, [&json](const char* name, const auto& value, const FieldRule& /*rule*/) {
    json[name] = written(value);
  });
  return json.dump() + "\n";
}

TrainState parse_state(std::string_view text, const std::string& place) {
  const nlohmann::json json = parse_object(text, place);
  JsonFields fields(json, place);
  const std::int64_t version = fields.integer("format", 1);
  if (version > kStateFormat) {
    throw core::CheckpointError(
        place, fmt::format("has format {}; this program reads up to {}", version, kStateFormat),
        "use the program that wrote it (manifest.json names it), or a newer one");
  }
  TrainState state;
  visit_fields(state, Reader(fields, place));
  if (!fields.has(field_name(state, &state.seen_s))) state.seen_s = state.trained_s;
  fields.done();
  check_state(state, place);
  return state;
}

}  // namespace scaletrain::format
