// Applies the flags of `scaletrain data import` to labels and to members' names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/data/import/imported_sample.h"

namespace scaletrain::app {

// `label` with `first_class` taken off; nullopt for what is no class number then.
std::optional<std::int64_t> class_number(std::int64_t label, std::int64_t first_class);

// Remedy for a message about an invalid label: `label` as stored, -1 for one that is missing,
// nullopt for one that is no number.
std::string label_remedy(std::optional<std::int64_t> label, std::int64_t first_class);

// A sample whose fields came by their names, KEY.EXTENSION. Its only picture, where that is a BMP,
// GIF or TIFF, becomes a PNG. The field `names.image` becomes the image, with the extension of the
// format it is in, and `names.label` becomes "cls"; another image, or "cls", beside it becomes
// "other.EXTENSION". The number in "cls" is shifted by `names.first_class`. With `names.label_key`,
// or of a folder, "cls" is added. A `prefix` that is not empty stands before the key, with a slash.
// Throws core::DataError: no such field, bytes that are no image, a label that is no class number,
// a list that names a class twice, or with `names.multi_hot` is no row of zeros and ones.
ImportedSample arranged(ImportedSample sample, const FieldNames& names, const std::string& prefix);

}  // namespace scaletrain::app
