#include "lib/parallel/compress/bucket.h"

#include <utility>

#include "lib/core/error.h"

namespace scaletrain::parallel {
namespace {

class Plain : public BucketExchange {
 public:
  explicit Plain(Wire& wire) : wire_(wire) {}

  void begin(const at::Tensor& flat) override {
    flat.div_(wire_.ranks());
    work_ = wire_.all_reduce(flat);
  }
  void finish() override { work_->wait(); }

 private:
  Wire& wire_;
  Wire::Work work_;
};

class Cast : public BucketExchange {
 public:
  Cast(Wire& wire, at::ScalarType type) : wire_(wire), type_(type) {}

  void begin(const at::Tensor& flat) override {
    flat_ = flat;
    message_ = flat.to(type_, /*non_blocking=*/false, /*copy=*/true).div_(wire_.ranks());
    work_ = wire_.all_reduce(message_);
  }
  void finish() override {
    work_->wait();
    flat_.copy_(message_);
    message_.reset();
  }

 private:
  Wire& wire_;
  at::ScalarType type_;
  at::Tensor flat_, message_;
  Wire::Work work_;
};

}  // namespace

std::unique_ptr<BucketExchange> make_plain(Wire& wire) { return std::make_unique<Plain>(wire); }

std::unique_ptr<BucketExchange> make_cast(Wire& wire, at::ScalarType type) {
  return std::make_unique<Cast>(wire, type);
}

std::optional<at::ScalarType> cast_type(const recipe::Compress& compress) {
  if (compress.name == "bf16") return at::kBFloat16;
  if (compress.name == "fp16") return at::kHalf;
  return std::nullopt;
}

std::unique_ptr<BucketExchange> make_bucket(const recipe::Compress& compress, std::uint64_t seed,
                                            Wire& wire, std::vector<Slot> slots,
                                            at::Device device) {
  if (const auto type = cast_type(compress)) return make_cast(wire, *type);
  if (compress.name == "int8") return make_int8(wire, std::move(slots), device);
  if (compress.name == "onebit") return make_one_bit(wire, std::move(slots), device);
  if (compress.name == "powersgd") {
    return make_power_sgd(wire, std::move(slots), device, compress.rank, seed);
  }
  throw core::InternalError("compress", compress.name + " is not known");
}

BucketBytes bucket_bytes(const recipe::Compress& compress, const std::vector<Slot>& slots,
                         std::int64_t elements) {
  if (const auto type = cast_type(compress)) {
    return {.reduces = 1, .reduced = static_cast<std::int64_t>(c10::elementSize(*type)) * elements};
  }
  if (compress.name == "int8") return int8_bytes(slots);
  if (compress.name == "onebit") return one_bit_bytes(slots);
  return power_sgd_bytes(slots, compress.rank);
}

}  // namespace scaletrain::parallel
