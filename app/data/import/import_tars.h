// Imports tars that are shards of a set, with their classes.json and quarantine.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/data/import/import_sources.h"
#include "lib/data/set/quarantine_lists.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

class ImportedTars {
 public:
  // Logs a warning with the samples that quarantine.json excludes. Throws core::DataError if the
  // folders have different classes.json.
  ImportedTars(const storage::Stores& stores, const std::vector<std::string>& paths);

  // Imports like import_tar(), without samples in quarantine.
  void import(const std::string& path, const UseSample& use, ImportedSet& set) const;

  // Returns the last folders of the keys of all tars, sorted bytewise, or the names in classes.json
  // if it exists.
  std::vector<std::string> folders(const std::vector<std::string>& paths) const;

  // Returns the class names that remain after subtracting `first_class` from labels; {} if there
  // are none, or if labels become larger.
  std::vector<std::string> classes(std::int64_t first_class) const;

 private:
  const storage::Stores& stores_;
  data::QuarantineLists quarantine_;
  std::vector<std::string> classes_;
};

}  // namespace scaletrain::app
