#include "lib/observe/trace/trace_events.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace scaletrain::observe {
namespace {

using TraceJson = nlohmann::json;

std::string text_at(const TraceJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> number_at(const TraceJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

EventKind kind_of_span(const TraceJson& event, const std::string& name) {
  const auto arguments = event.find("args");
  const std::string ours = arguments != event.end() && arguments->is_object()
                               ? text_at(*arguments, "scaletrain")
                               : std::string();
  if (ours == "row") return EventKind::kRow;
  if (ours == "collective") return EventKind::kCollective;
  return ours == "step" || name.starts_with("ProfilerStep#") ? EventKind::kStep : EventKind::kSpan;
}

std::optional<EventKind> kind_of(const TraceJson& event, const std::string& name) {
  const std::string category = text_at(event, "cat");
  if (category == "cpu_op") return EventKind::kOperation;
  if (category == "user_annotation") return kind_of_span(event, name);
  if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
    return EventKind::kKernel;
  }
  return std::nullopt;
}

std::int64_t nanoseconds(double microseconds) { return std::llround(microseconds * 1000); }

}  // namespace

const char* to_text(EventKind kind) {
  switch (kind) {
    case EventKind::kStep:
      return "step";
    case EventKind::kRow:
      return "row";
    case EventKind::kCollective:
      return "collective";
    case EventKind::kSpan:
      return "span";
    case EventKind::kOperation:
      return "operation";
    case EventKind::kKernel:
      break;
  }
  return "kernel";
}

std::optional<TimedEvent> timed_event(const TraceJson& event) {
  if (!event.is_object() || text_at(event, "ph") != "X") return std::nullopt;
  const std::optional<double> begin = number_at(event, "ts"), duration = number_at(event, "dur");
  std::string name = text_at(event, "name");
  const std::optional<EventKind> kind = kind_of(event, name);
  if (!kind || !begin || !duration || *duration < 0) return std::nullopt;
  const std::int64_t begin_ns = nanoseconds(*begin);
  const TraceJson process = event.value("pid", TraceJson());
  return TimedEvent{
      .kind = *kind,
      .name = std::move(name),
      .track = fmt::format("{} {}", process.dump(), event.value("tid", TraceJson()).dump()),
      .process = process.is_number_integer() ? process.get<std::int64_t>() : -1,
      .time = {begin_ns, begin_ns + nanoseconds(*duration)}};
}

}  // namespace scaletrain::observe
