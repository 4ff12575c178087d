// WebDataset samples in a tar: the members of one key, next to one another.
//
// The key is the path up to the first dot of the file name, the rest is the extension
// (lower-cased); names that start with a dot or have none are no part of a sample. A hard link to a
// file before it, which has such a name too, is that file: its place is the file's. A sample is one
// image (.jpg, .jpeg, .png, .webp, .rgb8) and one label (.cls); other extensions beside them are
// left alone. A label is the number of a class, or a list of such numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/format/tar/label_rule.h"
#include "lib/format/tar/label_text.h"
#include "lib/format/tar/tar.h"

namespace scaletrain::format {

struct SampleName {
  std::string key;
  std::string extension;  // lower-case, without the first dot
};

// nullopt for a name that is no part of a sample.
std::optional<SampleName> split_sample_name(std::string_view path);

bool is_image_extension(std::string_view extension);

struct TarSample {
  std::string key;
  TarMember image;
  std::int64_t label = 0;         // -1: a list of classes, which a label may be too
  std::int64_t labels_begin = 0;  // start of a list's member (TarMember::begin)
};

// Error text for a key that occurs twice in a shard.
inline constexpr const char* kKeyAgain = "the key is used again after another sample";

// Calls `use` for every sample of the tar, in file order, but for those whose keys are in
// `excluded` (sorted bytewise), whatever is wrong with them. Throws core::DataError naming file and
// key: a key used again after another, a repeated extension, no image or two, no label or one that
// is neither a whole number from 0 to 2^31 - 1 nor a list of them; and whatever TarReader throws.
// Labels are where `rule` says; what comes back is how many incomplete samples it leaves out.
std::int64_t for_each_sample(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                             const std::function<void(const TarSample&)>& use,
                             std::span<const std::string> excluded = {},
                             const LabelRule& rule = {});

// Byte range from the start of one member, or of the file, to that of another, or the file's end.
struct TarStretch {
  std::int64_t begin = 0, end = 0;
};

// Like for_each_sample, for a stretch of the tar, so that several threads can divide it. Omits the
// sample with a member at `begin` and completes the one at `end`: adjacent stretches yield each
// sample once. A repeated key is no error yet: returns XXH3-64 of each key, and these must differ
// within and between stretches. nullopt if no member begins at `end`, or for a hard link, whose
// target may lie in another stretch.
std::optional<std::vector<std::uint64_t>> for_each_sample_between(
    TarStretch stretch, const std::string& name, std::int64_t file_bytes, const ReadAt& read,
    const std::function<void(const TarSample&)>& use, std::span<const std::string> excluded = {});

}  // namespace scaletrain::format
