#include "launcher/commands/runs/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "launcher/runs/fit_table.h"
#include "launcher/runs/recipe_keys.h"
#include "launcher/runs/run_results.h"
#include "lib/core/printable.h"
#include "lib/core/text/hash.h"
#include "lib/core/text/table.h"

namespace scaletrain::launcher {
namespace {

using FlatRecipe = std::map<std::string, RunJson>;
using SeedGroup = std::vector<const RunRecord*>;

FlatRecipe recipe_without_seed(const RunRecord& run) {
  FlatRecipe keys = flat_keys(run.recipe);
  for (const char* const key : {"seed", "output", "name", "description"}) keys.erase(key);
  return keys;
}

RunJson environment_of(const RunRecord& run, const std::string& name) {
  if (!run.environment.is_object()) return nullptr;
  const RunJson::json_pointer place("/" + name);
  return run.environment.contains(place) ? run.environment[place] : RunJson();
}

// Returns a digest of a set's data card; null if there is none.
RunJson card_digest(const RunRecord& run, const std::string& set) {
  const auto card = run.cards.find(set);
  if (card == run.cards.end()) return nullptr;
  return core::Sha256().update(card->second.dump()).hex().substr(0, 16);
}

// Digest of the samples and their order at the last logged step.
RunJson order_digest(const RunRecord& run) {
  return run.trained.empty() ? RunJson()
                             : run.trained.rbegin()->second.value("order_digest", RunJson());
}

// Groups runs with equal recipe, code and data, apart from the seed, in the order of their first
// run.
std::vector<SeedGroup> seed_groups(const std::vector<RunRecord>& runs) {
  std::vector<std::pair<FlatRecipe, SeedGroup>> groups;
  for (const RunRecord& run : runs) {
    FlatRecipe recipe = recipe_without_seed(run);
    recipe["/code"] = environment_of(run, "git_commit");
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == recipe; });
    const auto is_seed_new = [&run](const SeedGroup& group) {
      return std::none_of(group.begin(), group.end(), [&run](const RunRecord* other) {
        return other->recipe.value("seed", RunJson()) == run.recipe.value("seed", RunJson());
      });
    };
    if (found != groups.end() && is_seed_new(found->second)) {
      found->second.push_back(&run);
    } else {
      groups.emplace_back(std::move(recipe), SeedGroup{&run});
    }
  }
  std::vector<SeedGroup> result;
  for (auto& [recipe, group] : groups) result.push_back(std::move(group));
  return result;
}

template <class ValueOf>
RunJson row_of(const char* key, const std::string& name, const std::vector<SeedGroup>& groups,
               const ValueOf& value_of) {
  RunJson values = RunJson::array();
  for (const SeedGroup& group : groups) values.push_back(value_of(*group.front()));
  return {{key, name}, {"values", values}};
}

RunJson recipe_rows_of(const std::vector<SeedGroup>& groups) {
  std::vector<FlatRecipe> recipes;
  std::set<std::string> keys;
  for (const SeedGroup& group : groups) {
    recipes.push_back(flat_keys(group.front()->recipe));
    for (const auto& [key, value] : recipes.back()) {
      if (key != "output" && (group.size() == 1 || key != "seed")) keys.insert(key);
    }
  }
  RunJson rows = RunJson::array();
  for (const std::string& key : keys) {
    RunJson values = RunJson::array();
    for (const FlatRecipe& recipe : recipes) {
      const auto found = recipe.find(key);
      values.push_back(found == recipe.end() ? RunJson() : found->second);
    }
    rows.push_back({{"key", key}, {"values", values}});
  }
  return rows;
}

