// Single image files as a Dataset, for prediction; they have no labels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/data/set/dataset.h"

namespace scaletrain::data {

struct UnreadFile {
  std::string path, reason;
};

struct ListedFiles {
  std::vector<std::string> files;  // readable files
  std::vector<UnreadFile> unread;
};

// A path that is a folder stands for the images in it and in its sub-folders, by their extensions
// and bytewise sorted, without those whose name starts with a dot; any other for itself. Throws
// core::DataError for a folder without an image.
ListedFiles list_files(const std::vector<std::string>& paths);

// The files in one shard, in this order; keys are their paths and labels 0.
std::shared_ptr<const Dataset> open_files(std::vector<std::string> files);

}  // namespace scaletrain::data
