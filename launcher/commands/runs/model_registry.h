// A registry of models on plain files: FOLDER/NAME.json holds the versions of a model, their stages
// and lineage, and the history of changes.
//
// {"format_version": 1, "name", "versions": [{"version": 1, "added": Unix seconds, "stage",
// "checkpoint", "step", "model_digest", "manifest_digest", "run", "recipe_digest", "data_cards":
// {"train": SHA-256}, "results": {"val_top1": 0.99}, "note"}], "history": [{"time", "action",
// "version", "from", "to"}]}. Files are replaced as a whole under a lock of the folder (flock on
// FOLDER/.lock).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

class ModelRegistry {
 public:
  explicit ModelRegistry(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Adds the checkpoint that `path` names as the next version: a checkpoint, or a run, which stands
  // for its best checkpoint or else its newest. Returns the version. Throws core::CheckpointError
  // if there is none or it is damaged.
  RunJson add(const std::string& name, const std::string& path, const std::string& stage,
              const std::string& note) const;

  // Names of all models, sorted.
  std::vector<std::string> names() const;
  // Returns the file of a model. Throws core::UsageError if there is none, core::DataError if it is
  // damaged.
  RunJson model(const std::string& name) const;
  // Returns a version of it. Throws core::UsageError if it does not exist.
  RunJson version(const std::string& name, int number) const;

  // Moves a version to a stage. The version that was in production becomes archived.
  void promote(const std::string& name, int number, const std::string& stage) const;
  // Restores the version that was in production before the current one; returns its number. Throws
  // core::UsageError if there was none.
  int roll_back(const std::string& name) const;

 private:
  std::filesystem::path file_of(const std::string& name) const;
  void write(const RunJson& model) const;

  std::filesystem::path folder_;
};

}  // namespace scaletrain::launcher
