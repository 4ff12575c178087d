// Files of a folder source by their names, for training and for the tools alike: which are images,
// and how many are not.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace scaletrain::data {

// With its dot and lower-case, ".jpg"; "" for a name without.
std::string file_extension(const std::string& name);

// True if the extension is that of an image.
bool is_image_file(const std::string& name);

// Files that are no images, by file_extension().
using LeftAlone = std::map<std::string, std::int64_t>;

// "3 .bmp, 1 without extension".
std::string shown_files(const LeftAlone& left_alone);

}  // namespace scaletrain::data
