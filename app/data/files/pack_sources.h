// Input of `scaletrain data pack`: a folder with a sub-folder for each class, or a list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/data/set/folder_files.h"

namespace scaletrain::app {

struct PackItem {
  std::string path;   // the image file
  std::string key;    // WebDataset key: no dot in its last part
  std::string label;  // text of .cls: "7", or for a list of classes "[7, 2]"
};

struct PackSource {
  std::vector<PackItem> items;       // sorted bytewise by path, or as in the list
  std::vector<std::string> classes;  // names by label
  data::LeftAlone left_alone;        // folders only: files skipped by extension
};

// `source` is a folder, or a file that ends in .csv, .jsonl or .ndjson, whose paths are relative to
// the file's folder; the last two may give an image a list of classes. `classes`, where not empty,
// gives the numbers of the classes; otherwise these are the names sorted bytewise, or the numbers
// of the list. Throws core::DataError: nothing to pack, a class's folder without an image, a folder
// that is linked into itself, a class that `classes` does not have, a list that is damaged or whose
// labels are neither all names nor all whole numbers from 0.
PackSource read_pack_source(const std::string& source, const std::vector<std::string>& classes);

}  // namespace scaletrain::app
