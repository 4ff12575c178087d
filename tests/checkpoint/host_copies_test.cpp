#include "lib/checkpoint/host_copies.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/checkpoint/contents_support.h"

using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

FullContents contents_of(const Tensors& model) {
  FullContents contents;
  contents.model = model;
  contents.stands = true;
  return contents;
}

}  // namespace

TEST_CASE("a copy holds what stood when it was taken, in the layout that it had") {
  const at::Tensor images = at::rand({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor turned = at::rand({3, 2}).t(), part = at::rand({4, 4}).slice(1, 0, 2);
  FullContents contents = contents_of({{"images", images}, {"part", part}, {"turned", turned}});
  contents.optimizer = {{"step", at::full({}, 3.0, at::kDouble)}};
  contents.buffers = {{"mean", at::full({2}, 4.0)}};
  contents.means["ema"] = {.tensors = {{"w", at::full({2}, 5.0)}},
                           .buffers = {{"b", at::full({1}, 6.0)}}};
  contents.state.step = 7;
  contents.classes = {"cat"};
  contents.recipe = "{}";
  const std::vector<at::Tensor> before{images.clone(), turned.clone(), part.clone()};
  HostCopies copies;
  contents.ranks = {{"error", at::full({2}, 7.0)}};
  copies.begin(contents);
  contents.buffers["mean"].zero_();
  contents.ranks["error"].zero_();
  copies.finish();
  for (const at::Tensor& tensor :
       {images, turned, part, contents.optimizer["step"], contents.means["ema"].tensors["w"],
        contents.means["ema"].buffers["b"]}) {
    tensor.zero_();
  }
  contents.state.step = 8;
  const FullContents copied(copies.contents());
  CHECK(at::equal(copied.model.at("images"), before[0]));
  CHECK(copied.model.at("images").is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(at::equal(copied.model.at("turned"), before[1]));
  CHECK(at::equal(copied.model.at("part"), before[2]));
  CHECK((copied.optimizer.at("step").item<double>() == 3));
  CHECK((copied.buffers.at("mean")[0].item<float>() == 4));
  CHECK((copied.ranks.at("error")[0].item<float>() == 7));
  CHECK((copied.means.at("ema").tensors.at("w")[0].item<float>() == 5));
  CHECK((copied.means.at("ema").buffers.at("b")[0].item<float>() == 6));
  CHECK(copied.state.step == 7);
  CHECK((copied.classes == std::vector<std::string>{"cat"}));
  CHECK(copied.recipe == "{}");
}

TEST_CASE("two threads copy what is left, each part once") {
  HostCopies copies;
  const at::Tensor whole = at::empty({9 << 20}), small = at::empty({5});  // nine runs, and one
  const at::Tensor one = at::empty({1 << 20}), error = at::empty({7});
  for (int round = 0; round < 200; ++round) {
    const at::Tensor& weight = round < 4 ? whole : one;
    weight.fill_(round);
    small.fill_(round);
    FullContents contents = contents_of({{"weight", weight}});
    contents.optimizer = {{"small", small}};
    contents.ranks = {{"error", error.fill_(round)}};
    copies.begin(contents);
    error.fill_(-1);
    bool is_there = false;
    std::atomic<bool> is_begun = false;
    std::thread writer([&] {
      is_begun = true;
      const FullContents copied(copies.contents());
      is_there = copied.model.at("weight").eq(round).all().item<bool>() &&
                 copied.optimizer.at("small").eq(round).all().item<bool>() &&
                 copied.ranks.at("error").eq(round).all().item<bool>();
    });
    if (round % 2 == 1) {  // it is at the first run then, which takes longer
      while (!is_begun) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    copies.finish();
    weight.narrow(0, weight.numel() - 9, 9).fill_(-1);
    small.fill_(-1);
    writer.join();
    REQUIRE(is_there);
  }
}

TEST_CASE("what is copied is kept until it is") {
  const at::Tensor weight = at::ones({5});
  HostCopies copies;
  copies.begin(contents_of({{"a", weight}}));
  CHECK(weight.use_count() == 2);
  copies.finish();
  CHECK(weight.use_count() == 1);
}

TEST_CASE("reading host copies copies tensors that were not copied yet") {
  HostCopies copies;
  copies.begin(contents_of({{"a", at::full({5}, 1.0)}}));
  CHECK(at::equal(FullContents(copies.contents()).model.at("a"), at::full({5}, 1.0)));
  const at::Tensor weight = at::full({5}, 2.0);
  copies.begin(contents_of({{"a", weight}}));
  copies.finish();
  weight.zero_();
  copies.finish();  // there is nothing left
  CHECK(at::equal(FullContents(copies.contents()).model.at("a"), at::full({5}, 2.0)));
}

TEST_CASE("what does not stand is copied at once") {
  const at::Tensor weight = at::full({5}, 2.0);
  FullContents contents = contents_of({{"a", weight}});
  contents.stands = false;
  HostCopies copies;
  copies.begin(contents);
  weight.zero_();
  CHECK(at::equal(FullContents(copies.contents()).model.at("a"), at::full({5}, 2.0)));
}

TEST_CASE("the next copy takes the memory of the one before where all of it fits") {
  HostCopies copies;
  copies.begin(contents_of({{"a", at::zeros({4})}, {"b", at::zeros({5})}}));
  const void* const a = FullContents(copies.contents()).model.at("a").const_data_ptr();
  copies.begin(contents_of({{"a", at::ones({4})}, {"b", at::ones({5})}}));
  CHECK(FullContents(copies.contents()).model.at("a").const_data_ptr() == a);
  for (const Tensors& other :
       {Tensors{{"a", at::ones({4})}}, Tensors{{"a", at::ones({4})}, {"c", at::ones({5})}},
        Tensors{{"a", at::ones({4}, at::kDouble)}}, Tensors{{"a", at::ones({2, 2})}},
        Tensors{{"a", at::ones({2, 2}).t()}}, Tensors{}}) {
    copies.begin(contents_of(other));
    const FullContents copied(copies.contents());
    REQUIRE(copied.model.size() == other.size());
    for (const auto& [name, tensor] : other) {
      CHECK((copied.model.at(name).scalar_type() == tensor.scalar_type()));
      CHECK((copied.model.at(name).strides() == tensor.strides()));
      CHECK(at::equal(copied.model.at(name), tensor));
    }
  }
}

TEST_CASE("copies lie one behind the other as in their file, from a page on") {
  const Tensors tensors{{"a", at::ones({3}, at::kByte)},
                        {"b", at::ones({})},
                        {"c", at::ones({5}, at::kDouble)},
                        {"d", at::ones({0, 7})},
                        {"long", at::ones({5000}, at::kByte)}};
  HostCopies copies;
  copies.begin(contents_of(tensors));
  const Tensors copied = FullContents(copies.contents()).model;
  const auto begin = reinterpret_cast<std::uintptr_t>(copied.at("c").const_data_ptr());
  CHECK(begin % 4096 == 0);
  CHECK((reinterpret_cast<std::uintptr_t>(copied.at("b").const_data_ptr()) == begin + 40));
  CHECK((reinterpret_cast<std::uintptr_t>(copied.at("a").const_data_ptr()) == begin + 44));
}
