// Messages of TensorBoard's event files: TensorFlow's event.proto, summary.proto, and
// plugin_data.proto of the hparams plugin.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "lib/track/media.h"

namespace scaletrain::track {

// Frames `data` as a TFRecord: its length, masked CRC-32C of the length, data, masked CRC-32C.
std::string tf_record(std::string_view data);

// Event messages, without their frame. The first one of a file has its version.
std::string version_event(double time);
// Makes readers discard the points at `step` and after it: a later attempt repeats these.
std::string restart_event(double time, std::int64_t step);
std::string text_event(double time, std::string_view tag, std::string_view text,
                       std::int64_t step = 0);
std::string scalars_event(double time, std::int64_t step,
                          std::span<const std::pair<std::string, double>> scalars);
// `png`: bytes of a PNG file, from whose header the size is read.
std::string image_event(const Picture& picture, std::string_view png);
std::string histograms_event(const Histograms& histograms);

// The hparams plugin's description of a run, and its start with the values. `values` is an object
// of numbers, texts and booleans.
std::string hparams_event(double time, const nlohmann::ordered_json& values);
std::string hparams_start_event(double time, const nlohmann::ordered_json& values);
std::string hparams_end_event(double time, bool is_finished);

}  // namespace scaletrain::track
