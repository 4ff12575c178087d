// A record of metrics.jsonl, as exporters of experiment trackers receive it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::track {

struct Field {
  std::string name;  // "loss"; "model.NAME" for a member of an object
  double value = 0;  // NaN for null
  std::string text;  // digits as in metrics.jsonl; "nan" for null
};

struct Record {
  std::string event;  // "train"
  std::string split;  // "val" of an "eval" record; "" for other events
  std::int64_t attempt = 0, step = 0;
  double time = 0;              // Unix seconds
  std::vector<Field> fields{};  // numbers and nulls in file order, without "format"
};

// Returns nullopt for a line without an event or a step.
std::optional<Record> parse_record(const nlohmann::ordered_json& line);

}  // namespace scaletrain::track
