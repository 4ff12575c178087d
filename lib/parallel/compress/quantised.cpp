// Quantized gradients: ranks all-gather their codes, and each rank sums the decoded values in the
// order of the ranks, so that all ranks get the same bits.
//
// Each matrix is divided into blocks of its own, so that the same gradients get the same codes
// whatever else is in the bucket; vectors travel uncompressed in the same message. Error feedback:
// a rank keeps its quantization error and adds a share of it to its next gradients: Seide, Fu,
// Droppo, Li and Yu, "1-bit stochastic gradient descent and its application to data-parallel
// distributed training of speech DNNs", Interspeech 2014, equations 2 and 3.
//   onebit  one bit for each value, and for each block the mean of its values >= 0 and the mean of
//           its negative values, which the bits stand for (section 3.1). Each step adds only a
//           share of the kept error: the error is as large as the gradients, so all of it would
//           dominate the next steps' messages with gradients of outdated weights
//           (docs/lab/parallelism.md shows the cost)
//   int8    a scale for each block, its largest absolute value / 127, and rounded multiples of it
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "lib/parallel/compress/bucket.h"
#include "lib/parallel/compress/one_bit_loops.h"
#include "lib/parallel/compress/stepped.h"

namespace scaletrain::parallel {
namespace {

at::Tensor bytes_of(const at::Tensor& tensor) {
  return tensor.contiguous().view({-1}).view(at::kByte);
}

at::Tensor floats_of(const at::Tensor& bytes) { return bytes.view(at::kFloat); }

// Encodes blocks of values, [blocks, kBlock], as bytes and decodes them. `padding`, [blocks]:
// number of zeros at the end of each block.
struct OneBit {
  static constexpr std::int64_t kBlock = kOneBitBlock, kBits = 8;
  static constexpr double kErrorSent = 1.0 / 32;  // share of the kept error that a step sends

  static std::int64_t bytes(std::int64_t blocks) {
    return blocks * static_cast<std::int64_t>(2 * sizeof(float) + kBlock / kBits);
  }

  // Returns the values of the bits: 1, 2, 4, ... 128.
  static at::Tensor places(at::Device device) {
    std::array<std::uint8_t, kBits> values{};
    for (std::size_t bit = 0; bit < values.size(); ++bit) {
      values[bit] = static_cast<std::uint8_t>(1U << bit);
    }
    return at::tensor(values, at::kByte).to(device);
  }

  // Views of a message in host memory: all blocks' means of values >= 0, all means of negative
  // values, then the codes.
  struct Parts {
    std::span<float> high_means, low_means;
    std::span<std::uint8_t> codes;

    Parts(const at::Tensor& message, std::int64_t blocks) {
      const auto count = static_cast<std::size_t>(blocks);
      auto* const means = static_cast<float*>(message.mutable_data_ptr());
      high_means = {means, count};
      low_means = {means + count, count};
      codes = {message.mutable_data_ptr<std::uint8_t>() + 2 * sizeof(float) * count,
               count * kBlock / kBits};
    }
  };

  static std::span<float> numbers_of(const at::Tensor& tensor) {
    return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
  }

  // Multiplies with masks instead of selecting, so that values that are not finite stay so.
  static at::Tensor encode(const at::Tensor& blocks, const at::Tensor& padding) {
    if (blocks.is_cpu()) {
      const at::Tensor message = at::empty({bytes(blocks.size(0))}, at::kByte);
      const Parts parts(message, blocks.size(0));
      encode_one_bit(numbers_of(blocks), numbers_of(padding), parts.high_means, parts.low_means,
                     parts.codes);
      return message;
    }
    const at::Tensor is_high = blocks.ge(0);
    const at::Tensor high = is_high.to(at::kFloat);
    const at::Tensor highs = high.sum(1) - padding;
    const at::Tensor high_mean = (blocks * high).sum(1) / highs.clamp_min(1);
    const at::Tensor low_mean = (blocks * (1 - high)).sum(1) / (kBlock - high.sum(1)).clamp_min(1);
    const at::Tensor bits = is_high.view({-1, kBits}).to(at::kByte).mul_(places(blocks.device()));
    return at::cat({bytes_of(at::stack({high_mean, low_mean})), bits.sum(1, false, at::kByte)});
  }

