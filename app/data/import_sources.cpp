#include "app/data/import_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "app/data/image_kind.h"
#include "app/data/in_order.h"
#include "app/data/pack_sources.h"
#include "app/data/unique_keys.h"
#include "lib/core/disk.h"
#include "lib/core/error.h"
#include "lib/core/url.h"
#include "lib/data/encode.h"
#include "lib/format/tar.h"
#include "lib/format/tar_groups.h"
#include "lib/format/tar_samples.h"
#include "lib/format/tfrecord.h"
#include "lib/storage/block_reader.h"
#include "lib/storage/unpacked_file.h"

namespace scaletrain::app {
namespace {

// An IDX file of unsigned bytes, plain or compressed, item by item: memory does not grow with what
// its header says.
class IdxFile {
 public:
  IdxFile(const std::string& path, std::size_t fewest_sides, std::size_t most_sides)
      : path_(path),
        packed_(storage::file_storage().stream(path)),
        bytes_(storage::unpack(*packed_, path,
                               {storage::kMaxUnpackedBytes, "import such a file in parts"},
                               storage::Packing::kAnyOrNone)) {
    std::string magic(4, '\0');
    if (!fill(magic) || byte_at(magic, 0) != 0 || byte_at(magic, 1) != 0 ||
        byte_at(magic, 2) != 8) {
      refuse("is no IDX file of unsigned bytes");
    }
    const std::size_t sides = byte_at(magic, 3);
    std::string header(4 * sides, '\0');
    if (sides < fewest_sides || sides > most_sides || !fill(header)) {
      refuse(fmt::format("has {} dimensions", sides));
    }
    std::int64_t item_bytes = 1;
    for (std::size_t i = 0; i < sides; ++i) {
      std::int64_t side = 0;
      for (std::size_t k = 0; k < 4; ++k) side = side << 8 | byte_at(header, 4 * i + k);
      sides_.push_back(side);
      if (i > 0) item_bytes = std::min(item_bytes * side, format::kMaxMemberBytes + 1);
    }
    if (item_bytes == 0 || item_bytes > format::kMaxMemberBytes) {
      refuse(
          fmt::format("has items of {} bytes", fmt::join(sides_.begin() + 1, sides_.end(), "x")));
    }
    item_.resize(static_cast<std::size_t>(item_bytes));
  }

  const std::vector<std::int64_t>& sides() const { return sides_; }

  // The next of sides()[0] items; valid until the next call.
  const std::string& next() {
    if (!fill(item_)) refuse(fmt::format("ends in item {} of {}", number_, sides_[0]));
    ++number_;
    return item_;
  }

  void expect_end() {
    std::string more(1, '\0');
    if (fill(more)) refuse(fmt::format("goes on behind its {} items", sides_[0]));
  }

 private:
  static unsigned char byte_at(const std::string& bytes, std::size_t i) {
    return static_cast<unsigned char>(bytes[i]);
  }

  // False where the file ends before.
  bool fill(std::string& out) {
    const std::span<std::byte> wanted = std::as_writable_bytes(std::span(out));
    for (std::size_t done = 0; done < wanted.size();) {
      const std::size_t got = bytes_->read(wanted.subspan(done));
      if (got == 0) return false;
      done += got;
    }
    return true;
  }

  [[noreturn]] void refuse(const std::string& found) const {
    throw core::DataError(path_, found, "name an IDX file of unsigned bytes, as MNIST's");
  }

