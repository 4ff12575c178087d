#include "app/data/import/import_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "app/data/files/image_kind.h"
#include "app/foreign/foreign_image.h"
#include "lib/core/error.h"
#include "lib/core/text/lookup.h"
#include "lib/core/text/placeholder.h"
#include "lib/core/text/text.h"
#include "lib/format/json_fields.h"
#include "lib/format/tar/label_rule.h"
#include "lib/format/tar/label_text.h"
#include "lib/format/tar/tar.h"
#include "lib/format/tar/tar_samples.h"

namespace scaletrain::app {
namespace {

constexpr const char* kOther = "other.";  // before the extension of a field that gave way

std::string place_of(const ImportedSample& sample) {
  return fmt::format("{}: {}", sample.source, format::shown_name(sample.key));
}

// "Input.JPG" and ".input.jpg" are the field input.jpg: extensions are lower-case.
std::string extension_of(std::string_view asked) {
  return core::lower_case(asked.substr(asked.starts_with('.') ? 1 : 0));
}

ImportedField& field_of(ImportedSample& sample, const std::string& asked, const char* flag) {
  const std::string extension = extension_of(asked);
  const auto found =
      std::find_if(sample.fields.begin(), sample.fields.end(),
                   [&](const ImportedField& field) { return field.extension == extension; });
  if (found != sample.fields.end()) return *found;
  std::vector<std::string> there;
  for (const ImportedField& field : sample.fields) {
    there.push_back(format::shown_name(field.extension));
  }
  throw core::DataError(place_of(sample), fmt::format("has no .{}", format::shown_name(extension)),
                        fmt::format("{} names one of its fields: {}", flag, fmt::join(there, " ")));
}

void choose_image(ImportedSample& sample, const std::string& asked) {
  ImportedField& image = field_of(sample, asked, "--image-field");
  const std::string kind = take_image(image.bytes, place_of(sample));
  if (kind.empty()) {
    throw core::DataError(
        place_of(sample),
        fmt::format("its .{} is not in a known image format", format::shown_name(image.extension)),
        "--image-field names the part of the image's name after the key");
  }
  for (ImportedField& field : sample.fields) {
    if (&field != &image && format::is_image_extension(field.extension)) {
      field.extension.insert(0, kOther);
    }
  }
  image.extension = kind;
}

// A BMP, GIF or TIFF becomes the sample's image if it is the only picture.
void take_foreign(ImportedSample& sample) {
  ImportedField* only = nullptr;
  for (ImportedField& field : sample.fields) {
    if (format::is_image_extension(field.extension)) return;
    if (!is_foreign_file("." + field.extension)) continue;
    if (only != nullptr) return;
    only = &field;
  }
  if (only == nullptr || foreign_kind(only->bytes).empty()) return;
  only->extension = take_image(only->bytes, place_of(sample));
}

// Out of another field, which stays, or of the key.
void add_label(ImportedSample& sample, const FieldNames& names) {
  const format::LabelRule rule{.field = names.label_of_folder ? format::LabelRule::kFolder : "json",
                               .key = names.label_key,
                               .classes = names.classes};
  std::optional<format::FoundLabel> found;
  if (names.label_of_folder) {
    if (const auto number = rule.class_of(sample.key)) found = format::FoundLabel{*number};
  } else {
    const std::string& text =
        field_of(sample, names.label.empty() ? "json" : names.label, "--label-field").bytes;
    found = rule.parse(text);
    if (!found) core::refuse_placeholder(place_of(sample), text);
    if (const std::string problem = found ? "" : format::json_problem(text); !problem.empty()) {
      throw core::DataError(place_of(sample), "its label's field " + problem,
                            "write null in place of NaN and Infinity");
    }
  }
  if (!found) {
    throw core::DataError(place_of(sample),
                          names.label_of_folder ? "its folder is not a class"
                                                : fmt::format("has no class in \"{}\"",
                                                              format::shown_name(names.label_key)),
                          "a class is a number from 0, a list of them, or a name of the "
                          "classes.json beside the tars");
  }
  for (ImportedField& field : sample.fields) {
    if (field.extension == "cls") field.extension.insert(0, kOther);
  }
  sample.fields.push_back({"cls", found->number < 0
                                      ? fmt::format("[{}]", fmt::join(found->list, ", "))
                                      : std::to_string(found->number)});
}

void choose_label(ImportedSample& sample, const std::string& asked) {
  ImportedField& label = field_of(sample, asked, "--label-field");
  for (ImportedField& field : sample.fields) {
    if (&field != &label && field.extension == "cls") field.extension.insert(0, kOther);
  }
  label.extension = "cls";
}

// A list of classes: a multi-hot row becomes one, and no class occurs twice.
void check_list(const ImportedSample& sample, std::string& text, bool multi_hot) {
  if (format::parse_label(text)) return;
  const auto list = format::parse_labels(text);
  if (!list)
    return core::refuse_placeholder(place_of(sample), text);  // others: the writer counts it
  const auto refuse = [&](const std::string& found, const char* remedy) {
    throw core::DataError(place_of(sample),
                          fmt::format("its label [{}] {}", fmt::join(*list, ", "), found), remedy);
  };
  if (!multi_hot) {
    const auto twice = format::repeated_label(*list);
    if (twice) {
      refuse(fmt::format("names class {} twice", *twice),
             "correct it; --multi-hot reads a zero or one for each class");
    }
    return;
  }
  if (!format::is_zeros_and_ones(*list)) {
    refuse("is not made of zeros and ones", "leave --multi-hot out: it is a list of classes");
  }
  std::vector<std::size_t> classes;
  for (std::size_t i = 0; i < list->size(); ++i) {
    if ((*list)[i] == 1) classes.push_back(i);
  }
  text = fmt::format("[{}]", fmt::join(classes, ", "));
}

void shift_label(const ImportedSample& sample, std::string& text, std::int64_t first_class) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::string_view number = text;
  number.remove_prefix(std::min(number.find_first_not_of(kSpace), number.size()));
  number = number.substr(0, number.find_last_not_of(kSpace) + 1);
  const auto label = core::parse_number<std::int64_t>(number);
  const auto shifted = label ? class_number(*label, first_class) : std::nullopt;
  if (!shifted) {
    throw core::DataError(place_of(sample),
                          fmt::format("its label is not a class: \"{}\"", format::shown_name(text)),
                          label_remedy(label, first_class));
  }
  text = std::to_string(*shifted);
}

}  // namespace

