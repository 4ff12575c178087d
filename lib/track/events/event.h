// Events of a run for people and pagers: start, checkpoint, restart, failure, end.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/track/feed/sink.h"

namespace scaletrain::track {

struct Event {
  std::string name;  // one of kEvents in lib/recipe/sections/log.h
  // {"event", "run", "text", "attempt", ..., "time"}: name, run, a sentence, and the fields of the
  // journal's line. It has no environment variables.
  nlohmann::ordered_json payload;
};

using EventSink = Sink<Event>;

// Returns the events of a line of journal.jsonl: none, one, or two for the failure that ends a job.
std::vector<Event> parse_events(const nlohmann::ordered_json& line, const std::string& run_name);

}  // namespace scaletrain::track
