// A folder with one sub-folder of images per class as a Dataset.
#pragma once

#include <memory>
#include <string>

#include "lib/data/set/dataset.h"
#include "lib/data/set/folder_files.h"

namespace scaletrain::data {

// Classes are numbered by the sub-folders' names, sorted bytewise; so are the files of a class.
// Files without an image extension, and names that start with a dot, are ignored. Throws
// core::DataError if there is no such folder, no class folder, a class without images, or a folder
// inside a class.
//
// Ignored files are counted by extension in `left_alone`, if it is given.
std::shared_ptr<const Dataset> open_folder(const std::string& path,
                                           LeftAlone* left_alone = nullptr);

}  // namespace scaletrain::data
