#include "launcher/commands/explain/layout_rows.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "launcher/jobs/checks/worker_program.h"
#include "launcher/platform/captured.h"
#include "launcher/platform/scratch_folder.h"
#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::chrono::minutes kMeasureTimeout{10};

// "1.41 GB".
std::string size_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes)
                   : fmt::format("{:.3g} {}", bytes, kUnits.at(unit));
}

std::string size_text(const Json& bytes) { return size_text(bytes.get<double>()); }

std::string prefix_of(const Json& layout, const Json& rank) {
  return layout.at("ranks").size() == 1 ? std::string()
                                        : fmt::format("rank {}: ", rank.at("rank").get<int>());
}

std::string note_of(const std::string& kind, const Json& layout, const Json& rank) {
  if (kind == "parameters") {
    const Json& units = rank.at("units");
    return fmt::format("and buffers; it runs {}, {} to {}",
                       core::counted(units[2].get<int>(), "unit"), units[0].get<std::string>(),
                       units[1].get<std::string>());
  }
  if (kind == "gathered") return "parameters of other ranks, two units at a time";
  if (kind == "gradients") return "of the parameters that the rank updates";
  if (kind == "unreduced") return "gradients in buckets or blocks that are not reduced yet";
  if (kind == "optimizer") return "state of the optimizer for these parameters";
  if (kind == "averages") return "EMA or SWA weights";
  if (kind == "unsent") return "error feedback of the gradient compression";
  return fmt::format("of {} micro-batch{} of {} in progress", rank.at("held").get<int>(),
                     rank.at("held").get<int>() == 1 ? "" : "es",
                     layout.at("per_device").get<std::int64_t>());
}

// Location of bytes of `kind`; "": on the device.
std::string place_of(const std::string& kind, const recipe::Offload& offload) {
  if (kind == "parameters" && offload.parameters) return "host";
  if (kind != "optimizer" || !offload.optimizer) return "";
  return offload.optimizer_folder.empty() ? "host" : "file";
}

// Host buffers of an offloaded optimizer, as large as the gradients that the rank applies.
std::vector<Explained> copies_of_host(const Json& rank, const recipe::Offload& offload,
                                      const std::string& prefix) {
  const double gradients = rank.at("bytes").value("gradients", 0.0);
  if (!offload.optimizer || gradients == 0) return {};
  std::vector<Explained> rows{{.name = prefix + "host: gradients",
                               .value = size_text(gradients),
                               .from = "copies for the update"}};
  if (!offload.parameters) {
    rows.push_back({.name = prefix + "host: weights",
                    .value = size_text(gradients),
                    .from = "copies for the update"});
  }
  return rows;
}

}  // namespace

Json ask_layout(const recipe::Recipe& recipe, int ranks, int ranks_per_node,
                const std::vector<std::string>& flags) {
  ScratchFolder scratch("scaletrain-explain-");
  const fs::path input = scratch.file("recipe.json"), output = scratch.file("layout.json");
  std::ofstream(input) << recipe::to_json(recipe);
  std::vector<std::string> words{worker_of(recipe),
                                 "layout",
                                 "--recipe",
                                 input.string(),
                                 "--ranks",
                                 std::to_string(ranks),
                                 "--ranks-per-node",
                                 std::to_string(ranks_per_node),
                                 "--out",
                                 output.string()};
  words.insert(words.end(), flags.begin(), flags.end());
  const Captured done = run_captured({.arguments = std::move(words), .variables = {}},
                                     kMeasureTimeout, &scratch.stops());
  if (done.stop_signal != 0) throw_stopped("memory and traffic", done.stop_signal);
  Json answer;
  if (done.ok()) {
    std::ifstream stream(output);
    answer = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  }
  if (!answer.is_object()) {
    throw core::UsageError("memory and traffic", done.trouble(),
                           "a launch of this recipe shows the cause");
  }
  return answer;
}

std::vector<Explained> memory_rows(const Json& layout, const recipe::Offload& offload) {
  std::vector<Explained> rows;
  for (const Json& rank : layout.at("ranks")) {
    const std::string prefix = prefix_of(layout, rank);
    double all = 0;
    std::vector<Explained> kinds, moved = copies_of_host(rank, offload, prefix);
    for (const auto& [kind, bytes] : rank.at("bytes").items()) {
      if (bytes == 0) continue;
      Explained row{.name = kind, .value = size_text(bytes), .from = note_of(kind, layout, rank)};
      const std::string place = place_of(kind, offload);
      row.name = fmt::format("{}{}{}{}", prefix, place, place.empty() ? "" : ": ", kind);
      if (kind == "activations" && offload.activations)
        row.from += ", before most of them are moved to the host";
      if (place.empty()) all += bytes.get<double>();
      (place.empty() ? kinds : moved).push_back(std::move(row));
    }
    rows.push_back({.name = prefix + "all", .value = size_text(all), .from = ""});
    if (!moved.empty()) rows.back().from = "on the device";
    rows.insert(rows.end(), kinds.begin(), kinds.end());
    rows.insert(rows.end(), moved.begin(), moved.end());
  }
  return rows;
}

std::vector<Explained> traffic_rows(const Json& layout) {
  std::vector<Explained> rows;
  for (const Json& rank : layout.at("ranks")) {
    for (const Json& one : rank.at("traffic")) {
      const auto nodes = one.at("nodes").get<int>();
      const auto calls = one.at("calls").get<std::int64_t>();
      const auto kind = one.at("kind").get<std::string>();
      rows.push_back(
          {.name =
               fmt::format("{}{}, {}", prefix_of(layout, rank), one.at("axis").get<std::string>(),
                           one.at("what").get<std::string>()),
           .value = fmt::format("{} of {}", size_text(one.at("bytes")), core::counted(calls, kind)),
           .from = fmt::format("{} ranks {}, each sends {}", one.at("ranks").get<int>(),
                               nodes == 1 ? "inside a node" : fmt::format("on {} nodes", nodes),
                               size_text(one.at("sent_bytes")))});
    }
  }
  return rows;
}

}  // namespace scaletrain::launcher
