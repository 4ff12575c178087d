// WebDataset samples in a tar: consecutive members with the same key.
//
// The key is the path up to the first dot of the file name; the rest, in lower case, is the
// extension. Names that start with a dot or have none belong to no sample. A hard link to an
// earlier such file counts as that file. A sample has one image (.jpg, .jpeg, .png, .webp, .rgb8)
// and one label (.cls), which is a class number or a list of them; other extensions are ignored.
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

// Returns nullopt for a name that belongs to no sample.
std::optional<SampleName> split_sample_name(std::string_view path);

bool is_image_extension(std::string_view extension);

struct TarSample {
  std::string key;
  TarMember image;
  std::int64_t label = 0;         // -1: a list of classes
  std::int64_t labels_begin = 0;  // start of a list's member (TarMember::begin)
};

// Error text for a key that occurs twice in a shard.
inline constexpr const char* kKeyAgain = "the key is used again after another sample";

// Calls `use` for every sample of the tar, in file order, except those whose keys are in `excluded`
// (sorted bytewise), which may be invalid. Throws core::DataError naming file and key for a key
// that is used again after another, a repeated extension, no image or two, a missing label, or one
// that is neither an integer from 0 to 2^31 - 1 nor a list of them; also the errors of TarReader.
// `rule` locates labels. Returns the number of incomplete samples that it skips.
std::int64_t for_each_sample(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                             const std::function<void(const TarSample&)>& use,
                             std::span<const std::string> excluded = {},
                             const LabelRule& rule = {});

// Byte range between the starts of two members, or to the start or end of the file.
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