RunJson statistics_of(const SeedGroup& group, const std::string& name) {
  std::vector<double> values;
  RunJson steps = RunJson::array();
  for (const RunRecord* const run : group) {
    const std::vector<RunValue> results = run_results(*run);
    const RunValue* const value = find_value(results, name);
    if (value == nullptr) continue;
    values.push_back(value->value);
    steps.push_back(value->step ? RunJson(*value->step) : RunJson());
  }
  if (values.empty()) return nullptr;
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  RunJson spread;
  if (values.size() > 1) spread = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return {{"mean", mean}, {"spread", spread}, {"values", values}, {"steps", steps}};
}

RunJson result_rows_of(const std::vector<RunRecord>& runs, const std::vector<SeedGroup>& groups) {
  std::vector<std::pair<std::string, std::string>> names;  // with their labels
  for (const RunRecord& run : runs) {
    for (const RunValue& value : run_results(run)) {
      const std::pair<std::string, std::string> name{value.name, value.label};
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  RunJson rows = RunJson::array();
  for (const auto& [name, label] : names) {
    RunJson values = RunJson::array(), difference;
    for (const SeedGroup& group : groups) values.push_back(statistics_of(group, name));
    if (values.size() == 2 && values[0].is_object() && values[1].is_object()) {
      difference = values[1]["mean"].get<double>() - values[0]["mean"].get<double>();
    }
    rows.push_back(
        {{"name", name}, {"label", label}, {"values", values}, {"difference", difference}});
  }
  return rows;
}

bool all_same(const RunJson& values) {
  return std::all_of(values.begin(), values.end(),
                     [&values](const RunJson& value) { return value == values[0]; });
}

// "99.00 % @147", of several seeds "99.10 % +- 0.20 (3 seeds)".
std::string result_text(const std::string& name, const RunJson& value) {
  if (value.is_null()) return "-";
  const double mean = value["mean"].get<double>();
  const std::string text = value_text(name, mean);
  if (value["spread"].is_number()) {
    return fmt::format("{} +- {} ({} seeds)", text, value_text(name, value["spread"].get<double>()),
                       value["values"].size());
  }
  const RunJson& step = value["steps"][0];
  return step.is_number() ? fmt::format("{} @{}", text, step.get<std::int64_t>()) : text;
}

// "-0.50 %" of shares, otherwise the relative change "+8.1 %".
std::string difference_text(const RunJson& row) {
  const RunJson& values = row["values"];
  if (row["difference"].is_null()) return "";
  const double difference = row["difference"].get<double>();
  const std::string name = row["name"].get<std::string>();
  const double first = values[0]["mean"].get<double>();
  if (value_text(name, first).ends_with(" %"))
    return fmt::format("{:+.2f} points", 100 * difference);
  if (first == 0) return fmt::format("{:+.4g}", difference);
  return fmt::format("{:+.1f} %", 100 * difference / std::abs(first));
}

constexpr int kWidestCell = 40;           // bytes
constexpr int kLeastCell = 16;            // bytes, also where the table is then too wide
constexpr std::size_t kShownBefore = 12;  // bytes shown before the first difference

// First byte at or before `at` that begins a UTF-8 character.
std::size_t character_start(const std::string& text, std::size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) {
    --at;
  }
  return at;
}

// Number of leading bytes in which all values of a row agree.
std::size_t common_prefix(const std::vector<std::string>& line) {
  const std::string& first = line[1];
  std::size_t length = first.size();
  for (std::size_t i = 2; i + 1 < line.size(); ++i) {
    const auto end = std::mismatch(first.begin(), first.end(), line[i].begin(), line[i].end());
    length = std::min(length, static_cast<std::size_t>(end.first - first.begin()));
  }
  return length;
}

// Bytes of a value, so that the table has at most `width` columns.
std::size_t widest_cell(const TableCells& table, int width) {
  if (width == 0) return kWidestCell;
  std::size_t label = 0, difference = 0;
  for (const auto& line : table) {
    label = std::max(label, line.front().size());
    difference = std::max(difference, line.back().size());
  }
  const int values = static_cast<int>(table.front().size()) - 2, gaps = 2 * (values + 1);
  const int rest = width - static_cast<int>(label + difference) - gaps;
  return static_cast<std::size_t>(std::clamp<int>(rest / values, kLeastCell, kWidestCell));
}

// Shortens wide values of a row so that their first difference stays visible.
void shorten_values(std::vector<std::string>& line, std::size_t widest) {
  const std::size_t common = common_prefix(line);
  for (std::size_t i = 1; i + 1 < line.size(); ++i) {
    std::string& cell = line[i];
    if (cell.size() <= widest) continue;
    const std::size_t room = widest - 3, shown = std::min(kShownBefore, room / 2);
    if (common < cell.size() && common + shown > room) {
      cell = "..." + cell.substr(character_start(cell, common - shown));
    }
    if (cell.size() > widest) cell = cell.substr(0, character_start(cell, room)) + "...";
  }
}

void add_rows(const RunJson& rows, const char* key, bool all, TableCells& table) {
  for (const RunJson& row : rows) {
    if (!all && all_same(row["values"])) continue;
    std::vector<std::string> line{row[key].get<std::string>()};
    for (const RunJson& value : row["values"]) line.push_back(key_text(value));
    line.emplace_back();
    table.push_back(std::move(line));
  }
}

}  // namespace

