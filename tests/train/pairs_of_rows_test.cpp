// Every key of every row of the lists (lib/recipe/*.def) changes a run: an option that is read and
// does nothing turns this red. A row or a key that is added is tested by being there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/recipe/catalog/lists.h"
#include "tests/train/pairs_support.h"

namespace scaletrain::train {
namespace {

using testing::Changes;
using testing::Pairs;
using Keys = std::map<std::string, std::string>;  // with their values as JSON

// What two runs need that differ in a key of a row.
struct Needs {
  Changes base = {};       // the rest of the recipe
  Keys keys = {};          // of the row, in both
  std::string value = {};  // of the key in the second one; "": any other
};
using NeedsOf = std::map<std::string, Needs>;  // by "ROW", "ROW/KEY"

struct OtherValue {
  const recipe::Option& option;
  const std::string standard;  // in the first run, where it is not the row's

  std::string operator()(std::int64_t of_row) const {
    const auto least = static_cast<std::int64_t>(option.range.least);
    const std::int64_t first = standard.empty() ? of_row : std::stoll(standard);
    return std::to_string(first == least ? first + 1 : least);
  }
  std::string operator()(double of_row) const {
    const double first = standard.empty() ? of_row : std::stod(standard);
    for (const double other : {0.5, 2 * first, first / 2}) {
      if (other != first && option.range.contains(other)) return fmt::format("{}", other);
    }
    return "";
  }
  std::string operator()(bool of_row) const { return of_row ? "false" : "true"; }
  std::string operator()(const std::string& of_row) const {
    const auto other = std::find_if(option.allowed.begin(), option.allowed.end(),
                                    [&](const auto& value) { return value.name != of_row; });
    return other == option.allowed.end() ? "" : fmt::format("\"{}\"", other->name);
  }
  std::string operator()(const std::vector<double>& /*of_row*/) const { return ""; }
};

std::string component(const std::string& name, const Keys& keys) {
  std::string text = fmt::format(R"({{"name": "{}")", name);
  for (const auto& [key, value] : keys) text += fmt::format(R"(, "{}": {})", key, value);
  return text + "}";
}

// `pattern` has the component for {}.
void compare_row(Pairs& pairs, const recipe::Row& row, const std::string& pattern,
                 const NeedsOf& all, bool tokens = false) {
  for (const recipe::Option& option : row.options) {
    if (option.is_required()) continue;
    Needs needs;
    for (const std::string& name : {row.name, row.name + "/" + option.key}) {
      const auto found = all.find(name);
      if (found == all.end()) continue;
      const Needs& more = found->second;
      needs.base.insert(needs.base.end(), more.base.begin(), more.base.end());
      for (const auto& [key, value] : more.keys) needs.keys[key] = value;
      if (!more.value.empty()) needs.value = more.value;
    }
    const auto given = needs.keys.find(option.key);
    const std::string standard = given == needs.keys.end() ? "" : given->second;
    Keys other = needs.keys;
    other[option.key] = needs.value.empty()
                            ? std::visit(OtherValue{option, standard}, option.standard)
                            : needs.value;
    const auto left = [&](const Keys& keys) {
      Changes changes{fmt::format(fmt::runtime(pattern), component(row.name, keys))};
      changes.insert(changes.end(), needs.base.begin(), needs.base.end());
      return pairs.left_by(changes, tokens);
    };
    const std::string first = left(needs.keys), second = left(other);
    CAPTURE(component(row.name, other));
    REQUIRE_MESSAGE(first.starts_with("code 0"), first);
    REQUIRE_MESSAGE(second.starts_with("code 0"), second);
    const bool is_other = first != second;
    CHECK(is_other);
  }
}

std::set<std::string> keys_of(const recipe::Row& row) {
  std::set<std::string> keys;
  for (const recipe::Option& option : row.options) keys.insert(option.key);
  return keys;
}

}  // namespace

TEST_CASE("every key of an optimizer changes a run") {
  Pairs pairs;
  NeedsOf needs{
      {"radam", {.base = {"steps=8"}}},  // adapts from the sixth step on
      {"schedule_free_adamw/weight_lr_power", {.base = {R"(schedule.warmup={"steps": 4})"}}},
      {"lamb/trust_clip", {.keys = {{"eps", "1"}}}},  // for trust ratios above 1
      {"soap/preconditioner_beta", {.keys = {{"frequency", "2"}}}},
      {"soap/max_dim", {.keys = {{"frequency", "2"}}}},
  };
  for (const recipe::Row& row : recipe::optimizers().rows) {
    needs[row.name].keys = {{"lr", "0.05"}, {"weight_decay", "0.1"}};
    compare_row(pairs, row, "optimizer={}", needs);
  }
}

TEST_CASE("every key of a schedule changes a run") {
  Pairs pairs;
  const NeedsOf needs{
      {"cosine_restarts", {.base = {"steps=8"}, .keys = {{"cycle_epochs", "0.5"}}}},
      {"cosine_restarts/cycle_epochs", {.value = "0.7"}},
      {"step", {.keys = {{"every_epochs", "0.5"}}}},
      {"step/every_epochs", {.value = "0.3"}},
      {"multi_step", {.keys = {{"milestones", "[0.5]"}}}},
      {"warmup_stable_decay", {.keys = {{"decay_share", "0.7"}}}},
  };
  for (const recipe::Row& row : recipe::schedules().rows) {
    compare_row(pairs, row, "schedule.decay={}", needs);
  }
}

TEST_CASE("every key of a transform changes a run") {
  Pairs pairs;
  const NeedsOf needs{
      {"center_crop/resize", {.value = "12"}},
      {"random_resized_crop/ratio_max", {.value = "3"}},
      {"random_erasing", {.keys = {{"probability", "0.9"}}}},
      {"random_erasing/scale_min", {.value = "0.2"}},
      {"gaussian_blur", {.keys = {{"probability", "0.9"}}}},
  };
  for (const recipe::Row& row : recipe::transforms().rows) {
    compare_row(pairs, row, "data.train.augment=[{}]", needs);
  }
}

TEST_CASE("every key of a loss changes a run") {
  Pairs pairs;
  const NeedsOf needs{
      {"binary_cross_entropy/target_threshold", {.keys = {{"label_smoothing", "0.2"}}}},
      {"focal", {.base = {"task=multi_label_classification"}}},
  };
  for (const recipe::Row& row : recipe::losses().rows) compare_row(pairs, row, "loss={}", needs);
}

// Rows with the same keys are one model in several sizes: the first of each kind is trained.
TEST_CASE("every key of a model changes a run") {
  Pairs pairs;
  const Keys classes{{"num_classes", "3"}};
  const Keys text{
      {"vocab_size", "50"}, {"positions", "8"}, {"dim", "16"}, {"depth", "2"}, {"heads", "2"}};
  Keys llama = text;
  llama["kv_heads"] = "2";
  Keys vit = classes;
  vit.insert({{"patch_size", "4"}, {"dim", "16"}, {"depth", "2"}, {"heads", "2"}});
  Keys mixtral = llama;
  mixtral.insert({{"hidden", "24"}, {"router_bias_rate", "0.1"}});
  const Keys stretched{
      {"rope_scaling", "\"llama3\""}, {"rope_factor", "4"}, {"rope_original_positions", "64"}};
  const NeedsOf needs{
      {"resnet18", {.base = {"data.image_size=16", "steps=1"}, .keys = classes}},
      {"resnet18/norm", {.value = "\"group\""}},
      {"mobilenet_v3_small", {.base = {"data.image_size=32", "steps=1"}, .keys = classes}},
      {"mobilenet_v3_small/norm", {.value = "\"group\""}},
      {"convnext_tiny", {.base = {"data.image_size=32", "steps=1"}, .keys = classes}},
      {"convnext_tiny/patch_size", {.value = "2"}},
      {"vit_tiny", {.keys = vit}},
      {"mlp", {.keys = classes}},
      {"gpt2", {.keys = text}},
      {"gpt2/vocab_size", {.value = "60"}},
      {"gpt2/positions", {.value = "16"}},
      {"gpt2/dim", {.value = "32"}},
      {"llama", {.keys = llama}},
      {"llama/vocab_size", {.value = "60"}},
      {"llama/positions", {.value = "16"}},
      {"llama/dim", {.value = "32"}},
      {"llama/heads", {.value = "4"}},
      {"llama/rope_scaling", {.keys = {{"rope_factor", "4"}}}},
      {"llama/rope_factor", {.keys = {{"rope_scaling", "\"linear\""}}}},
      {"llama/rope_low", {.keys = stretched}},
      {"llama/rope_high", {.keys = stretched, .value = "8"}},
      {"llama/rope_original_positions", {.keys = stretched, .value = "16"}},
      {"mixtral", {.keys = mixtral}},
      {"mixtral/vocab_size", {.value = "60"}},
      {"mixtral/positions", {.value = "16"}},
      {"mixtral/dim", {.value = "32"}},
      {"mixtral/heads", {.value = "4"}},
      {"mixtral/rope_scaling", {.keys = {{"rope_factor", "4"}}}},
      {"mixtral/rope_factor", {.keys = {{"rope_scaling", "\"linear\""}}}},
      {"mixtral/rope_low", {.keys = stretched}},
      {"mixtral/rope_high", {.keys = stretched, .value = "8"}},
      {"mixtral/rope_original_positions", {.keys = stretched, .value = "16"}},
      {"mixtral/capacity_factor", {.value = "0.5"}},
  };
  std::set<std::set<std::string>> trained;
  for (const recipe::Row& row : recipe::models().rows) {
    if (row.name == "torchscript" || !trained.insert(keys_of(row)).second) continue;
    compare_row(pairs, row, "model={}", needs, row.task == "language_modelling");
  }
}

}  // namespace scaletrain::train
