#include "lib/observe/start_block.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "lib/core/printable.h"
#include "lib/core/text/json_text.h"
#include "lib/core/text/text.h"
#include "lib/observe/near_path.h"

namespace scaletrain::observe {
namespace {

using Json = nlohmann::ordered_json;

std::string start_row(std::string_view name, std::string_view text) {
  return fmt::format("  {:<10} {}\n", name, text);
}

// "1,400"
std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

// "1,400 steps", "1 step"
std::string grouped(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(number), noun, number == 1 ? "" : "s");
}

// "11.2 M", "512"
std::string rounded(std::int64_t count) {
  const auto number = static_cast<double>(count);
  if (count >= 1'000'000'000) return fmt::format("{:.1f} G", number / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.1f} M", number / 1e6);
  if (count >= 1'000) return fmt::format("{:.1f} k", number / 1e3);
  return std::to_string(count);
}

std::string model_row(const StartFacts& facts) {
  const std::string trained =
      facts.frozen == 0
          ? "all trained"
          : fmt::format("{} trained, {} frozen", rounded(facts.trained), rounded(facts.frozen));
  return start_row("model", fmt::format("{}, {} parameters ({})", facts.model,
                                        rounded(facts.trained + facts.frozen), trained));
}

std::string weights_row(const StartFacts::Weights& weights) {
  std::string text = fmt::format("{}: {} loaded", core::printable(near_path(weights.path)),
                                 core::counted(weights.loaded, "tensor"));
  if (weights.adapted > 0) text += fmt::format(", {} adapted", weights.adapted);
  if (weights.initialized > 0) text += fmt::format(", {} initialized", weights.initialized);
  return start_row("weights", text);
}

std::string set_text(const StartFacts::DataSet& set, const std::string& counted) {
  std::string text = core::printable(set.split);
  if (set.samples) text += fmt::format(" {} {}", grouped(*set.samples), counted);
  if (set.shards > 1) text += fmt::format(" ({})", core::counted(set.shards, "shard"));
  return text;
}

std::string data_row(const StartFacts& facts) {
  std::string text;
  for (const StartFacts::DataSet& set : facts.sets) {
    text += (text.empty() ? "" : ", ") + set_text(set, facts.counted);
  }
  if (facts.classes > 0) text += fmt::format("; {} classes", grouped(facts.classes));
  if (facts.vocab_size > 0) text += fmt::format("; vocabulary {}", grouped(facts.vocab_size));
  return start_row("data", text);
}

std::string batch_row(const StartFacts& facts) {
  return start_row(
      "batch",
      fmt::format("{} = {} per device x {} accumulation x {} data parallel; {} an epoch, {} in all",
                  grouped(facts.global_batch), facts.per_device, facts.accumulation,
                  facts.data_parallel, grouped(facts.steps_per_epoch, "step"),
                  grouped(facts.total_steps)));
}

std::string optimizer_row(const StartFacts& facts) {
  const std::string schedule = facts.schedule.empty() ? "" : fmt::format(" ({})", facts.schedule);
  return start_row("optimizer", fmt::format("{}, lr {:g}{}, weight decay {:g}", facts.optimizer,
                                            facts.lr, schedule, facts.weight_decay));
}

// "44.7 MB", "512 bytes"
std::string size_in_memory(std::int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.3g} GB", number / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.3g} MB", number / 1e6);
  if (bytes >= 1'000) return fmt::format("{:.3g} kB", number / 1e3);
  return fmt::format("{} bytes", bytes);
}

std::string memory_row(const StartFacts::Memory& memory) {
  return start_row(
      "memory",
      fmt::format("{} on rank 0 without activations (parameters {}, gradients {}, optimizer {})",
                  size_in_memory(memory.parameters + memory.gradients + memory.optimizer),
                  size_in_memory(memory.parameters), size_in_memory(memory.gradients),
                  size_in_memory(memory.optimizer)));
}

std::string devices_row(const StartFacts& facts) {
  std::string layout;
  for (const StartFacts::Axis& axis : facts.layout) {
    layout += fmt::format("{}{} {}", layout.empty() ? "; layout: " : ", ", axis.name, axis.size);
  }
  return start_row("devices",
                   fmt::format("{} x {} ({}){}", facts.ranks, core::printable(facts.device),
                               core::counted(facts.nodes, "node"), layout));
}

Json or_null(std::int64_t number) { return number > 0 ? Json(number) : Json(); }

Json json_of(const StartFacts::DataSet& set) {
  return {{"split", set.split},
          {"samples", set.samples ? Json(*set.samples) : Json()},
          {"shards", or_null(set.shards)}};
}

Json json_of(const std::optional<StartFacts::Weights>& weights) {
  if (!weights) return {};
  return {{"path", weights->path},
          {"loaded", weights->loaded},
          {"adapted", weights->adapted},
          {"initialized", weights->initialized}};
}

}  // namespace

std::string start_text(const StartFacts& facts) {
  std::string text = fmt::format("scaletrain {}: {}\n", facts.version, core::printable(facts.name));
  text += model_row(facts);
  if (facts.weights && facts.step == 0) text += weights_row(*facts.weights);
  text += data_row(facts);
  text += batch_row(facts);
  text += optimizer_row(facts);
  text += start_row("precision",
                    facts.precision + (facts.recomputes ? "; activation checkpointing" : ""));
  text += devices_row(facts);
  text += memory_row(facts.memory);
  if (facts.step > 0)
    text += start_row("continues", fmt::format("after step {}", grouped(facts.step)));
  text += start_row("run", core::printable(near_path(facts.run)));
  return text;
}

std::string start_json(const StartFacts& facts) {
  Json json{{"version", 1},     {"scaletrain", facts.version}, {"name", facts.name},
            {"run", facts.run}, {"attempt", facts.attempt},    {"step", facts.step}};
  json["model"] = {{"name", facts.model},
                   {"parameters", facts.trained + facts.frozen},
                   {"trained", facts.trained},
                   {"frozen", facts.frozen},
                   {"weights", json_of(facts.weights)}};
  json["data"] = {{"counted", facts.counted},
                  {"classes", or_null(facts.classes)},
                  {"vocab_size", or_null(facts.vocab_size)},
                  {"sets", Json::array()}};
  for (const StartFacts::DataSet& set : facts.sets) json["data"]["sets"].push_back(json_of(set));
  json["batch"] = {{"global", facts.global_batch},
                   {"per_device", facts.per_device},
                   {"accumulation", facts.accumulation},
                   {"data_parallel", facts.data_parallel}};
  json["steps_per_epoch"] = facts.steps_per_epoch;
  json["total_steps"] = facts.total_steps;
  json["optimizer"] = {{"name", facts.optimizer},
                       {"lr", facts.lr},
                       {"weight_decay", facts.weight_decay},
                       {"schedule", facts.schedule}};
  json["precision"] = facts.precision;
  json["recomputes"] = facts.recomputes;
  json["devices"] = {{"name", facts.device}, {"ranks", facts.ranks}, {"nodes", facts.nodes}};
  json["layout"] = Json::object();
  for (const StartFacts::Axis& axis : facts.layout) json["layout"][axis.name] = axis.size;
  json["memory_bytes"] = {{"parameters", facts.memory.parameters},
                          {"gradients", facts.memory.gradients},
                          {"optimizer", facts.memory.optimizer}};
  return core::json_text(json, 2) + "\n";
}

}  // namespace scaletrain::observe
