#include "app/data/import/import_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.h"
#include "lib/core/text/hash.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::app {

void ImportKeys::insert(const std::string& key, const std::string& source) {
  if (sources_.empty() || sources_.back().name != source) {
    sources_.push_back({source, hashes_.size()});
  }
  if (!keys_.insert(key)) refuse(key, source);
  hashes_.push_back(core::xxh3_64(key));
}

void ImportKeys::refuse(const std::string& key, const std::string& source) const {
  const auto found = std::find(hashes_.begin(), hashes_.end(), core::xxh3_64(key));
  const auto number = static_cast<std::size_t>(found - hashes_.begin());
  const auto behind = std::find_if(sources_.begin(), sources_.end(),
                                   [&](const Source& other) { return other.first > number; });
  const std::string& first = (behind - 1)->name;
  const std::string place = fmt::format("{}: {}", source, format::shown_name(key));
  if (first == source) {
    throw core::DataError(place, "the key is used again after another sample",
                          "the fields of a key must be consecutive, and keys must be unique: write "
                          "the file again, sorted by name");
  }
  throw core::DataError(
      place, fmt::format("the key is used again; {} has it first", first),
      "if files have the same keys, --prefix-keys puts the file's name before each key");
}

}  // namespace scaletrain::app
