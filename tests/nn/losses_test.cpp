#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <stdexcept>

#include "lib/nn/loss.h"
#include "lib/recipe/catalog/lists.h"

namespace scaletrain::nn {

TEST_CASE("every row of losses.def makes a loss") {
  for (const char* name : {
#define SCALETRAIN_LOSS(name, ...) #name,
#include "lib/recipe/catalog/losses.def"
       }) {
    recipe::Loss loss;
    choose(loss, *recipe::losses().find(name));
    CHECK(make_loss(loss, at::kCPU) != nullptr);
  }
}

TEST_CASE("what evaluation reports is without label smoothing and class weights, of every loss") {
  const at::Tensor logits = at::randn({4, 3}), targets = at::arange(4).remainder(3);
  for (const char* name : {
#define SCALETRAIN_LOSS(name, ...) #name,
#include "lib/recipe/catalog/losses.def"
       }) {
    recipe::Loss plain;
    choose(plain, *recipe::losses().find(name));
    recipe::Loss smoothed = plain, weighted = plain;
    smoothed.label_smoothing = 0.1;
    weighted.class_weights = {1, 2, 3};
    const at::Tensor expected = make_loss(plain, at::kCPU)->sum(logits, targets);
    for (const recipe::Loss& loss : {smoothed, weighted}) {
      CHECK(at::equal(make_plain_loss(loss, at::kCPU)->sum(logits, targets), expected));
      CHECK(!at::equal(make_loss(loss, at::kCPU)->sum(logits, targets), expected));
    }
  }
}

TEST_CASE("a loss that no row names is a mistake of the programmer") {
  recipe::Loss loss;
  loss.name = "hinge";
  CHECK_THROWS_WITH_AS(make_loss(loss, at::kCPU), "no loss is called \"hinge\"", std::logic_error);
}

}  // namespace scaletrain::nn
