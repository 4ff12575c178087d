#include "lib/observe/trace/merge_traces.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/text/json_text.h"
#include "lib/observe/trace/read_trace.h"

namespace scaletrain::observe {
namespace {

using TraceJson = nlohmann::json;

constexpr const char* kBase = "baseTimeNanoseconds";

struct RankOfFile {
  int rank = 0;
  double shift_us = 0;  // to the first file's base
};

std::int64_t base_of(const TraceJson& header) {
  const auto base = header.find(kBase);
  return base != header.end() && base->is_number_integer() ? base->get<std::int64_t>() : 0;
}

// Moves `event` into the process of its rank; returns false for an event that describes the
// profiler, and for names of processes, which become the ranks'.
bool move_event(TraceJson& event, const RankOfFile& of) {
  const auto process = event.find("pid");
  if (process == event.end() || !process->is_number_integer()) return false;
  const std::string name = event.contains("name") && event["name"].is_string()
                               ? event["name"].get<std::string>()
                               : std::string();
  if (event.value("ph", "") == "M" && name.starts_with("process_")) return false;
  *process = of.rank;
  if (const auto time = event.find("ts"); time != event.end() && time->is_number()) {
    if (of.shift_us != 0) *time = time->get<double>() + of.shift_us;
  }
  constexpr int kBitsOfIds = 32;
  if (const auto id = event.find("id"); id != event.end() && id->is_number_integer()) {
    *id = id->get<std::int64_t>() + (std::int64_t{of.rank} << kBitsOfIds);
  }
  return true;
}

class TraceWriter {
 public:
  TraceWriter(std::ostream& to, std::int64_t base_ns) : to_(to) {
    to_ << fmt::format(
        "{{\n\"schemaVersion\": 1,\n\"displayTimeUnit\": \"ms\",\n\"{}\": {},\n\"traceEvents\": [",
        kBase, base_ns);
  }
  void event(const TraceJson& event) {
    to_ << (is_first_ ? "\n" : ",\n") << core::json_text(event);
    is_first_ = false;
  }
  void end() { to_ << "\n]\n}\n"; }

 private:
  std::ostream& to_;
  bool is_first_ = true;
};

TraceJson process_event(int rank, const char* name, const TraceJson& arguments) {
  return {{"ph", "M"}, {"name", name}, {"pid", rank}, {"tid", 0}, {"ts", 0}, {"args", arguments}};
}

}  // namespace

void merge_traces(const std::vector<std::filesystem::path>& files, std::ostream& to) {
  std::vector<RankOfFile> ranks;
  std::map<int, std::filesystem::path> seen;
  std::optional<std::int64_t> first_base;
  for (const std::filesystem::path& file : files) {
    const TraceJson header = read_trace(file, [](TraceJson&) {});
    const std::int64_t base = base_of(header);
    if (!first_base) first_base = base;
    const int rank = rank_of_trace(header, static_cast<int>(ranks.size()));
    if (const auto [other, is_new] = seen.try_emplace(rank, file); !is_new) {
      throw core::UsageError(file.string(),
                             fmt::format("has rank {}, as {} has", rank, other->second.string()),
                             "name one trace of each rank");
    }
    ranks.push_back({rank, static_cast<double>(base - *first_base) / 1e3});
  }
  TraceWriter writer(to, first_base.value_or(0));
  for (const RankOfFile& of : ranks) {
    writer.event(
        process_event(of.rank, "process_name", {{"name", fmt::format("rank {}", of.rank)}}));
    writer.event(process_event(of.rank, "process_sort_index", {{"sort_index", of.rank}}));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    read_trace(files[i], [&](TraceJson& event) {
      if (move_event(event, ranks[i])) writer.event(event);
    });
  }
  writer.end();
}

}  // namespace scaletrain::observe
