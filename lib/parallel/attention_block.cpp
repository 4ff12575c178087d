#include "lib/parallel/attention_block.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/units/widened.h"

namespace scaletrain::parallel {
namespace {

using at::Tensor;

constexpr std::int64_t kQueries = 256;  // queries of a tile
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Some of a block's queries and the keys that they see. Query heads that share a key head are
// stacked: [batch, key heads, query heads per key head x queries, head_dim] fp32.
class Tile {
 public:
  Tile(const Tensor& queries, const KeyBlock& block, const Visible& visible, std::int64_t first,
       std::int64_t count)
      : first_(first),
        count_(count),
        key_heads_(block.keys.size(1)),
        served_(queries.size(1) / key_heads_),
        keys_seen_(visible.causal ? first + count : block.keys.size(2)),
        scale_(1 / std::sqrt(static_cast<double>(queries.size(3)))),
        queries_(units::widened(rows_of(queries)).mul(scale_)),
        keys_(keys_of(block.keys)),
        values_(keys_of(block.values)),
        hidden_(hidden(visible)) {}

  // Slices this tile's queries from [batch, heads, queries, ...] and stacks their heads.
  Tensor rows_of(const Tensor& all) const {
    return all.narrow(2, first_, count_).unflatten(1, {key_heads_, served_}).flatten(2, 3);
  }
  // Inverse of rows_of(): the result has the shape of the slice of queries.
  Tensor back(const Tensor& rows) const {
    return rows.unflatten(2, {served_, count_}).flatten(1, 2);
  }
  Tensor keys_of(const Tensor& all) const { return units::widened(all.narrow(2, 0, keys_seen_)); }

  // Returns [batch, key heads, rows, keys]; minus infinity where a key is masked.
  Tensor scores() const {
    Tensor scores = queries_.matmul(keys_.transpose(-2, -1));
    if (hidden_.defined()) {
      scores.unflatten(2, {served_, count_}).masked_fill_(hidden_, kMinusInfinity);
    }
    return scores;
  }

  double scale() const { return scale_; }
  const Tensor& queries() const { return queries_; }  // multiplied by the scale
  const Tensor& keys() const { return keys_; }
  const Tensor& values() const { return values_; }

 private:
  // Returns a mask that is true for hidden pairs, [batch or 1, 1, 1, queries, keys]; undefined: no
  // mask.
  Tensor hidden(const Visible& visible) const {
    Tensor hidden;
    if (visible.causal) {
      const auto places = [&](std::int64_t begin, std::int64_t end) {
        return at::arange(begin, end, keys_.options().dtype(at::kLong));
      };
      hidden = places(first_, first_ + count_)
                   .unsqueeze(1)
                   .lt(places(0, keys_seen_))
                   .view({1, 1, 1, count_, keys_seen_});
    }
    if (!visible.query_documents.defined()) return hidden;
    const Tensor own = visible.query_documents.narrow(1, first_, count_);
    const Tensor theirs = visible.key_documents.narrow(1, 0, keys_seen_);
    const Tensor others = own.unsqueeze(2).ne(theirs.unsqueeze(1)).unsqueeze(1).unsqueeze(1);
    return hidden.defined() ? hidden.logical_or(others) : others;
  }

  std::int64_t first_, count_, key_heads_, served_, keys_seen_;
  double scale_;
  Tensor queries_, keys_, values_, hidden_;
};

template <typename Body>
void for_each_tile(const Tensor& queries, const KeyBlock& block, const Visible& visible,
                   const Body& body) {
  const std::int64_t all = queries.size(2);
  for (std::int64_t first = 0; first < all; first += kQueries) {
    const std::int64_t count = std::min(kQueries, all - first);
    body(Tile(queries, block, visible, first, count), first, count);
  }
}

}  // namespace

Mixed Mixed::none(const Tensor& queries) {
  const auto options = queries.options().dtype(units::wide_type(queries));
  return {.output = at::zeros(queries.sizes(), options),
          .sums = at::full({queries.size(0), queries.size(1), queries.size(2)}, kMinusInfinity,
                           options)};
}

Mixed Mixed::rows(std::int64_t first, std::int64_t count) const {
  return {.output = output.narrow(2, first, count), .sums = sums.narrow(2, first, count)};
}

MixedGradient MixedGradient::rows(std::int64_t first, std::int64_t count) const {
  return {.output = output.narrow(2, first, count),
          .along = along.narrow(2, first, count),
          .sums = sums.narrow(2, first, count)};
}

void attend(const Tensor& queries, const KeyBlock& block, const Visible& visible,
            const Mixed& mixed) {
  for_each_tile(queries, block, visible,
                [&](const Tile& tile, std::int64_t first, std::int64_t count) {
                  const Mixed there = mixed.rows(first, count);
                  const Tensor before = tile.rows_of(mixed.sums);
                  const Tensor scores = tile.scores();
                  // `before` is finite after the first block, so fully masked rows of this block
                  // cause no NaN.
                  const Tensor sums = at::logaddexp(before, scores.logsumexp(-1));
                  const Tensor weights = scores.sub_(sums.unsqueeze(-1)).exp_();
                  const Tensor added = weights.matmul(tile.values());
                  there.output.mul_(tile.back((before - sums).exp_()).unsqueeze(-1));
                  there.output.add_(tile.back(added));
                  there.sums.copy_(tile.back(sums));
                });
}

void attend_backward(const Tensor& queries, const KeyBlock& block, const Visible& visible,
                     const MixedGradient& gradient, const Tensor& of_queries,
                     const KeyBlock& of_block) {
  for_each_tile(
      queries, block, visible, [&](const Tile& tile, std::int64_t first, std::int64_t count) {
        const Tensor weights = tile.scores().sub_(tile.rows_of(gradient.sums).unsqueeze(-1)).exp_();
        const Tensor of_output = tile.rows_of(gradient.output);
        const auto add_to_keys = [&](const Tensor& sums, const Tensor& added) {
          sums.narrow(2, 0, added.size(2)).add_(added);
        };
        add_to_keys(of_block.values, weights.transpose(-2, -1).matmul(of_output));
        const Tensor of_weights = of_output.matmul(tile.values().transpose(-2, -1));
        const Tensor of_scores =
            of_weights.sub_(tile.rows_of(gradient.along).unsqueeze(-1)).mul_(weights);
        add_to_keys(of_block.keys, of_scores.transpose(-2, -1).matmul(tile.queries()));
        const Tensor added = of_scores.matmul(tile.keys()).mul_(tile.scale());
        of_queries.narrow(2, first, count).add_(tile.back(added));
      });
}

}  // namespace scaletrain::parallel
