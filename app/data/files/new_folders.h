// Creates output folders of a command and removes them if it fails.
#pragma once

#include <filesystem>
#include <vector>

namespace scaletrain::app {

class NewFolders {
 public:
  NewFolders() = default;
  ~NewFolders();  // removes the created folders that are empty
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

  // Creates `folder` and its missing parents. Throws core::StorageError.
  void make(const std::filesystem::path& folder);

 private:
  std::vector<std::filesystem::path> made_;  // each before those in it
};

}  // namespace scaletrain::app
