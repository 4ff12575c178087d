#include "lib/track/record.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

void add_fields(const Json& object, const std::string& prefix, std::vector<Field>& fields) {
  for (const auto& item : object.items()) {
    if (item.key() == "format" && prefix.empty()) continue;  // version of the file
    const std::string name = prefix + item.key();
    if (item.value().is_number()) {
      fields.push_back({name, item.value().get<double>(), item.value().dump()});
    } else if (item.value().is_null()) {
      fields.push_back({name, std::numeric_limits<double>::quiet_NaN(), "nan"});
    } else if (item.value().is_object() && prefix.empty()) {
      add_fields(item.value(), name + ".", fields);
    }
  }
}

}  // namespace

std::optional<Record> parse_record(const Json& line) {
  const auto event = line.find("event"), step = line.find("step"), split = line.find("split");
  if (event == line.end() || !event->is_string()) return std::nullopt;
  if (step == line.end() || !step->is_number_integer()) return std::nullopt;
  Record record{.event = event->get<std::string>(), .split = "", .step = step->get<std::int64_t>()};
  if (split != line.end() && split->is_string()) record.split = split->get<std::string>();
  add_fields(line, "", record.fields);
  for (const Field& field : record.fields) {
    if (field.name == "attempt") record.attempt = static_cast<std::int64_t>(field.value);
    if (field.name == "time") record.time = field.value;
  }
  return record;
}

}  // namespace scaletrain::track
