// Makes concurrent commands that write shards to one local folder agree on its class names.
//
// Each command keeps its class names in a hidden file there while it runs, so that a command with
// other classes is refused early. Commands on other machines are not seen; finally classes.json
// decides, which one command creates and the others must match before their shards are renamed
// (keep_classes in app/data/files/set_classes.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/storage/stores.h"

namespace scaletrain::app {

class ClassClaim {
 public:
  // Throws core::DataError if classes.json, or another command that writes there now, has other
  // classes.
  ClassClaim(const storage::Stores& stores, const std::string& folder,
             const std::vector<std::string>& classes);
  ~ClassClaim();  // removes the file
  ClassClaim(const ClassClaim&) = delete;
  ClassClaim& operator=(const ClassClaim&) = delete;

 private:
  std::filesystem::path file_;
};

}  // namespace scaletrain::app
