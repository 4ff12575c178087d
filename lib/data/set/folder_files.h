// Classifies the files of an image folder by name, for training and for the tools: images, and
// ignored files.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace scaletrain::data {

// Returns the lower-case extension with its dot, ".jpg"; "" for a name without one.
std::string file_extension(const std::string& name);

// True if the extension is that of an image.
bool is_image_file(const std::string& name);

// Number of ignored files by file_extension().
using LeftAlone = std::map<std::string, std::int64_t>;

// "3 .bmp, 1 without extension".
std::string shown_files(const LeftAlone& left_alone);

}  // namespace scaletrain::data
