#include "lib/checkpoint/host_copies.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

Contents contents_of(const Tensors& model) {
  Contents contents;
  contents.model = model;
  return contents;
}

}  // namespace

TEST_CASE("a copy holds what stood when it was taken, in the layout that it had") {
  const at::Tensor images = at::rand({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor turned = at::rand({3, 2}).t(), part = at::rand({4, 4}).slice(1, 0, 2);
  Contents contents = contents_of({{"images", images}, {"part", part}, {"turned", turned}});
  contents.optimizer = {{"step", at::full({}, 3.0, at::kDouble)}};
  contents.buffers = {{"mean", at::full({2}, 4.0)}};
  contents.means["ema"] = {.tensors = {{"w", at::full({2}, 5.0)}},
                           .buffers = {{"b", at::full({1}, 6.0)}}};
  contents.state.step = 7;
  contents.classes = {"cat"};
  contents.recipe = "{}";
  const std::vector<at::Tensor> before{images.clone(), turned.clone(), part.clone()};
  HostCopies copies;
  copies.take(contents);
  for (const at::Tensor& tensor :
       {images, turned, part, contents.optimizer["step"], contents.buffers["mean"],
        contents.means["ema"].tensors["w"], contents.means["ema"].buffers["b"]}) {
    tensor.zero_();
  }
  contents.state.step = 8;
  const Contents& copied = copies.contents();
  CHECK(at::equal(copied.model.at("images"), before[0]));
  CHECK(copied.model.at("images").is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(at::equal(copied.model.at("turned"), before[1]));
  CHECK(at::equal(copied.model.at("part"), before[2]));
  CHECK((copied.optimizer.at("step").item<double>() == 3));
  CHECK((copied.buffers.at("mean")[0].item<float>() == 4));
  CHECK((copied.means.at("ema").tensors.at("w")[0].item<float>() == 5));
  CHECK((copied.means.at("ema").buffers.at("b")[0].item<float>() == 6));
  CHECK(copied.state.step == 7);
  CHECK((copied.classes == std::vector<std::string>{"cat"}));
  CHECK(copied.recipe == "{}");
}

TEST_CASE("the next copy takes the memory of the one before where that fits") {
  HostCopies copies;
  copies.take(contents_of({{"a", at::zeros({4})}, {"b", at::zeros({4})}, {"c", at::zeros({4})}}));
  const void* const a = copies.contents().model.at("a").const_data_ptr();
  copies.take(contents_of({{"a", at::ones({4})}, {"b", at::ones({5})}}));
  const Contents& copied = copies.contents();
  CHECK(copied.model.size() == 2);
  CHECK(copied.model.at("a").const_data_ptr() == a);
  CHECK(at::equal(copied.model.at("a"), at::ones({4})));
  CHECK(at::equal(copied.model.at("b"), at::ones({5})));
  copies.take(contents_of({{"a", at::ones({4}, at::kDouble)}}));
  CHECK((copies.contents().model.at("a").scalar_type() == at::kDouble));
}
