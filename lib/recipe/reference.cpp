// docs/reference/recipe.md: the keys in one table for each section, then the lists of names with
// their keys.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/recipe/catalog/component.h"
#include "lib/recipe/catalog/lists.h"
#include "lib/recipe/describe.h"
#include "lib/recipe/load.h"

namespace scaletrain::recipe {
namespace {

constexpr const char* kIntroduction =
    R"(# The keys of a recipe

Written by `scaletrain recipe reference`; a test compares this file with it.

A recipe is one JSON file in UTF-8; `//` and `/* */` comments and trailing commas are allowed. An
[editor](../guide/editor.md) completes it. Where a component is chosen
by name, `"sgd"` is short for `{"name": "sgd"}`. Paths are relative to the working directory; `~` and `~user` are
homes, and an unknown user is an error. A key of any depth is set on the command line with `--set optimizer.lr=0.1`: the value is JSON, otherwise
text, and `null` removes the key. Where exactly one of several keys may be given, setting one removes
the others. `scaletrain recipe check RECIPE` reports all mistakes at once, `scaletrain recipe show RECIPE`
prints the recipe with every default.
)";

constexpr const char* kTableHead = "\n| key | value | default | meaning |\n|---|---|---|---|\n";

// A part of the page: the keys at `prefix` and below, except those of a longer prefix.
struct Part {
  const char* prefix;
  const char* heading;
  const char* introduction;
};

constexpr std::array<Part, 34> kParts{{
    {"", "General", "These keys name the run and set its task, length, device and run folder."},
    {"model", "Model",
     "`model.name` chooses the model; the keys of each model are listed under [Models](#models)."},
    {"model.weights", "Pretrained weights",
     "Fine-tuning starts from a weights file, a checkpoint or a run."},
    {"data", "Data", "These keys apply to training, validation and test data."},
    {"data.train", "Training data",
     "Training data are WebDataset shards, an image folder, token files or a mixture of sets."},
    {"data.val", "Validation data",
     "Validation data are evaluated during training and select the best checkpoint."},
    {"data.test", "Test data", "Test data are evaluated once, at the end of training."},
    {"data.resize_ramp", "Progressive resizing", "Training on smaller images at first saves time."},
    {"batch", "Batch size and gradient accumulation",
     "The global batch is the micro-batch times the gradient accumulation steps times the "
     "data-parallel ranks."},
    {"precision", "Precision",
     "`precision.name` chooses the compute dtype; the keys of each one are listed under "
     "[Precisions](#precisions)."},
    {"optimizer", "Optimizer",
     "These keys apply to every optimizer; the others are listed under [Optimizers](#optimizers)."},
    {"schedule", "Learning rate schedule",
     "Each schedule is a warmup followed by one of the [decays](#learning-rate-schedules)."},
    {"schedule.plateau", "Reduce on plateau",
     "The learning rate may also be reduced when a validation metric stops improving."},
    {"loss", "Loss",
     "These keys apply to every loss; the others are listed under [Losses](#losses)."},
    {"mix", "Mixup and CutMix", "Both mix pairs of training images and their targets."},
    {"clip", "Gradient clipping",
     "Gradients are clipped after accumulation and all-reduce, before the optimizer update."},
    {"anomaly", "Anomalous steps and loss spikes",
     "A step is anomalous if its loss or gradients are not finite or exceed a running bound."},
    {"integrity", "Silent data corruption",
     "Data-parallel replicas are equal bit for bit, unless hardware computed or stored a wrong "
     "value."},
    {"sam", "Sharpness-aware minimization (SAM)", "SAM computes gradients twice in each step."},
    {"ema", "EMA of the weights",
     "An exponential moving average of the weights often has better validation metrics than the "
     "weights."},
    {"swa", "Stochastic weight averaging (SWA)",
     "SWA averages the weights of late training, with a learning rate of its own if wanted."},
    {"recompute", "Activation checkpointing",
     "Recomputing activations in backward saves memory and costs time. A unit is the stem, a block "
     "or the head of a model."},
    {"offload", "Offload to CPU and NVMe", "Offload saves GPU memory and costs transfers."},
    {"parallel", "Parallelism",
     "The ranks form a mesh of data, sharding (ZeRO, FSDP), tensor, pipeline, context and expert "
     "parallelism."},
    {"compress", "Gradient compression",
     "Compression reduces the bytes that data-parallel ranks communicate."},
    {"sync", "Local SGD, DiLoCo and asynchronous training",
     "Replicas may average their weights every few steps instead of their gradients in every "
     "step."},
    {"validate", "Validation", "Validation runs during training, by default after each epoch."},
    {"early_stopping", "Early stopping", "Training ends when a validation metric stops improving."},
    {"checkpoint", "Checkpoints", "A resume continues from the newest complete checkpoint."},
    {"storage", "Remote storage",
     "These keys apply to data and checkpoints at s3:// and http(s):// addresses."},
    {"log", "Logging and trackers",
     "Metrics are written to metrics.jsonl of the run folder, and exported to trackers from "
     "there."},
    {"profile", "Profiler",
     "A trace shows operations, GPU kernels and communication. It opens in Perfetto "
     "(ui.perfetto.dev) or chrome://tracing."},
    {"cost", "Cost and carbon emissions",
     "Rates turn device hours and measured energy into cost and emissions."},
    {"dist", "Communication",
     "GPU tensors are communicated by NCCL; for CPU tensors there is a choice."},
}};

bool is_below(const std::string& key, const std::string& prefix) {
  return prefix.empty() || key == prefix || key.starts_with(prefix + ".");
}

// Returns the index in kParts of the longest prefix of `key`.
std::size_t part_of(const std::string& key) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < kParts.size(); ++i) {
    const std::string prefix = kParts[i].prefix;
    if (is_below(key, prefix) && prefix.size() > std::string(kParts[best].prefix).size()) best = i;
  }
  return best;
}

