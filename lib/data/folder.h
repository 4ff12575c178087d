// A folder with one sub-folder of images per class as a Dataset.
#pragma once

#include <memory>
#include <string>

#include "lib/data/dataset.h"

namespace scaletrain::data {

// Class numbers follow the sub-folders' names, bytewise sorted; so do the files of a class. Files
// that are no images by extension and names that start with a dot are left alone. Throws
// core::DataError: no such folder, no class folder, a class without images, folders in a class.
std::shared_ptr<const Dataset> open_folder(const std::string& path);

}  // namespace scaletrain::data