  const std::string& path_;
  std::unique_ptr<storage::Stream> packed_, bytes_;
  std::vector<std::int64_t> sides_;
  std::string item_;
  std::int64_t number_ = 0;
};

// A file, or what it holds where it is compressed.
std::unique_ptr<storage::Object> open_source(const std::string& path,
                                             const storage::Storage& files) {
  return storage::is_packed(*files.stream(path), path)
             ? storage::open_unpacked(files, path, storage::Packing::kAnyOrNone)
             : files.open(path);
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

ImportedSample read_item(const PackItem& item) {
  std::string image = core::read_file(item.path, format::kMaxMemberBytes, core::ExitCode::kData);
  const std::string kind = image_kind(image);
  if (kind.empty()) {
    throw core::DataError(item.path, "its first bytes are those of no image format",
                          "scaletrain data pack --skip-bad leaves such files out");
  }
  return {item.key, {{kind, std::move(image)}, {"cls", std::to_string(item.label)}}};
}

// The keys begin with `stem`.
void import_records(const std::string& path, const std::string& stem, const FieldNames& names,
                    const UseSample& use) {
  const std::string image_name = names.image.empty() ? "image/encoded" : names.image;
  const std::string label_name = names.label.empty() ? "image/class/label" : names.label;
  const auto file = open_source(path, storage::file_storage());
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
      path, file->identity().bytes,
      [&](std::int64_t offset, std::span<std::byte> out) { file->read(offset, out); }, take);
}

}  // namespace

ImportedSet import_folder(const std::string& path, int threads, const UseSample& use) {
  PackSource source = read_pack_source(path, {});
  in_order<ImportedSample>(
      std::ssize(source.items), threads,
      [&](std::int64_t i, int) { return read_item(source.items[static_cast<std::size_t>(i)]); },
      [&](std::int64_t, const ImportedSample& sample) { use(sample); });
  return {std::move(source.classes), std::move(source.left_alone)};
}

void import_tar(const storage::Stores& stores, const std::string& path, const UseSample& use) {
  const auto file = open_source(path, stores.of(path));
  const storage::BlockReader pieces(*file);
  const format::ReadAt read = [&](std::int64_t offset, std::span<std::byte> out) {
    core::is_url(path) ? pieces.read(offset, out) : file->read(offset, out);
  };
  const std::string place = core::shown_path(path);
  format::for_each_group(place, file->identity().bytes, read, [&](const format::TarGroup& group) {
    ImportedSample sample{group.key, {}};
    for (const format::TarField& field : group.fields) {
      std::string bytes(static_cast<std::size_t>(field.member.bytes), '\0');
      read(field.member.data, std::as_writable_bytes(std::span(bytes)));
      sample.fields.push_back({field.extension, std::move(bytes)});
    }
    use(sample);
    return true;
  });
}

void import_idx(const std::string& images, const std::string& labels, const UseSample& use) {
  IdxFile pixels(images, 3, 4), numbers(labels, 1, 1);
  const std::vector<std::int64_t>& sides = pixels.sides();
  const bool colours = sides.size() == 4;
  if (sides[0] != numbers.sides()[0] || (colours && sides[3] != 3)) {
    throw core::DataError(
        images, fmt::format("{} images and {} labels", sides[0], numbers.sides()[0]),
        "name the two files of one set, [count, height, width] or with 3 colours");
  }
  data::Image image;
  image.reshape(sides[2], sides[1]);
  const std::size_t repeat = colours ? 1 : 3;  // a grey value is red, green and blue
  for (std::int64_t i = 0; i < sides[0]; ++i) {
    const std::string& values = pixels.next();
    for (std::size_t k = 0; k < image.pixels.size(); ++k) {
      image.pixels[k] = static_cast<std::uint8_t>(values[k / repeat]);
    }
    const auto label = static_cast<unsigned char>(numbers.next()[0]);
    use({fmt::format("{:08}", i), {{"png", data::to_png(image)}, {"cls", std::to_string(label)}}});
  }
  pixels.expect_end();
  numbers.expect_end();
}

void import_tfrecord(const std::vector<std::string>& paths, const FieldNames& names,
                     const UseSample& use) {
  UniqueKeys stems;
  for (const std::string& path : paths) {
    import_records(path, stems.take(std::filesystem::path(path).filename().string()), names, use);
  }
}

}  // namespace scaletrain::app
