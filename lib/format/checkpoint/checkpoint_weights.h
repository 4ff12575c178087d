// Selects weights of a checkpoint by name: "model", the trained weights; "ema", their exponential
// moving average (the first of several); "ema:0.999", the EMA of this decay; "swa", stochastic
// weight averaging of late training.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace scaletrain::format {

// Returns the file name of averaged weights: "ema.safetensors", "ema-0.999.safetensors". The first
// of several decays uses that of "ema".
std::string mean_file(std::string_view name);
// True if `file` is the name of averaged weights.
bool is_mean_file(std::string_view file);
// Returns "ema:0.999" for ema-0.999.safetensors, "model" for model.safetensors.
std::string weights_name(const std::filesystem::path& file);

// Returns the file of these weights; "" selects the EMA, else the SWA, else the model weights.
// nullopt if the checkpoint does not have them.
std::optional<std::filesystem::path> find_weights(const std::filesystem::path& checkpoint,
                                                  std::string_view name);

// Like find_weights, but throws core::CheckpointError naming the averages that exist.
std::filesystem::path weights_file(const std::filesystem::path& checkpoint, std::string_view name);

}  // namespace scaletrain::format
