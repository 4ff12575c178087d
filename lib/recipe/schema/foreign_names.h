// Names that other frameworks (timm, Lightning, Hugging Face, DeepSpeed, torchtitan, nanoGPT,
// WebDataset) use for our keys and values: for a hint after a mistake, never accepted as names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::recipe {

// List of the settings that have no key here; their `ours` is the reason.
inline constexpr const char* kNoKey = "no key";

struct ForeignName {
  std::string list;    // for a value: "model", "optimizer"; "" for a key
  std::string theirs;  // "num_workers"
  std::string ours;    // a key as "data.threads", "optimizer.beta1 and optimizer.beta2", or a value
};

// Rows of lib/recipe/schema/foreign_names.def and foreign_values.def.
const std::vector<ForeignName>& foreign_names();

// Returns our key for `theirs`, such as "data.threads"; "" if none is known. Case and '-' or '_' do
// not matter.
std::string our_key(std::string_view theirs);

// Returns the reason why a setting of another framework has no key here, such as `drop_last`: "the
// incomplete last batch of an epoch is always dropped"; "" if none is known.
std::string why_no_key(std::string_view theirs);

// Returns our value for `theirs` in a list given by its noun, "a model"; "" if none is known.
std::string our_value(std::string_view kind, std::string_view theirs);

}  // namespace scaletrain::recipe