  static at::Tensor decode(const at::Tensor& message, std::int64_t blocks) {
    if (message.is_cpu()) {
      const Parts parts(message, blocks);
      at::Tensor values = at::empty({blocks, kBlock});
      decode_one_bit(parts.high_means, parts.low_means, parts.codes, numbers_of(values));
      return values;
    }
    const auto means_bytes = static_cast<std::int64_t>(2 * sizeof(float)) * blocks;
    const at::Tensor means = floats_of(message.narrow(0, 0, means_bytes)).view({2, blocks, 1});
    const at::Tensor codes = message.narrow(0, means_bytes, message.numel() - means_bytes);
    const at::Tensor is_high =
        codes.unsqueeze(1).bitwise_and(places(message.device())).ne(0).view({blocks, kBlock});
    return at::where(is_high, means[0], means[1]);
  }
};

struct Int8 {
  static constexpr std::int64_t kBlock = 256;
  static constexpr double kErrorSent = 1;
  static constexpr double kLargest = 127;

  static std::int64_t bytes(std::int64_t blocks) {
    return blocks * static_cast<std::int64_t>(sizeof(float) + kBlock);
  }

  static at::Tensor encode(const at::Tensor& blocks, const at::Tensor& /*padding*/) {
    const at::Tensor scales = blocks.abs().amax(1) / kLargest;
    const at::Tensor divisors = scales.masked_fill(scales.eq(0), 1).unsqueeze(1);
    const at::Tensor codes = (blocks / divisors).round_().clamp_(-kLargest, kLargest);
    return at::cat({bytes_of(scales), bytes_of(codes.to(at::kChar))});
  }

  static at::Tensor decode(const at::Tensor& message, std::int64_t blocks) {
    const auto scales_bytes = static_cast<std::int64_t>(sizeof(float)) * blocks;
    const at::Tensor scales = floats_of(message.narrow(0, 0, scales_bytes)).view({blocks, 1});
    const at::Tensor codes =
        message.narrow(0, scales_bytes, message.numel() - scales_bytes).view(at::kChar);
    return codes.view({blocks, kBlock}).to(at::kFloat) * scales;
  }
};

// Elements of a matrix, rounded up to whole blocks.
template <class Code>
std::int64_t padded(const Slot& matrix) {
  return (matrix.elements + Code::kBlock - 1) / Code::kBlock * Code::kBlock;
}

template <class Code>
class Quantised : public BucketExchange {
 public:
  Quantised(Wire& wire, std::vector<Slot> slots, at::Device device) : wire_(wire) {
    std::vector<float> padding;
    for (Slot& slot : slots) {
      if (slot.is_matrix()) {
        padding.resize(padding.size() +
                       static_cast<std::size_t>(padded<Code>(slot) / Code::kBlock));
        padding.back() = static_cast<float>(padded<Code>(slot) - slot.elements);
      } else {
        vector_elements_ += slot.elements;
      }
      (slot.is_matrix() ? matrices_ : vectors_).push_back(std::move(slot));
    }
    blocks_ = std::ssize(padding);
    padding_ = at::tensor(padding).to(device);
    error_ = Stepped::zeros({blocks_ * Code::kBlock}, device);
  }

  void begin(const at::Tensor& flat) override {
    flat_ = flat;
    std::vector<at::Tensor> parts;
    for (const Slot& slot : vectors_) parts.push_back(bytes_of(gradient(slot).to(at::kFloat)));
    if (blocks_ > 0) {
      const at::Tensor& rest = error_.next;
      std::int64_t begin = 0;
      for (const Slot& slot : matrices_) {
        rest.narrow(0, std::exchange(begin, begin + padded<Code>(slot)), slot.elements)
            .copy_(gradient(slot));
      }
      const at::Tensor sent = at::add(rest, error_.now, Code::kErrorSent);
      rest.add_(error_.now);
      parts.push_back(Code::encode(sent.view({blocks_, Code::kBlock}), padding_));
    }
    const at::Tensor own = at::cat(parts);
    gathered_ = at::empty({wire_.ranks(), own.numel()}, own.options());
    work_ = wire_.all_gather(gathered_, own);
    own_ = own;
  }

