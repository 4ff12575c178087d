// AutoAugment's policy for ImageNet: 25 pairs of operations (Cubuk et al., AutoAugment, 2018, table
// 9), as torchvision has them.
#pragma once

#include <array>

#include "lib/data/augment/ops/image_op.h"

namespace scaletrain::data {

inline constexpr double kMostPolicyLevel = 9;

struct PolicyStep {
  ImageOp op{};
  double probability = 0;
  int level = 0;  // 0..9
};

inline constexpr auto kImageNetPolicy = [] {
  using enum ImageOp;
  return std::array<std::array<PolicyStep, 2>, 25>{{
      {{{kPosterize, 0.4, 8}, {kRotate, 0.6, 9}}}, {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6}}},
      {{{kEqualize, 0.8}, {kEqualize, 0.6}}},      {{{kPosterize, 0.6, 7}, {kPosterize, 0.6, 6}}},
      {{{kEqualize, 0.4}, {kSolarize, 0.2, 4}}},   {{{kEqualize, 0.4}, {kRotate, 0.8, 8}}},
      {{{kSolarize, 0.6, 3}, {kEqualize, 0.6}}},   {{{kPosterize, 0.8, 5}, {kEqualize, 1.0}}},
      {{{kRotate, 0.2, 3}, {kSolarize, 0.6, 8}}},  {{{kEqualize, 0.6}, {kPosterize, 0.4, 6}}},
      {{{kRotate, 0.8, 8}, {kColor, 0.4, 0}}},     {{{kRotate, 0.4, 9}, {kEqualize, 0.6}}},
      {{{kEqualize, 0.0}, {kEqualize, 0.8}}},      {{{kInvert, 0.6}, {kEqualize, 1.0}}},
      {{{kColor, 0.6, 4}, {kContrast, 1.0, 8}}},   {{{kRotate, 0.8, 8}, {kColor, 1.0, 2}}},
      {{{kColor, 0.8, 8}, {kSolarize, 0.8, 7}}},   {{{kSharpness, 0.4, 7}, {kInvert, 0.6}}},
      {{{kShearX, 0.6, 5}, {kEqualize, 1.0}}},     {{{kColor, 0.4, 0}, {kEqualize, 0.6}}},
      {{{kEqualize, 0.4}, {kSolarize, 0.2, 4}}},   {{{kSolarize, 0.6, 5}, {kAutoContrast, 0.6}}},
      {{{kInvert, 0.6}, {kEqualize, 1.0}}},        {{{kColor, 0.6, 4}, {kContrast, 1.0, 8}}},
      {{{kEqualize, 0.8}, {kEqualize, 0.6}}},
  }};
}();

}  // namespace scaletrain::data
