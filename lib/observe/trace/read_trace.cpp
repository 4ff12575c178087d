#include "lib/observe/trace/read_trace.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/text.h"

namespace scaletrain::observe {
namespace {

namespace fs = std::filesystem;
using TraceJson = nlohmann::json;

constexpr const char* kTraceRemedy =
    "name a trace in Chrome's JSON format, such as RUN/profile/*.json";

// Returns the number in "PREFIXnumberSUFFIX" at the front of `text`, and removes all three.
std::optional<std::int64_t> take_number(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  const std::size_t begin = prefix.size();
  const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
  const auto number = core::parse_number<std::int64_t>(text.substr(begin, end - begin));
  if (number) text.remove_prefix(end);
  return number;
}

}  // namespace

TraceJson read_trace(std::istream& stream, const std::string& name,
                     const std::function<void(TraceJson& event)>& on_event) {
  constexpr int kKey = 1, kElement = 2;  // depths
  bool is_event = false;
  // Events are discarded once they were read, so that the array stays empty.
  const auto read = [&](int depth, TraceJson::parse_event_t part, TraceJson& parsed) {
    if (part == TraceJson::parse_event_t::key && depth == kKey) is_event = parsed == "traceEvents";
    if (!is_event || depth != kElement || part != TraceJson::parse_event_t::object_end) return true;
    on_event(parsed);
    return false;
  };
  TraceJson header;
  try {
    header = TraceJson::parse(stream, read);
  } catch (const TraceJson::exception& error) {
    throw core::DataError(name, fmt::format("is not a trace: {}", error.what()), kTraceRemedy);
  }
  if (!header.is_object() || !header.contains("traceEvents")) {
    throw core::DataError(name, "is not a trace: it has no \"traceEvents\"", kTraceRemedy);
  }
  header.erase("traceEvents");
  return header;
}

TraceJson read_trace(const fs::path& file, const std::function<void(TraceJson& event)>& on_event) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw core::DataError(file.string(), "cannot be opened", "correct the path");
  }
  return read_trace(stream, file.string(), on_event);
}

int rank_of_trace(const TraceJson& header, int otherwise) {
  const auto info = header.find("distributedInfo");
  if (info == header.end() || !info->is_object()) return otherwise;
  const auto rank = info->find("rank");
  return rank != info->end() && rank->is_number_integer() ? rank->get<int>() : otherwise;
}

TraceName parse_trace_name(const std::string& name) {
  std::string_view rest = name;
  const std::optional<std::int64_t> step = take_number(rest, "step-");
  const std::optional<std::int64_t> rank = take_number(rest, step ? "-rank-" : "rank-");
  if (!rank || rest != ".json") return {};
  return {.step = step.value_or(-1), .rank = static_cast<int>(*rank)};
}

std::vector<fs::path> newest_traces(const fs::path& run) {
  std::map<std::int64_t, std::map<int, fs::path>> files;  // by step and rank
  std::map<std::int64_t, fs::file_time_type> written;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "profile", error)) {
    const TraceName name = parse_trace_name(entry.path().filename().string());
    if (name.rank < 0) continue;
    files[name.step][name.rank] = entry.path();
    written[name.step] = std::max(written[name.step], entry.last_write_time(error));
  }
  std::int64_t newest = -1;
  for (const auto& [step, time] : written) {
    if (step >= 0 && (newest < 0 || time > written[newest])) newest = step;
  }
  std::vector<fs::path> result;
  for (const auto& [rank, path] : files[newest]) result.push_back(path);
  return result;
}

}  // namespace scaletrain::observe
