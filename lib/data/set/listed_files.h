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

// A folder stands for the images in it and in its sub-folders, selected by extension and sorted
// bytewise, without names that start with a dot. Throws core::DataError for a folder without an
// image.
ListedFiles list_files(const std::vector<std::string>& paths);

// Returns a set with one shard of these files in this order; keys are their paths, labels are 0.
std::shared_ptr<const Dataset> open_files(std::vector<std::string> files);

}  // namespace scaletrain::data
