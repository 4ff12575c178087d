#include "lib/track/tensorboard_events.h"

#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "lib/format/tar/tfrecord.h"
#include "lib/track/protobuf.h"

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kFloat = 1, kString = 7;  // DT_FLOAT, DT_STRING of types.proto

std::string event(double time, std::int64_t step, const std::string& what) {
  return double_field(1, time) + number_field(2, static_cast<std::uint64_t>(step)) + what;
}

// An event whose summary has these values, each a message.
std::string summary_event(double time, std::int64_t step, const std::vector<std::string>& values) {
  std::string summary;
  for (const std::string& value : values) summary += bytes_field(1, value);
  return event(time, step, bytes_field(5, summary));
}

std::string masked_crc(std::string_view bytes) {
  return little_endian(std::rotr(format::crc32c(bytes), 15) + 0xA282EAD8U);
}

// Packed doubles.
std::string doubles_field(std::uint64_t field, const std::vector<double>& values) {
  std::string packed;
  for (const double value : values) packed += little_endian(std::bit_cast<std::uint64_t>(value));
  return bytes_field(field, packed);
}

// Width and height in the header of a PNG: the big-endian words at bytes 16 and 20 (PNG, third
// edition, section 11.2.1).
std::uint64_t png_word(std::string_view png, std::size_t at) {
  std::uint64_t word = 0;
  for (std::size_t i = at; i < at + 4 && i < png.size(); ++i) {
    word = word << 8 | static_cast<unsigned char>(png[i]);
  }
  return word;
}

// A histogram's buckets are given by their right edges.
std::string histogram_message(const Histogram& histogram) {
  const std::vector<double>& counts = histogram.counts;
  const double width = (histogram.max - histogram.min) / static_cast<double>(counts.size());
  std::vector<double> edges;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    edges.push_back(histogram.min + static_cast<double>(i) * width);
  }
  edges.push_back(histogram.max);
  return double_field(1, histogram.min) + double_field(2, histogram.max) +
         double_field(3, std::accumulate(counts.begin(), counts.end(), 0.0)) +
         double_field(4, histogram.sum) + double_field(5, histogram.sum_squares) +
         doubles_field(6, edges) + doubles_field(7, counts);
}

// google.protobuf.Value
std::string value_message(const Json& value) {
  if (value.is_boolean()) return number_field(4, value.get<bool>() ? 1 : 0);
  if (value.is_number()) return double_field(2, value.get<double>());
  return bytes_field(3, value.get<std::string>());
}

// DataType of api.proto
std::uint64_t hparam_type(const Json& value) {
  if (value.is_boolean()) return 2;
  return value.is_number() ? 3 : 1;
}

// A value of the hparams plugin, whose data are in its metadata; its tensor is empty.
std::string hparams_value(const char* tag, std::uint64_t kind, const std::string& data) {
  const std::string content = number_field(1, 0) + bytes_field(kind, data);
  const std::string metadata = bytes_field(1, bytes_field(1, "hparams") + bytes_field(2, content));
  const std::string tensor =
      number_field(1, kFloat) + bytes_field(2, bytes_field(2, number_field(1, 0)));
  return bytes_field(1, tag) + bytes_field(8, tensor) + bytes_field(9, metadata);
}

}  // namespace

std::string tf_record(std::string_view data) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  return length + masked_crc(length) + std::string(data) + masked_crc(data);
}

std::string version_event(double time) { return event(time, 0, bytes_field(3, "brain.Event:2")); }

std::string restart_event(double time, std::int64_t step) {
  constexpr std::uint64_t kStart = 1;  // SessionLog.START
  return event(time, step, bytes_field(7, number_field(1, kStart)));
}

std::string text_event(double time, std::string_view tag, std::string_view text,
                       std::int64_t step) {
  const std::string shape = bytes_field(2, number_field(1, 1));
  const std::string tensor =
      number_field(1, kString) + bytes_field(2, shape) + bytes_field(8, text);
  const std::string metadata = bytes_field(1, bytes_field(1, "text"));
  return summary_event(time, step,
                       {bytes_field(1, std::string(tag) + "/text_summary") +
                        bytes_field(8, tensor) + bytes_field(9, metadata)});
}

std::string scalars_event(double time, std::int64_t step,
                          std::span<const std::pair<std::string, double>> scalars) {
  std::vector<std::string> values;
  for (const auto& [tag, number] : scalars) {
    values.push_back(bytes_field(1, tag) + float_field(2, static_cast<float>(number)));
  }
  return summary_event(time, step, values);
}

std::string image_event(const Picture& picture, std::string_view png) {
  constexpr std::uint64_t kRgb = 3;
  const std::string image = number_field(1, png_word(png, 20)) +
                            number_field(2, png_word(png, 16)) + number_field(3, kRgb) +
                            bytes_field(4, png);
  return summary_event(picture.time, picture.step,
                       {bytes_field(1, picture.name) + bytes_field(4, image)});
}

std::string histograms_event(const Histograms& histograms) {
  std::vector<std::string> values;
  for (const Histogram& one : histograms.all) {
    if (one.counts.empty()) continue;  // no finite value
    values.push_back(bytes_field(1, one.name) + bytes_field(5, histogram_message(one)));
  }
  return summary_event(histograms.time, histograms.step, values);
}

std::string hparams_event(double time, const Json& values) {
  std::string experiment = double_field(3, time);
  for (const auto& item : values.items()) {
    experiment +=
        bytes_field(4, bytes_field(1, item.key()) + number_field(4, hparam_type(item.value())));
  }
  for (const char* const tag : {"Loss/train", "Loss/val", "Accuracy/val"}) {
    experiment += bytes_field(5, bytes_field(1, bytes_field(2, tag)));
  }
  return summary_event(time, 0, {hparams_value("_hparams_/experiment", 2, experiment)});
}

std::string hparams_start_event(double time, const Json& values) {
  std::string start;
  for (const auto& item : values.items()) {  // entries of a map
    start +=
        bytes_field(1, bytes_field(1, item.key()) + bytes_field(2, value_message(item.value())));
  }
  return summary_event(
      time, 0, {hparams_value("_hparams_/session_start_info", 3, start + double_field(5, time))});
}

std::string hparams_end_event(double time, bool is_finished) {
  const std::string end = number_field(1, is_finished ? 1 : 2) + double_field(2, time);
  return summary_event(time, 0, {hparams_value("_hparams_/session_end_info", 4, end)});
}

}  // namespace scaletrain::track
