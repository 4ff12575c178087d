// Claims that the ranks of a job compare before training (lib/dist/agreement.h): ranks that differ
// would train a wrong model without an error, or hang in a collective.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/dist/agreement.h"
#include "lib/nn/model.h"
#include "lib/units/shard.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// When they meet: the recipe's values, LibTorch, the checkpoint that is resumed.
std::vector<dist::Claim> claims_on_joining(const recipe::Recipe& recipe,
                                           const std::optional<std::filesystem::path>& resume);

struct SetFacts {
  std::int64_t samples = 0;
  std::string digest;  // data::index_digest()
};

// Adds those of a set that is not lazy, called `name` ("data.val").
void claim_set(std::vector<dist::Claim>& claims, const std::string& name, const SetFacts& set);

// Adds the class names of data.train, which those of other sets are matched with.
void claim_classes(std::vector<dist::Claim>& claims, const std::vector<std::string>& names);

// Adds the digest of samples of data.train; "" if none were read.
void claim_samples(std::vector<dist::Claim>& claims, const std::string& set_digest);

// Adds the length and the model: names, shapes and types of its parameters and buffers.
void claim_model(std::vector<dist::Claim>& claims, std::int64_t total_steps, const nn::Model& model,
                 const units::Shards& parts = {});

}  // namespace scaletrain::train
