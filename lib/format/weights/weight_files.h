// Finds the weight files at a path: one file, a folder of Hugging Face, timm or torchvision, or a
// scaletrain checkpoint or run.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::format {

// Advice in errors about a LoRA adapter, which does not contain the full weights.
inline constexpr const char* kMergeAdapter =
    "merge it into its base model first, in Python: PeftModel.from_pretrained(base, ADAPTER)"
    ".merge_and_unload().save_pretrained(FOLDER), and name that folder";

struct WeightFiles {
  std::vector<std::filesystem::path> files;         // sorted by name
  std::filesystem::path index;                      // maps each tensor to its file; "" without one
  std::map<std::string, std::string> file_of;       // file of each tensor in the index
  std::optional<std::filesystem::path> config;      // config.json beside the files
  std::optional<std::filesystem::path> checkpoint;  // the checkpoint of ours that was taken
};

// `path` is
//   a file: safetensors or torch.save's, or an index (model.safetensors.index.json);
//   a checkpoint of ours, a run or its checkpoints folder: of the newest that is whole
//   ema.safetensors where it has one, otherwise model.safetensors; damaged ones reported through
//   `report`;
//   another folder: the first that it has of model.safetensors, model.safetensors.index.json,
//   pytorch_model.bin, pytorch_model.bin.index.json; otherwise its only .safetensors, .pt, .pth,
//   .ckpt or .bin file, where what Hugging Face's Trainer leaves (optimizer.pt, training_args.bin,
//   ...) does not count.
// Throws core::CheckpointError: nothing there, nothing to choose, several to choose from, a LoRA
// adapter (PEFT), an index that makes no sense or names a file that is missing.
WeightFiles find_weight_files(const std::filesystem::path& path,
                              const std::function<void(const std::string&)>& report);

}  // namespace scaletrain::format
