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
  std::optional<std::filesystem::path> checkpoint;  // the scaletrain checkpoint that was selected
};

// `path` is
//   a file: safetensors, torch.save, or an index (model.safetensors.index.json);
//   a scaletrain checkpoint, a run or its checkpoints folder: ema.safetensors of the newest valid
//   checkpoint if it has one, otherwise model.safetensors; damaged ones are passed to `report`;
//   another folder: the first existing one of model.safetensors, model.safetensors.index.json,
//   pytorch_model.bin, pytorch_model.bin.index.json; otherwise its only .safetensors, .pt, .pth,
//   .ckpt or .bin file, not counting files of Hugging Face's Trainer (optimizer.pt,
//   training_args.bin, ...).
// Throws core::CheckpointError if there is no such file, more than one candidate, a LoRA adapter
// (PEFT), or an index that is invalid or lists a missing file.
WeightFiles find_weight_files(const std::filesystem::path& path,
                              const std::function<void(const std::string&)>& report);

}  // namespace scaletrain::format
