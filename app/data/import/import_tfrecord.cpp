#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "app/data/files/image_kind.h"
#include "app/data/files/unique_keys.h"
#include "app/data/import/import_fields.h"
#include "app/data/import/import_sources.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/text/placeholder.h"
#include "lib/format/tar/tar_samples.h"
#include "lib/format/tar/tfrecord.h"

namespace scaletrain::app {
namespace {

// Class names; every record has only that of its own class.
class ClassTexts {
 public:
  // `text` is null if the record has none.
  void note(std::int64_t label, const format::Feature* text) {
    const bool is_there = text != nullptr && text->bytes.size() == 1 && !text->bytes[0].empty();
    const std::string name(is_there ? text->bytes[0] : "");
    const auto [known, is_new] = names_.emplace(label, name);
    is_any_ = is_any_ || is_there;
    is_sound_ = is_sound_ && is_there && (is_new || known->second == name);
  }

  // Names by label; empty unless every class from 0 on has exactly one name.
  std::vector<std::string> names() const {
    if (!is_any_) return {};
    if (!is_sound_ || names_.rbegin()->first + 1 != std::ssize(names_)) {
      core::warn(
          "not every class from 0 to {} has one \"image/class/text\": no classes.json is written",
          names_.rbegin()->first);
      return {};
    }
    std::vector<std::string> result;
    for (const auto& [label, name] : names_) result.push_back(name);
    return result;
  }

 private:
  std::map<std::int64_t, std::string> names_;
  bool is_any_ = false, is_sound_ = true;
};

std::int64_t label_of(const format::Feature& feature, std::int64_t first_class,
                      const std::string& place, const std::string& name) {
  std::optional<std::int64_t> label;
  if (feature.numbers.size() == 1) label = feature.numbers[0];
  if (feature.bytes.size() == 1) label = format::parse_label(feature.bytes[0]);
  const auto number = label ? class_number(*label, first_class) : std::nullopt;
  if (!number) {
    throw core::DataError(place, fmt::format("its \"{}\" is not a class number", name),
                          label_remedy(label, first_class));
  }
  return *number;
}

// The keys begin with `stem`.
void import_records(const std::string& path, const std::string& stem, const FieldNames& names,
                    ClassTexts& texts, const UseSample& use) {
  const std::string image_name = names.image.empty() ? "image/encoded" : names.image;
  const std::string label_name = names.label.empty() ? "image/class/label" : names.label;
  core::refuse_placeholder_file(path);
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
      std::string bytes(image->second.bytes[0]);
      const std::string kind = take_image(bytes, place);
      if (kind.empty()) refuse("its image is not in a known format");
      const std::int64_t class_label =
          label_of(label->second, names.first_class, place, label_name);
      const auto text = features.find("image/class/text");
      texts.note(class_label, text == features.end() ? nullptr : &text->second);
      use({fmt::format("{}-{:08}", stem, number++),
           {{kind, std::move(bytes)}, {"cls", std::to_string(class_label)}}});
    } catch (const std::invalid_argument& error) {
      refuse(fmt::format("is not a tf.train.Example: {}", error.what()));
    }
  };
  format::for_each_record(
      path, file->identity().bytes,
      [&](std::int64_t offset, std::span<std::byte> out) { file->read(offset, out); }, take);
}

}  // namespace

ImportedSet import_tfrecord(const std::vector<std::string>& paths, const FieldNames& names,
                            const UseSample& use) {
  UniqueKeys stems;
  ClassTexts texts;
  for (const std::string& path : paths) {
    import_records(path, stems.take(key_stem(path)), names, texts, use);
  }
  return {.classes = texts.names()};
}

}  // namespace scaletrain::app
