#include "lib/report/class_set_predictions.h"

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "lib/core/text/json_text.h"
#include "lib/core/text/table.h"
#include "lib/data/set/classes_file.h"

namespace scaletrain::report {
namespace {

// Returns the names of classes with a share above 0.5 as a JSON list.
std::string names_above_half(std::span<const float> shares, const std::vector<std::string>& names) {
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] > 0.5F) list.push_back(data::class_name(names, static_cast<std::int64_t>(i)));
  }
  return core::json_text(list);
}

std::span<const float> row_of(const at::Tensor& table, std::int64_t row) {
  const std::int64_t columns = table.size(1);
  return {table.const_data_ptr<float>() + row * columns, static_cast<std::size_t>(columns)};
}

}  // namespace

ClassSetPredictions::ClassSetPredictions(std::int64_t num_classes)
    : num_classes_(num_classes), rows_(2 * num_classes) {}

void ClassSetPredictions::add(const data::Batch& batch, const at::Tensor& targets,
                              const at::Tensor& logits) {
  rows_.add(batch, at::cat({targets.to(at::kFloat), logits.to(at::kFloat)}, 1));
}

ClassSetPredictions::All ClassSetPredictions::gather(dist::Group& group) const {
  PlacedRows::All all = rows_.gather(group);
  return {.positions = std::move(all.positions),
          .targets = all.rows.narrow(1, 0, num_classes_).contiguous(),
          .shares = all.rows.narrow(1, num_classes_, num_classes_).sigmoid().contiguous()};
}

std::string class_set_csv(const std::vector<std::string>& keys,
                          const ClassSetPredictions::All& predictions,
                          const std::vector<std::string>& names) {
  const std::int64_t classes = predictions.shares.size(1);
  std::vector<std::string> cells{"key", "labels", "predicted"};
  cells.reserve(cells.size() + static_cast<std::size_t>(classes));
  for (std::int64_t i = 0; i < classes; ++i) {
    cells.push_back(fmt::format("probability_{}", data::class_name(names, i)));
  }
  std::string text = core::csv_line(cells);
  for (std::int64_t row = 0; row < std::ssize(keys); ++row) {
    const std::span<const float> shares = row_of(predictions.shares, row);
    cells = {keys[static_cast<std::size_t>(row)],
             names_above_half(row_of(predictions.targets, row), names),
             names_above_half(shares, names)};
    for (const float share : shares) cells.push_back(fmt::format("{}", share));
    text += core::csv_line(cells);
  }
  return text;
}

}  // namespace scaletrain::report
