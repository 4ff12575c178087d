// Which weights a checkpoint has, by the names that a person gives them: "model", what is trained;
// "ema", its running mean, of several the first; "ema:0.999", that of this decay; "swa", the equal
// mean of late training.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace scaletrain::format {

// What the file of such a mean is called: "ema.safetensors", "ema-0.999.safetensors". Of the first
// of several decays that is "ema"'s.
std::string mean_file(std::string_view name);
// Whether a file is called so.
bool is_mean_file(std::string_view file);
// "ema:0.999" of ema-0.999.safetensors, "model" of model.safetensors.
std::string weights_name(const std::filesystem::path& file);

// Where a checkpoint has these weights, "" for its ema, otherwise its swa, otherwise its model;
// nullopt where it has none.
std::optional<std::filesystem::path> find_weights(const std::filesystem::path& checkpoint,
                                                  std::string_view name);

// The same; throws core::CheckpointError naming the means that it has.
std::filesystem::path weights_file(const std::filesystem::path& checkpoint, std::string_view name);

}  // namespace scaletrain::format
