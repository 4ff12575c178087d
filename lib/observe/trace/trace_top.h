// Analysis of the traces of a job's ranks: costs over all of them, figures of each rank.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/observe/trace/trace_costs.h"
#include "lib/observe/trace/trace_figures.h"

namespace scaletrain::observe {

struct TraceTop {
  std::vector<TraceCost> costs;       // as TraceCosts::rows()
  std::map<int, TraceFigures> ranks;  // by rank; without ranks that have no rows of a time ledger
};

// Reads each file event by event; a merged file has several ranks. Throws as read_trace() does.
TraceTop analyse_traces(const std::vector<std::filesystem::path>& files);

// At most `most` rows of each kind.
std::vector<TraceCost> largest_costs(const std::vector<TraceCost>& costs, int most);

// For a terminal: a table of costs and a table of ranks.
std::string top_text(const TraceTop& top);
// {"costs": [...], "ranks": [...]}, with times in milliseconds and shares from 0 to 1.
nlohmann::ordered_json top_json(const TraceTop& top);

}  // namespace scaletrain::observe
