#include "app/data/import_sources.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "app/data/archive_reader.h"
#include "app/data/image_kind.h"
#include "app/data/pack_sources.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/data/encode.h"
#include "lib/format/byte_reader.h"
#include "lib/format/tar.h"
#include "lib/format/tar_samples.h"
#include "lib/format/tfrecord.h"

namespace scaletrain::app {
namespace {

// Puts fields of one key together that come one after the other.
class FieldGroups {
 public:
  explicit FieldGroups(const UseSample& use) : use_(use) {}

  void add(const std::string& path, std::string bytes) {
    auto parts = format::split_sample_name(path);
    if (!parts) return;
    if (!sample_.fields.empty() && parts->key != sample_.key) finish();
    sample_.key = std::move(parts->key);
    sample_.fields.push_back({std::move(parts->extension), std::move(bytes)});
  }

  void finish() {
    if (!sample_.fields.empty()) use_(std::exchange(sample_, ImportedSample()));
  }

 private:
  const UseSample& use_;
  ImportedSample sample_;
};

// An IDX file of unsigned bytes: its dimensions, and where its values begin.
struct Idx {
  std::string bytes;
  std::vector<std::int64_t> sides;
  std::size_t begin = 0;
};

Idx read_idx(const std::string& path, std::size_t fewest_sides, std::size_t most_sides) {
  Idx idx;
  idx.bytes = read_decompressed(path);
  const auto refuse = [&](const std::string& found) {
    throw core::DataError(path, found, "name an IDX file of unsigned bytes, as MNIST's");
  };
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(idx.bytes[i]); };
  if (idx.bytes.size() < 4 || byte_at(0) != 0 || byte_at(1) != 0 || byte_at(2) != 8) {
    refuse("is no IDX file of unsigned bytes");
  }
  const std::size_t sides = byte_at(3);
  idx.begin = 4 + 4 * sides;
  if (sides < fewest_sides || sides > most_sides || idx.bytes.size() < idx.begin) {
    refuse(fmt::format("has {} dimensions", sides));
  }
  std::int64_t values = 1;
  const auto held = static_cast<std::int64_t>(idx.bytes.size() - idx.begin);
  for (std::size_t i = 0; i < sides; ++i) {
    std::int64_t side = 0;
    for (std::size_t k = 0; k < 4; ++k) side = side << 8 | byte_at(4 + 4 * i + k);
    idx.sides.push_back(side);
    // Never above 2^63: what is left out of the product is above what the file holds anyway.
    values = side > 0 && values > held ? held + 1 : values * side;
  }
  if (values != held) refuse(fmt::format("holds {} values where its header says otherwise", held));
  return idx;
}

std::string label_of(const format::Feature& feature, std::int64_t first_class,
                     const std::string& place, const std::string& name) {
  std::int64_t label = -1;
  if (feature.numbers.size() == 1) label = feature.numbers[0] - first_class;
  if (feature.bytes.size() == 1) {
    label = format::parse_label(feature.bytes[0]).value_or(-1) - first_class;
  }
  if (label < 0 || label > INT32_MAX) {
    throw core::DataError(place, fmt::format("its \"{}\" is no class number", name),
                          "--label-field names another, --first-class what to take off");
  }
  return std::to_string(label);
}

}  // namespace

std::vector<std::string> import_folder(const std::string& path, const UseSample& use) {
  PackSource source = read_pack_source(path, {});
  for (const PackItem& item : source.items) {
    std::string image = core::read_file(item.path, format::kMaxMemberBytes, core::ExitCode::kData);
    const std::string kind = image_kind(image);
    if (kind.empty()) {
      throw core::DataError(item.path, "its first bytes are those of no image format",
                            "scaletrain data pack --skip-bad leaves such files out");
    }
    use({item.key, {{kind, std::move(image)}, {"cls", std::to_string(item.label)}}});
  }
  return std::move(source.classes);
}

void import_tar(const std::string& path, const UseSample& use) {
  FieldGroups groups(use);
  for_each_archived(path, [&](const std::string& name, std::string bytes) {
    groups.add(name, std::move(bytes));
  });
  groups.finish();
}

void import_idx(const std::string& images, const std::string& labels, const UseSample& use) {
  const Idx pixels = read_idx(images, 3, 4), numbers = read_idx(labels, 1, 1);
  const bool colours = pixels.sides.size() == 4;
  if (pixels.sides[0] != numbers.sides[0] || (colours && pixels.sides[3] != 3)) {
    throw core::DataError(
        images, fmt::format("{} images and {} labels", pixels.sides[0], numbers.sides[0]),
        "name the two files of one set, [count, height, width] or with 3 colours");
  }
  data::Image image;
  image.reshape(pixels.sides[2], pixels.sides[1]);
  const std::size_t repeat = colours ? 1 : 3;  // a grey value is red, green and blue
  const std::size_t stride = image.pixels.size() / repeat;
  for (std::int64_t i = 0; i < pixels.sides[0]; ++i) {
    const std::size_t from = pixels.begin + static_cast<std::size_t>(i) * stride;
    for (std::size_t k = 0; k < image.pixels.size(); ++k) {
      image.pixels[k] = static_cast<std::uint8_t>(pixels.bytes[from + k / repeat]);
    }
    const auto label =
        static_cast<unsigned char>(numbers.bytes[numbers.begin + static_cast<std::size_t>(i)]);
    use({fmt::format("{:08}", i), {{"png", data::to_png(image)}, {"cls", std::to_string(label)}}});
  }
}

void import_tfrecord(const std::string& path, const FieldNames& names, const UseSample& use) {
  const std::string image_name = names.image.empty() ? "image/encoded" : names.image;
  const std::string label_name = names.label.empty() ? "image/class/label" : names.label;
  const format::ByteReader file(path);
  const std::string stem = std::filesystem::path(path).filename().string();
  std::int64_t number = 0;
  const auto take = [&](std::string_view record) {
    const std::string place = fmt::format("{}: record {}", path, number);
    const auto refuse = [&](const std::string& found) {
      throw core::DataError(place, found, "--image-field and --label-field name the features");
    };
    try {
      const auto features = format::parse_example(record);
      const auto image = features.find(image_name), label = features.find(label_name);
      if (image == features.end() || image->second.bytes.size() != 1) {
        refuse(fmt::format("has no \"{}\" with one image", image_name));
      }
      if (label == features.end()) refuse(fmt::format("has no \"{}\"", label_name));
      const std::string kind = image_kind(image->second.bytes[0]);
      if (kind.empty()) refuse("its image is in no known format");
      std::string key = fmt::format("{}-{:08}", stem, number++);
      for (char& c : key) c = c == '.' ? '_' : c;
      use({key,
           {{kind, std::string(image->second.bytes[0])},
            {"cls", label_of(label->second, names.first_class, place, label_name)}}});
    } catch (const std::invalid_argument& error) {
      refuse(fmt::format("is no tf.train.Example: {}", error.what()));
    }
  };
  format::for_each_record(
      path, file.bytes(),
      [&](std::int64_t offset, std::span<std::byte> out) { file.read(offset, out); }, take);
}

}  // namespace scaletrain::app
