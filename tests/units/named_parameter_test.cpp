#include "lib/units/named_parameter.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace scaletrain::units {

TEST_CASE("a shard in one dimension has the dimensions of the full parameter") {
  const at::Tensor full = at::zeros({4, 3});
  CHECK(NamedParameter{.name = "weight", .tensor = full}.dimensions() == 2);
  CHECK(NamedParameter{.name = "weight",
                       .tensor = full.flatten().narrow(0, 6, 5),
                       .shard = range_of(full_shard(full), 6, 11)}
            .dimensions() == 2);
  CHECK(NamedParameter{.name = "bias", .tensor = at::zeros({4})}.dimensions() == 1);
}

TEST_CASE("state is sharded as its parameter is, and owned by the rank that counts that") {
  const at::Tensor full = at::zeros({4, 3}), state = at::ones({5});
  const NamedParameter part{.name = "weight",
                            .tensor = full.flatten().narrow(0, 6, 5),
                            .shard = range_of(full_shard(full), 6, 11),
                            .counts = false};
  const Shard shard = part.state(state);
  CHECK(shard.tensor.is_same(state));
  CHECK(shard.shape == std::vector<std::int64_t>{4, 3});
  CHECK((shard.slices == std::vector<format::Piece>{format::range_piece({4, 3}, 6, 11)}));
  CHECK_FALSE(shard.owned);
  const Shard own = NamedParameter{.name = "bias", .tensor = at::full({4}, 2.0)}.state();
  CHECK(own.is_full());
  CHECK(own.owned);
  CHECK((at::equal(own.tensor, at::full({4}, 2.0))));
}

}  // namespace scaletrain::units
