// Applies the flags of `scaletrain data import` to labels and to members' names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/data/import/imported_sample.h"

namespace scaletrain::app {

// Returns `label` - `first_class`; nullopt if that is not a class number.
std::optional<std::int64_t> class_number(std::int64_t label, std::int64_t first_class);

// Returns the remedy for an invalid label: `label` as stored, -1 if missing, nullopt if not a
// number.
std::string label_remedy(std::optional<std::int64_t> label, std::int64_t first_class);

// Arranges the fields of a sample, which are named KEY.EXTENSION. A single BMP, GIF or TIFF picture
// becomes a PNG. The field `names.image` becomes the image, with the extension of its format, and
// `names.label` becomes "cls"; other images or "cls" fields become "other.EXTENSION".
// `names.first_class` is subtracted from the number in "cls". With `names.label_key`, or a label
// from the folder, "cls" is added. A `prefix` is put before the key, with a slash. Throws
// core::DataError for a missing field, bytes that are not an image, a label that is not a class
// number, or a list with a repeated class or, with `names.multi_hot`, other values than zeros and
// ones.
ImportedSample arranged(ImportedSample sample, const FieldNames& names, const std::string& prefix);

}  // namespace scaletrain::app