std::string row(const std::string& key, const std::string& value, const std::string& standard,
                const std::string& help) {
  return fmt::format("| `{}` | {} | {} | {} |\n", key, value, standard, help);
}

std::string shown_default(const Object& keys, const Field& field) {
  if (field.required) return "required";
  const Group* const group = keys.group(field.name);
  if (group != nullptr) return group->needed ? "exactly one of them" : "at most one of them";
  const Json value = field.type->write();
  return value.is_null() ? "" : fmt::format("`{}`", value.dump());
}

std::string help_with_values(const Field& field) {
  std::string text = field.help;
  for (const NamedValue& value : field.type->values()) {
    if (!value.help.empty()) text += fmt::format("<br>`{}`: {}", value.name, value.help);
  }
  return text;
}

// Table rows of each part, by the index in kParts.
using Tables = std::array<std::string, kParts.size()>;

void add_rows(const Object& keys, const std::string& prefix, Tables& tables,
              std::vector<const List*>& lists) {
  for (const Field& field : keys.fields()) {
    const std::string key = prefix + field.name;
    const List* const list = field.type->list();
    if (list != nullptr && std::find(lists.begin(), lists.end(), list) == lists.end()) {
      lists.push_back(list);
    }
    const Object* const below = field.type->object();
    std::string& text = tables[part_of(key)];
    if (below == nullptr || below->is_one_row()) {
      text += row(key, field.type->phrase(), shown_default(keys, field), help_with_values(field));
      const Type* const item = field.type->item();
      if (item != nullptr) add_rows(*item->object(), key + "[].", tables, lists);
    } else {
      text += row(key, "", field.required ? "required" : "", field.help);
      add_rows(*below, key + ".", tables, lists);
    }
  }
}

void add_keys(const Object& object, const std::string& prefix,
              std::vector<std::pair<std::string, std::string>>& keys) {
  for (const Field& field : object.fields()) {
    const Object* const below = field.type->object();
    if (below == nullptr || below->is_one_row()) {
      keys.emplace_back(prefix + field.name, field.help);
    } else {
      add_keys(*below, prefix + field.name + ".", keys);
    }
  }
}

NamedValues values_below(const Object& object, const std::string& key) {
  const std::size_t dot = key.find('.');
  const std::string name = key.substr(0, dot);
  const std::string rest = dot == std::string::npos ? "" : key.substr(dot + 1);
  for (const Field& field : object.fields()) {
    if (field.name != name) continue;
    const Object* const below = field.type->object();
    const List* const list = field.type->list();
    if (below != nullptr && list != nullptr && (rest.empty() || rest == "name")) {
      return list->values();
    }
    if (below != nullptr && !rest.empty()) return values_below(*below, rest);
    if (!rest.empty()) return {};
    if (field.type->phrase() == "true or false") return {{"true", ""}, {"false", ""}};
    return field.type->values();
  }
  return {};
}

void add_all_keys(const Object& object, const std::string& prefix, std::vector<std::string>& keys) {
  for (const Field& field : object.fields()) {
    keys.push_back(prefix + field.name);
    const Object* const below = field.type->object();
    if (below == nullptr) continue;
    const std::string inner = prefix + field.name + ".";
    add_all_keys(*below, inner, keys);
    if (field.type->list() == nullptr) continue;
    for (const Row& item : field.type->list()->rows) {
      for (const Option& option : item.options) keys.push_back(inner + option.key);
    }
  }
}

std::string list_section(const List& list) {
  std::string text = fmt::format("\n## {}\n", list.heading);
  for (const Row& item : list.rows) {
    text += fmt::format("\n### `{}`\n\n{}\n", item.name, item.help);
    if (item.options.empty()) continue;
    Component scratch;
    choose(scratch, item);
    const std::unique_ptr<Object> keys = row_keys(scratch, item);
    text += kTableHead;
    for (const Field& field : keys->fields()) {
      text += row(field.name, field.type->phrase(), shown_default(*keys, field),
                  help_with_values(field));
    }
  }
  return text;
}

std::string preset_section() {
  std::string text = "\n## Augmentation presets\n";
  for (const Preset& preset : augment_presets()) {
    text += fmt::format("\n### `{}`\n\n{}\n\n```json\n{}\n```\n", preset.name, preset.help,
                        preset.transforms);
  }
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> settable_keys() {
  Recipe recipe = blank_recipe();
  std::vector<std::pair<std::string, std::string>> result;
  add_keys(*describe(recipe), "", result);
  return result;
}

NamedValues values_of_key(const std::string& key) {
  Recipe recipe = blank_recipe();
  return values_below(*describe(recipe), key);
}

std::vector<std::string> all_keys(const CatalogPtr& catalog) {
  Recipe recipe = blank_recipe(catalog);
  std::vector<std::string> result;
  add_all_keys(*describe(recipe), "", result);
  return result;
}

std::string markdown_reference(const CatalogPtr& catalog) {
  Recipe recipe = blank_recipe(catalog);
  const std::unique_ptr<Object> keys = describe(recipe);
  Tables tables;
  std::vector<const List*> lists;
  add_rows(*keys, "", tables, lists);
  std::string text = kIntroduction;
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    text += fmt::format("\n## {}\n\n{}\n{}{}", kParts[i].heading, kParts[i].introduction,
                        kTableHead, tables[i]);
  }
  for (const List* list : lists) text += list_section(*list);
  return text + preset_section();
}

}  // namespace scaletrain::recipe
