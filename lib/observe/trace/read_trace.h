// Reads Chrome traces event by event: memory does not grow with the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace scaletrain::observe {

// Calls `on_event` with each element of "traceEvents", in the order of the file. Returns the other
// keys of the trace. Throws core::DataError naming `name` if it is no JSON or has no "traceEvents".
nlohmann::json read_trace(std::istream& stream, const std::string& name,
                          const std::function<void(nlohmann::json& event)>& on_event);

// Opens `file` and reads it likewise. Throws core::DataError if it cannot be opened, too.
nlohmann::json read_trace(const std::filesystem::path& file,
                          const std::function<void(nlohmann::json& event)>& on_event);

// Rank in "distributedInfo"; `otherwise` if the trace has none.
int rank_of_trace(const nlohmann::json& header, int otherwise);

// Trace files of a run: those of the newest request, RUN/profile/step-S-rank-R.json with the latest
// write, otherwise those of its recipe, rank-R.json. In the order of ranks; {} if there is none.
std::vector<std::filesystem::path> newest_traces(const std::filesystem::path& run);

// Step and rank in the name of a trace file; `step` is -1 in rank-R.json.
struct TraceName {
  std::int64_t step = -1;
  int rank = -1;  // -1: not the name of a trace
};
TraceName parse_trace_name(const std::string& name);

}  // namespace scaletrain::observe