  void finish() override {
    work_->wait();
    const auto vector_bytes = vector_elements_ * static_cast<std::int64_t>(sizeof(float));
    at::Tensor vectors, matrices;
    const auto add = [](at::Tensor& sum, const at::Tensor& value) {
      sum = sum.defined() ? sum.add_(value) : value.clone();
    };
    for (int rank = 0; rank < wire_.ranks(); ++rank) {
      const at::Tensor message = gathered_[rank];
      add(vectors, floats_of(message.narrow(0, 0, vector_bytes)));
      if (blocks_ == 0) continue;
      const at::Tensor decoded =
          Code::decode(message.narrow(0, vector_bytes, Code::bytes(blocks_)), blocks_).view({-1});
      if (rank == wire_.rank()) keep_rest(decoded);
      add(matrices, decoded);
    }
    put(vectors_, vectors, [](const Slot& slot) { return slot.elements; });
    if (blocks_ > 0) put(matrices_, matrices, padded<Code>);
    gathered_.reset();
    own_.reset();
  }

  void end_step(const at::Tensor& found_inf) override {
    if (blocks_ > 0) error_.end_step(found_inf);
  }

  units::Shards state() override {
    units::Shards result;
    std::int64_t begin = 0;
    for (const Slot& slot : matrices_) {
      const std::int64_t first = std::exchange(begin, begin + padded<Code>(slot));
      result.emplace(
          "error/" + slot.name,
          slot.residual(
              error_.now.narrow(0, first, slot.elements).view({slot.rows, slot.columns()})));
    }
    return result;
  }

 private:
  at::Tensor gradient(const Slot& slot) const { return flat_.narrow(0, slot.begin, slot.elements); }
  // Subtracts what was sent from the error; padding after a matrix stays zero.
  void keep_rest(const at::Tensor& sent) const {
    error_.next.sub_(sent);
    std::int64_t end = 0;
    for (const Slot& slot : matrices_) {
      end += padded<Code>(slot);
      const std::int64_t zeros = padded<Code>(slot) - slot.elements;
      if (zeros > 0) error_.next.narrow(0, end - zeros, zeros).zero_();
    }
  }
  // Writes the mean to the slots' gradients; `stride` of a slot: its elements in `sum`.
  template <class Stride>
  void put(const std::vector<Slot>& slots, const at::Tensor& sum, const Stride& stride) const {
    sum.div_(wire_.ranks());
    std::int64_t begin = 0;
    for (const Slot& slot : slots) {
      gradient(slot).copy_(
          sum.narrow(0, std::exchange(begin, begin + stride(slot)), slot.elements));
    }
  }

  Wire& wire_;
  std::vector<Slot> vectors_, matrices_;
  std::int64_t vector_elements_ = 0, blocks_ = 0;
  at::Tensor padding_;  // [blocks]
  Stepped error_;
  at::Tensor flat_, own_, gathered_;
  Wire::Work work_;
};

template <class Code>
BucketBytes quantised_bytes(const std::vector<Slot>& slots) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));
  BucketBytes bytes{.gathers = 1};
  for (const Slot& slot : slots) {
    bytes.gathered +=
        slot.is_matrix() ? Code::bytes(padded<Code>(slot) / Code::kBlock) : kBytes * slot.elements;
    if (slot.is_matrix()) bytes.unsent += 2 * kBytes * slot.elements;
  }
  return bytes;
}

}  // namespace

BucketBytes one_bit_bytes(const std::vector<Slot>& slots) { return quantised_bytes<OneBit>(slots); }

BucketBytes int8_bytes(const std::vector<Slot>& slots) { return quantised_bytes<Int8>(slots); }

std::unique_ptr<BucketExchange> make_one_bit(Wire& wire, std::vector<Slot> slots,
                                             at::Device device) {
  return std::make_unique<Quantised<OneBit>>(wire, std::move(slots), device);
}

std::unique_ptr<BucketExchange> make_int8(Wire& wire, std::vector<Slot> slots, at::Device device) {
  return std::make_unique<Quantised<Int8>>(wire, std::move(slots), device);
}

}  // namespace scaletrain::parallel
