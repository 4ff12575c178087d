#include "lib/track/media.h"

#include <nlohmann/json.hpp>

namespace scaletrain::track {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& one : list) texts.push_back(one.get<std::string>());
  return texts;
}

}  // namespace

std::optional<Picture> parse_picture(const Json& line) {
  try {
    Picture picture{.name = line.at("name").get<std::string>(),
                    .file = line.at("file").get<std::string>(),
                    .attempt = line.at("attempt").get<std::int64_t>(),
                    .step = line.at("step").get<std::int64_t>(),
                    .time = line.at("time").get<double>(),
                    .columns = line.at("columns").get<std::int64_t>(),
                    .captions = texts_of(line.at("captions"))};
    const bool is_valid = picture.columns > 0 && picture.file.find('/') == std::string::npos;
    return is_valid ? std::optional(std::move(picture)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::optional<Histograms> parse_histograms(const Json& line) {
  try {
    Histograms histograms{.attempt = line.at("attempt").get<std::int64_t>(),
                          .step = line.at("step").get<std::int64_t>(),
                          .time = line.at("time").get<double>(),
                          .all = {}};
    for (const auto& item : line.at("histograms").items()) {
      const Json& values = item.value();
      histograms.all.push_back({.name = item.key(),
                                .min = values.at("min").get<double>(),
                                .max = values.at("max").get<double>(),
                                .sum = values.at("sum").get<double>(),
                                .sum_squares = values.at("sum_squares").get<double>(),
                                .counts = values.at("counts").get<std::vector<double>>()});
    }
    return histograms;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace scaletrain::track
