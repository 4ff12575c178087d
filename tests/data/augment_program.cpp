// What the Python tests ask of transforms and of the orders that belong to them:
//   augment_program apply AUGMENT COUNT FILE    the image after the transforms of a recipe's list
//                                               AUGMENT, as at the positions 0 .. COUNT-1: pixels
//   augment_program policy WIDTH HEIGHT         AutoAugment's pairs, a line "OP PROBABILITY VALUE
//                                               NEGATIVE OP PROBABILITY VALUE NEGATIVE" each
//   augment_program evaluate SIZE RESIZE FILTER SHARD     as an evaluation sees it: pixels
//   augment_program order SAMPLES REPEATS BATCH EPOCH     the samples of an epoch's whole batches
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/data/augment/auto_augment_policy.h"
#include "lib/data/augment/magnitudes.h"
#include "lib/data/augment/transform.h"
#include "lib/data/image/decode.h"
#include "lib/data/loader/image_stream.h"
#include "lib/data/order/repeated_order.h"
#include "lib/data/set/open_dataset.h"
#include "lib/recipe/load.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

namespace {

using Arguments = std::vector<std::string>;

void apply(const Arguments& arguments) {
  const recipe::Recipe parsed = recipe::parse_recipe(
      R"({"model": {"name": "mlp", "num_classes": 10}, "data": {"train": {"shards": "a.tar"}},
          "optimizer": {"name": "sgd", "lr": 0.1}, "epochs": 1})",
      "apply", {"data.train.augment=" + arguments.at(0)});
  const data::Transforms transforms =
      data::make_transforms(parsed.data.train.augment, parsed.data.normalize);
  data::Image image;
  data::Decoder().decode(core::read_file(arguments.at(2), 1 << 26, core::ExitCode::kData), image);
  data::Workspace work;
  for (std::uint64_t position = 0; position < std::stoull(arguments.at(1)); ++position) {
    core::Philox draws(7, core::DrawPurpose::kAugment, 0, position);
    work.image = image;
    transforms.apply(work, draws);
    std::fwrite(work.image.pixels.data(), 1, work.image.pixels.size(), stdout);
  }
}

std::string name_of(data::ImageOp op) {
  for (const char* name : {"shear_x", "rotate", "color", "contrast", "sharpness", "posterize",
                           "solarize", "auto_contrast", "equalize", "invert"}) {
    if (data::image_op_named(name) == op) return name;
  }
  throw std::invalid_argument("an operation that the policy did not have");
}

void print_policy(std::int64_t width, std::int64_t height) {
  for (const auto& pair : data::kImageNetPolicy) {
    std::vector<std::string> words;
    for (const data::PolicyStep& step : pair) {
      const auto value = [&](bool negative) {
        return data::value_at({}, step.op, step.level / data::kMostPolicyLevel, negative, width,
                              height);
      };
      words.push_back(fmt::format("{} {} {} {}", name_of(step.op), step.probability, value(false),
                                  value(true)));
    }
    fmt::print("{}\n", fmt::join(words, " "));
  }
}

void evaluate(const Arguments& arguments) {
  recipe::Source source;
  source.shards = {arguments.at(3)};
  const auto dataset = data::open_dataset(source, "");
  data::LoaderOptions options;
  options.image_size = std::stoll(arguments.at(0));
  options.num_classes = 1000;
  options.eval_resize = std::stoll(arguments.at(1));
  options.eval_filter = arguments.at(2);
  const auto pool = core::make_host_pool();
  const auto loader = data::eval_images(dataset, options, {.per_device = 4}, *pool);
  while (const auto batch = loader->next()) {
    std::fwrite(data::pixels_of(*batch).data(), 1, data::pixels_of(*batch).size(), stdout);
  }
}

void print_order(const Arguments& arguments) {
  const std::int64_t samples = std::stoll(arguments.at(0)), repeats = std::stoll(arguments.at(1));
  const std::int64_t batch = std::stoll(arguments.at(2)), epoch = std::stoll(arguments.at(3));
  const data::RepeatedOrder order(
      std::make_shared<data::IndexedOrder>(7, std::vector<std::int64_t>{samples}, 0), repeats,
      batch);
  for (std::int64_t p = 0; p < samples / batch * batch; ++p) {
    fmt::print("{}\n", order.at(epoch, p).sample);
  }
}

}  // namespace

int main(int count, char** values) {
  try {
    Arguments arguments(values + 1, values + count);
    const std::string command = arguments.at(0);
    arguments.erase(arguments.begin());
    if (command == "apply") apply(arguments);
    if (command == "policy") print_policy(std::stoll(arguments.at(0)), std::stoll(arguments.at(1)));
    if (command == "evaluate") evaluate(arguments);
    if (command == "order") print_order(arguments);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
