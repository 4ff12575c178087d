// TensorBoard exporter: event files in RUN/export/tensorboard, written without TensorFlow.
//
// A file is a sequence of TFRecords, each an Event message of TensorFlow's event.proto.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "lib/track/exporter.h"

namespace scaletrain::track {

// Frames `data` as a TFRecord: its length, masked CRC-32C of the length, data, masked CRC-32C.
std::string tf_record(std::string_view data);

// Event messages, without their frame. The first one of a file has its version.
std::string version_event(double time);
// Makes readers discard the points at `step` and after it: a later attempt repeats these.
std::string restart_event(double time, std::int64_t step);
std::string text_event(double time, std::string_view tag, std::string_view text);
std::string scalars_event(double time, std::int64_t step,
                          std::span<const std::pair<std::string, double>> scalars);

// Returns the tag of a field: "Loss/train", "Accuracy/val", "lr"; "" for one that is no curve.
std::string scalar_tag(const Record& record, const std::string& field);

std::unique_ptr<Exporter> make_tensorboard(const ExportOptions& options);

}  // namespace scaletrain::track
