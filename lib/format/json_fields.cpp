#include "lib/format/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/printable.h"
#include "lib/core/text/placeholder.h"

namespace scaletrain::format {
namespace {

using Json = nlohmann::json;

constexpr const char* kDamagedJson = "the file is damaged or was changed by hand: use another copy";

// Checks for JSON that the parser accepts and a file must not have. A separate pass, since the
// parser's own callback takes time quadratic in the number of keys.
class Check : public nlohmann::json_sax<Json> {
 public:
  explicit Check(std::string place) : place_(std::move(place)) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return look(); }
  bool boolean(bool /*value*/) override { return look(); }
  bool number_integer(std::int64_t /*value*/) override { return look(); }
  bool number_unsigned(std::uint64_t /*value*/) override { return look(); }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return look(); }
  bool string(std::string& /*value*/) override { return look(); }
  bool binary(Json::binary_t& /*value*/) override { return look(); }
  bool start_object(std::size_t /*elements*/) override {
    keys_.emplace_back();
    return enter();
  }
  bool key(std::string& name) override {
    if (!keys_.back().insert(name).second) {
      problem_ = fmt::format("has the key \"{}\" twice", core::printable(name));
    }
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return leave();
  }
  bool start_array(std::size_t /*elements*/) override { return enter(); }
  bool end_array() override { return leave(); }
  // The parser reports it again.
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool look() const {
    constexpr int kMaxDepth = 64;
    if (depth_ <= kMaxDepth) return true;
    throw core::CheckpointError(place_, "is nested too deeply", kDamagedJson);
  }
  bool enter() {
    look();
    ++depth_;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  std::string place_, problem_;
  std::vector<std::set<std::string>> keys_;
  int depth_ = 0;
};

}  // namespace

std::string json_problem(std::string_view text) {
  try {
    [[maybe_unused]] const Json parsed = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const std::string_view rest = text.substr(std::min(error.byte - 1, text.size()));
    for (const std::string_view name : {"NaN", "Infinity"}) {
      if (!rest.starts_with(name)) continue;
      return fmt::format("is not JSON: {} at its byte {}, which JSON does not have", name,
                         error.byte);
    }
    return fmt::format("is not JSON at its byte {}", error.byte);
  } catch (const Json::out_of_range&) {
    return "holds a number that is too large";
  }
  return "";
}

Json parse_object(std::string_view text, const std::string& place) {
  Check check(place);
  Json::sax_parse(text, &check);
  std::string problem = check.problem();
  Json result;
  try {
    result = Json::parse(text);
  } catch (const Json::exception&) {
    problem = json_problem(text);
  }
  if (problem.empty() && !result.is_object()) problem = "is not a JSON object";
  if (!problem.empty()) core::refuse_placeholder<core::CheckpointError>(place, text);
  if (!problem.empty()) throw core::CheckpointError(place, problem, kDamagedJson);
  return result;
}

JsonFields::JsonFields(const Json& object, std::string place, std::string pointer)
    : object_(object), place_(std::move(place)), pointer_(std::move(pointer)) {
  if (!object_.is_object()) {
    throw core::CheckpointError(fmt::format("{}: {}", place_, pointer_), "is not an object",
                                kDamagedJson);
  }
}

std::int64_t JsonFields::integer(const std::string& key, std::int64_t lowest) {
  const Json& found = value(key);
  const bool fits =
      found.is_number_integer() &&
      (!found.is_number_unsigned() ||
       found.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  if (!fits || found.get<std::int64_t>() < lowest) {
    refuse(key, lowest == std::numeric_limits<std::int64_t>::min()
                    ? "a whole number"
                    : fmt::format("a whole number from {}", lowest));
  }
  return found.get<std::int64_t>();
}

double JsonFields::number(const std::string& key) {
  if (!value(key).is_number()) refuse(key, "a number");
  return value(key).get<double>();
}

const std::string& JsonFields::text(const std::string& key) {
  if (!value(key).is_string()) refuse(key, "text");
  return value(key).get_ref<const std::string&>();
}

const Json& JsonFields::value(const std::string& key) {
  asked_.insert(key);
  const auto found = object_.find(key);
  if (found == object_.end()) {
    throw core::CheckpointError(fmt::format("{}: {}/{}", place_, pointer_, key), "is missing",
                                kDamagedJson);
  }
  return *found;
}

void JsonFields::done() const {
  for (const auto& item : object_.items()) {
    if (asked_.count(item.key()) == 0) {
      throw core::CheckpointError(
          fmt::format("{}: {}/{}", place_, pointer_, core::printable(item.key())),
          "is not a key of this format", kDamagedJson);
    }
  }
}

void JsonFields::refuse(const std::string& key, const std::string& allowed) const {
  constexpr std::size_t kShown = 100;
  const std::string found = object_.at(key).dump(-1, ' ', true, Json::error_handler_t::replace);
  throw core::CheckpointError(fmt::format("{}: {}/{}", place_, pointer_, key),
                              fmt::format("is {}", found.substr(0, kShown)),
                              fmt::format("{} is allowed here", allowed));
}

}  // namespace scaletrain::format