RunJson compare_runs(const std::vector<RunRecord>& runs) {
  const std::vector<SeedGroup> groups = seed_groups(runs);
  RunJson listed = RunJson::array();
  for (const SeedGroup& group : groups) {
    RunJson names = RunJson::array(), seeds = RunJson::array();
    for (const RunRecord* const run : group) {
      names.push_back(run->shown);
      seeds.push_back(run->recipe.value("seed", RunJson()));
    }
    listed.push_back({{"runs", names}, {"seeds", seeds}});
  }
  RunJson code = RunJson::array(), data = RunJson::array();
  for (const auto& [name, field] :
       {std::pair("code", "git_commit"), std::pair("scaletrain", "versions/scaletrain"),
        std::pair("torch", "versions/torch"), std::pair("world size", "world_size"),
        std::pair("devices", "devices")}) {
    code.push_back(row_of("name", name, groups, [field = std::string(field)](const RunRecord& run) {
      return environment_of(run, field);
    }));
  }
  for (const char* const set : {"train", "val", "test"}) {
    data.push_back(row_of("name", fmt::format("data card of {}", set), groups,
                          [set](const RunRecord& run) { return card_digest(run, set); }));
  }
  data.push_back(row_of("name", "order digest", groups, order_digest));
  return {{"groups", listed},
          {"recipe", recipe_rows_of(groups)},
          {"code", code},
          {"data", data},
          {"results", result_rows_of(runs, groups)}};
}

std::string comparison_text(const RunJson& comparison, bool all, int width) {
  TableCells table{{""}};
  for (const RunJson& group : comparison["groups"]) {
    const std::size_t others = group["runs"].size() - 1;
    table[0].push_back(group["runs"][0].get<std::string>() +
                       (others > 0 ? fmt::format(" and {} more", others) : ""));
  }
  table[0].emplace_back();
  add_rows(comparison["recipe"], "key", all, table);
  add_rows(comparison["code"], "name", all, table);
  add_rows(comparison["data"], "name", all, table);
  for (const RunJson& row : comparison["results"]) {
    if (!all && row["values"].size() > 1 && all_same(row["values"])) continue;
    const std::string name = row["name"].get<std::string>();
    std::vector<std::string> line{row["label"].get<std::string>()};
    for (const RunJson& value : row["values"]) line.push_back(result_text(name, value));
    line.push_back(difference_text(row));
    table.push_back(std::move(line));
  }
  for (std::vector<std::string>& line : table) {
    for (std::string& cell : line) cell = core::printable(cell);
  }
  const std::size_t widest = widest_cell(table, width);
  for (std::vector<std::string>& line : table) shorten_values(line, widest);
  return core::text_table(table);
}

}  // namespace scaletrain::launcher
