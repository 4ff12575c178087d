// Records of metrics.jsonl for tests of exporters.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lib/track/record.h"

namespace scaletrain::track {

inline Record record_of(const std::string& line) {
  return parse_record(nlohmann::ordered_json::parse(line)).value();
}

inline Record train_record(int step, double loss, int attempt = 0) {
  return record_of(nlohmann::ordered_json{
      {"event", "train"}, {"attempt", attempt}, {"step", step}, {"loss", loss}, {"time", 100.5}}
                       .dump());
}

inline Record eval_record(int step, double top1) {
  return record_of(nlohmann::ordered_json{
      {"event", "eval"},
      {"attempt", 0},
      {"split", "val"},
      {"step", step},
      {"top1", top1},
      {"time", 101.5}}.dump());
}

}  // namespace scaletrain::track