std::optional<std::int64_t> class_number(std::int64_t label, std::int64_t first_class) {
  std::int64_t shifted = 0;
  if (__builtin_sub_overflow(label, first_class, &shifted)) return std::nullopt;
  if (shifted < 0 || shifted > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return shifted;
}

std::string label_remedy(std::optional<std::int64_t> label, std::int64_t first_class) {
  if (!label) return "--label-field names another";
  if (*label < 0) {
    return "a sample without a label (null, or -1 in Hugging Face's datasets) cannot be imported: "
           "leave it out of the file; --label-field names another";
  }
  return fmt::format("--first-class, {} here, is the lowest label; --label-field names another",
                     first_class);
}

ImportedSample arranged(ImportedSample sample, const FieldNames& names, const std::string& prefix) {
  if (names.image.empty()) {
    take_foreign(sample);
  } else {
    choose_image(sample, names.image);
  }
  if (names.label_of_folder || !names.label_key.empty()) {
    add_label(sample, names);
  } else if (!names.label.empty()) {
    choose_label(sample, names.label);
  }
  for (ImportedField& field : sample.fields) {
    if (field.extension == "cls") check_list(sample, field.bytes, names.multi_hot);
  }
  if (names.first_class != 0) {
    for (ImportedField& field : sample.fields) {
      if (field.extension == "cls") shift_label(sample, field.bytes, names.first_class);
    }
  }
  if (!prefix.empty()) {
    const bool is_here = sample.key.starts_with("./");
    sample.key = fmt::format("{}/{}", prefix, sample.key.substr(is_here ? 2 : 0));
  }
  return sample;
}

}  // namespace scaletrain::app
