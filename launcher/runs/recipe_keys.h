// Recipes as flat keys, to compare and filter runs by them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

// {"optimizer.lr": 0.002, "data.train.shards": ["a.tar"]}. Lists of plain values stay whole;
// elements of other lists have their index as a name: "data.train.augment.0.name".
std::map<std::string, RunJson> flat_keys(const RunJson& recipe);

// Keys in which the recipes differ, sorted. `output` is left out: it always differs.
std::vector<std::string> differing_keys(const std::vector<std::map<std::string, RunJson>>& recipes);

// Plain text of a value: a string without quotes, "-" for null.
std::string key_text(const RunJson& value);

// Condition on a key: "optimizer.name=adamw", "model.name!=resnet18", "optimizer.lr>=0.01".
class KeyCondition {
 public:
  // Throws core::UsageError if `text` has no operator or compares a text by size.
  explicit KeyCondition(const std::string& text);
  // For a recipe without the key, only "!=" is true.
  bool holds(const std::map<std::string, RunJson>& recipe) const;

 private:
  std::string key_, operator_, wanted_;
};

}  // namespace scaletrain::launcher
