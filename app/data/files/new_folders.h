// The folders that a command makes for what it writes. A command that fails leaves none behind.
#pragma once

#include <filesystem>
#include <vector>

namespace scaletrain::app {

class NewFolders {
 public:
  NewFolders() = default;
  ~NewFolders();  // removes those of them that hold nothing
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

  // Makes `folder` and those above it that are not there. Throws core::StorageError.
  void make(const std::filesystem::path& folder);

 private:
  std::vector<std::filesystem::path> made_;  // each before those in it
};

}  // namespace scaletrain::app
