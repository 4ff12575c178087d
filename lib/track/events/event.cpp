#include "lib/track/events/event.h"

#include <fmt/format.h>

#include <cstdint>

#include "lib/core/text/text.h"
#include "lib/observe/secrets.h"

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

std::string text_at(const Json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t integer_at(const Json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}

// " at step 12"; "" if the step is not known.
std::string at_step(const Json& line) {
  const std::int64_t step = integer_at(line, "step");
  return step < 0 ? "" : fmt::format(" at step {}", step);
}

// Returns ": CAUSE" with the first line of the cause; "" if there is none.
std::string because(const Json& line) {
  const std::string cause = text_at(line, "cause");
  return cause.empty() ? "" : ": " + cause.substr(0, cause.find('\n'));
}

std::string start_text(const Json& line) {
  const std::int64_t ranks = integer_at(line, "ranks"), step = integer_at(line, "step");
  return fmt::format("started with {}{}", core::counted(ranks < 0 ? 1 : ranks, "rank"),
                     step < 0 ? "" : fmt::format(", resumed from step {}", step));
}

std::string restart_text(const Json& line) {
  const std::string text = text_at(line, "text");
  return text.empty() ? "starts again" + because(line) : text;
}

std::string stop_text(const Json& line) {
  const std::string signal = text_at(line, "signal");
  return (signal.empty() ? "was stopped" : "was stopped by " + signal) + because(line);
}

Event make_event(const std::string& name, const std::string& run, const std::string& text,
                 const Json& line) {
  Json payload{{"event", name}, {"run", run}, {"text", run + ": " + text}};
  for (const auto& field : line.items()) {
    if (payload.contains(field.key()) || field.key() == "final") continue;
    Json value = field.value();
    if (value.is_string()) value = observe::without_secrets(value.get<std::string>());
    payload[field.key()] = value;
  }
  return {.name = name, .payload = std::move(payload)};
}

Event end_event(const std::string& result, const std::string& run, const std::string& text,
                const Json& line) {
  Event event = make_event("end", run, text, line);
  event.payload["result"] = result;
  return event;
}

}  // namespace

std::vector<Event> parse_events(const Json& line, const std::string& run_name) {
  const std::string kind = text_at(line, "event");
  const auto only = [&](const char* name, const std::string& text) {
    return std::vector<Event>{make_event(name, run_name, text, line)};
  };
  if (kind == "attempt_started") {  // a later one was announced by "restarting"
    return integer_at(line, "restart") > 0 ? std::vector<Event>{} : only("start", start_text(line));
  }
  if (kind == "checkpoint_saved") return only("checkpoint", "checkpoint saved" + at_step(line));
  if (kind == "restarting") return only("restart", restart_text(line));
  if (kind == "finished") {
    return {end_event("finished", run_name, "finished" + at_step(line), line)};
  }
  if (kind == "stopped") return {end_event("stopped", run_name, stop_text(line), line)};
  if (kind != "attempt_failed") return {};
  std::vector<Event> events = only("failure", "failed" + at_step(line) + because(line));
  if (line.value("final", false)) {
    events.push_back(end_event("failed", run_name, "failed" + at_step(line), line));
  }
  return events;
}

}  // namespace scaletrain::track
