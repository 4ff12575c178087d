#include "launcher/commands/dry_run/outline_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "launcher/commands/explain/layout_rows.h"
#include "lib/core/printable.h"
#include "lib/core/text/text.h"

namespace scaletrain::launcher {
namespace {

using OutlineJson = nlohmann::ordered_json;

constexpr double kBytesOfMb = 1e6;

std::string text_of_count(std::optional<std::int64_t> count) {
  return count ? std::to_string(*count) : "unknown";
}

std::string known_steps(std::int64_t steps) {
  return steps > 0 ? std::to_string(steps) : "unknown";
}

OutlineJson json_of_count(std::optional<std::int64_t> count) {
  return count ? OutlineJson(*count) : OutlineJson(nullptr);
}

OutlineJson member_of(const RunOutline& outline, const char* name) {
  if (!outline.layout.is_object()) return nullptr;
  const auto found = outline.layout.find(name);
  return found == outline.layout.end() ? OutlineJson(nullptr) : OutlineJson(*found);
}

std::string rate_lines(const RunOutline& outline) {
  std::string text;
  for (const OutlineJson& one : member_of(outline, "rates")) {
    text += fmt::format("  step {}: {:.4g}\n", one.at("step").get<std::int64_t>(),
                        one.at("lr").get<double>());
  }
  return text.empty() ? "learning rate: unknown\n" : "learning rate:\n" + text;
}

std::string memory_lines_of(const RunOutline& outline, const recipe::Offload& offload) {
  if (!outline.layout.is_object()) return "";
  std::string text = "memory of a rank:\n";
  for (const Explained& row : memory_rows(outline.layout, offload)) {
    text += fmt::format("  {}: {}{}\n", row.name, row.value,
                        row.from.empty() ? "" : " (" + row.from + ")");
  }
  return text;
}

OutlineJson memory_json(const RunOutline& outline) {
  OutlineJson memory = OutlineJson::array();
  for (const OutlineJson& rank : member_of(outline, "ranks")) {
    memory.push_back({{"rank", rank.at("rank")}, {"bytes", rank.at("bytes")}});
  }
  return memory;
}

}  // namespace

std::string outline_text(const RunOutline& outline, const recipe::Offload& offload) {
  std::string text =
      fmt::format("ok: {}: {} on {}, global batch {}\n", core::printable(outline.name),
                  core::counted(outline.ranks, "rank"), core::counted(outline.nodes, "node"),
                  outline.global_batch);
  text += fmt::format("steps: {}, of an epoch: {}\n", known_steps(outline.steps),
                      known_steps(outline.steps_per_epoch));
  text += rate_lines(outline);
  text += fmt::format("validations: {}\n", text_of_count(outline.validations));
  text += fmt::format("saves: {}", text_of_count(outline.saves));
  if (outline.checkpoint_bytes > 0) {
    text += fmt::format(", each of {:.3g} MB, at most {} on the disk, {:.3g} MB free",
                        outline.checkpoint_bytes / kBytesOfMb, outline.kept,
                        outline.free_bytes / kBytesOfMb);
  }
  text += "\n" + memory_lines_of(outline, offload);
  for (const std::string& note : outline.notes) text += fmt::format("note: {}\n", note);
  return text;
}

OutlineJson outline_json(const RunOutline& outline) {
  const auto count = [](std::int64_t value) {
    return value > 0 ? OutlineJson(value) : OutlineJson(nullptr);
  };
  return {{"name", outline.name},
          {"ranks", outline.ranks},
          {"nodes", outline.nodes},
          {"global_batch", count(outline.global_batch)},
          {"steps", count(outline.steps)},
          {"steps_per_epoch", count(outline.steps_per_epoch)},
          {"rates", member_of(outline, "rates")},
          {"validations", json_of_count(outline.validations)},
          {"saves", json_of_count(outline.saves)},
          {"checkpoint_bytes", outline.checkpoint_bytes},
          {"checkpoints_kept", outline.kept},
          {"free_bytes", outline.free_bytes},
          {"memory", memory_json(outline)},
          {"notes", outline.notes}};
}

}  // namespace scaletrain::launcher
