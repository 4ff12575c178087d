// Size and modification time of the files that a recipe reads: data sets and initial weights. Two
// lists made at different times show which data has changed.
#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/sections/data/data.h"

namespace scaletrain::launcher {

struct DataFile {
  std::string set;               // "train", "val", "test", "extra/NAME", "weights"
  std::string path;              // a shard, a token file, weights, or the folder of an image set
  std::int64_t files = 1;        // number of files in the folder
  std::int64_t bytes = 0;        // their sum
  std::int64_t modified_ns = 0;  // newest modification time, Unix nanoseconds
  std::string listing;           // XXH3-128 of the names and sizes in the folder; "": a file
};

// Returns the files of all sets in the order of the recipe, then `weights` ("": none). Leaves out
// URLs and missing files. nullopt if `stop` becomes true before the end.
std::optional<std::vector<DataFile>> data_files(const recipe::Data& data,
                                                const std::string& weights,
                                                const std::atomic<bool>& stop);

// A list of {"set", "path", "files", "bytes", "modified_ns", "listing"}.
nlohmann::ordered_json data_files_json(const std::vector<DataFile>& files);

// Reads such a list. Entries of another form are left out.
std::vector<DataFile> data_files_of(const nlohmann::ordered_json& list);

}  // namespace scaletrain::launcher
