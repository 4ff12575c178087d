#include "lib/report/placed_rows.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>

#include <set>

namespace scaletrain::report {
namespace {

// Leading columns of a row: its position, up to 2^48, as two fp32 numbers.
enum PlaceColumn : std::int64_t { kHigh, kLow, kPlaceColumns };
constexpr std::int64_t kPart = 1 << 24;

}  // namespace

std::vector<std::int64_t> positions_of(const data::Batch& batch) {
  std::set<std::int64_t> bad;
  for (const data::BadSample& sample : batch.skipped) bad.insert(sample.position);
  std::vector<std::int64_t> positions;
  positions.reserve(static_cast<std::size_t>(batch.count));
  for (std::int64_t at = batch.position; std::ssize(positions) < batch.count; ++at) {
    if (!bad.contains(at)) positions.push_back(at);
  }
  return positions;
}

PlacedRows::PlacedRows(std::int64_t columns) : columns_(columns), rows_(kPlaceColumns + columns) {}

void PlacedRows::add(const data::Batch& batch, const at::Tensor& rows) {
  std::vector<std::int64_t> positions = positions_of(batch);
  const at::Tensor places =
      at::from_blob(positions.data(), {std::ssize(positions)}, at::kLong).to(rows.device());
  const at::Tensor head = at::stack({places.floor_divide(kPart), places.remainder(kPart)}, 1);
  rows_.add(at::cat({head.to(at::kFloat), rows.to(at::kFloat)}, 1), batch.position);
}

PlacedRows::All PlacedRows::gather(dist::Group& group) const {
  const at::Tensor gathered = rows_.gather(group);
  All all;
  all.rows = gathered.narrow(1, kPlaceColumns, columns_).contiguous();
  const at::Tensor head = gathered.narrow(1, 0, kPlaceColumns).to(at::kLong).contiguous();
  const auto* const numbers = head.const_data_ptr<std::int64_t>();
  all.positions.resize(static_cast<std::size_t>(gathered.size(0)));
  for (std::size_t i = 0; i < all.positions.size(); ++i) {
    const std::int64_t* const row = numbers + i * kPlaceColumns;
    all.positions[i] = row[kHigh] * kPart + row[kLow];
  }
  return all;
}

}  // namespace scaletrain::report
