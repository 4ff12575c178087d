// Tars that are shards of a set: files beside them name the classes and the samples to leave out.
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
  // Says in a warning how much quarantine.json leaves out. Throws core::DataError where the folders
  // have different classes.json.
  ImportedTars(const storage::Stores& stores, const std::vector<std::string>& paths);

  // As import_tar, without what is in quarantine.
  void import(const std::string& path, const UseSample& use, ImportedSet& set) const;

  // The last folders of the keys of all tars, sorted bytewise; what classes.json names where it is
  // there.
  std::vector<std::string> folders(const std::vector<std::string>& paths) const;

  // The names of the labels that are left once `first_class` is taken off each; none where nobody
  // named them, or where labels become larger.
  std::vector<std::string> classes(std::int64_t first_class) const;

 private:
  const storage::Stores& stores_;
  data::QuarantineLists quarantine_;
  std::vector<std::string> classes_;
};

}  // namespace scaletrain::app
