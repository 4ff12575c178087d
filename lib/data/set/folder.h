// A folder with one sub-folder of images per class as a Dataset.
#pragma once

#include <memory>
#include <string>

#include "lib/data/set/dataset.h"
#include "lib/data/set/folder_files.h"

namespace scaletrain::data {

// Class numbers follow the sub-folders' names, bytewise sorted; so do the files of a class. Files
// that are no images by extension and names that start with a dot are left alone. Throws
// core::DataError: no such folder, no class folder, a class without images, folders in a class.
//
// Files that are left alone by their extension are added to `left_alone`, where that is given.
std::shared_ptr<const Dataset> open_folder(const std::string& path,
                                           LeftAlone* left_alone = nullptr);

}  // namespace scaletrain::data
