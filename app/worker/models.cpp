#include "app/worker/models.h"

#include <utility>

namespace scaletrain::app {

Models models_of(const Additions& additions) {
  std::vector<recipe::Row> rows;
  rows.reserve(additions.models.size());
  for (const OwnModel& own : additions.models) rows.push_back(own.row);
  Models models{.catalog = recipe::catalog_with(rows), .factories = nn::built_in_factories()};
  for (const OwnModel& own : additions.models) models.factories.add(own.row.name, own.make);
  return models;
}

}  // namespace scaletrain::app
