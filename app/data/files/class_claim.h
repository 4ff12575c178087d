// Keeps one list of class names in a local folder that several commands write shards to at once.
//
// Each keeps the names of its classes there in a hidden file from when it knows them until it has
// ended, so that a command with other classes is refused before it works in vain. It cannot see one
// of another machine; what decides is classes.json, which one of them makes and the others must
// agree with before their shards get their names (keep_classes in app/data/files/set_classes.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/storage/stores.h"

namespace scaletrain::app {

class ClassClaim {
 public:
  // Throws core::DataError where classes.json, or another command that writes there now, has
  // others.
  ClassClaim(const storage::Stores& stores, const std::string& folder,
             const std::vector<std::string>& classes);
  ~ClassClaim();  // the file disappears
  ClassClaim(const ClassClaim&) = delete;
  ClassClaim& operator=(const ClassClaim&) = delete;

 private:
  std::filesystem::path file_;
};

}  // namespace scaletrain::app
