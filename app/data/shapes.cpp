#include "app/data/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "lib/core/philox.h"

namespace scaletrain::app {
namespace {

struct Colour {
  std::string_view name;
  std::array<int, 3> rgb;
};
constexpr std::array<Colour, 12> kColours{{{"red", {220, 40, 40}},
                                           {"green", {40, 180, 60}},
                                           {"blue", {50, 80, 220}},
                                           {"yellow", {230, 210, 40}},
                                           {"purple", {150, 50, 190}},
                                           {"orange", {240, 140, 30}},
                                           {"cyan", {40, 200, 210}},
                                           {"pink", {240, 130, 180}},
                                           {"brown", {130, 80, 40}},
                                           {"white", {245, 245, 245}},
                                           {"black", {15, 15, 15}},
                                           {"lime", {170, 240, 40}}}};

// True if a point is inside a shape that fills -1..1 in both directions.
bool in_circle(double x, double y) { return x * x + y * y < 1; }
bool in_square(double x, double y) { return std::max(std::abs(x), std::abs(y)) < 0.8; }
bool in_triangle(double x, double y) { return y > -0.7 && std::abs(x) < (1 - y) * 0.55; }
bool in_ring(double x, double y) { return in_circle(x, y) && x * x + y * y > 0.4; }
bool in_cross(double x, double y) {
  return std::min(std::abs(x), std::abs(y)) < 0.28 && std::max(std::abs(x), std::abs(y)) < 1;
}
bool in_bar(double x, double y) { return std::abs(x) < 1 && std::abs(y) < 0.3; }

struct Shape {
  std::string_view name;
  bool (*holds)(double, double);
};
constexpr std::array<Shape, 6> kShapes{{{"circle", in_circle},
                                        {"square", in_square},
                                        {"triangle", in_triangle},
                                        {"ring", in_ring},
                                        {"cross", in_cross},
                                        {"bar", in_bar}}};
constexpr auto kKinds = static_cast<std::int64_t>(kColours.size() * kShapes.size());

// Shapes change fastest, then colours, then how many there are.
const Shape& shape_of(std::int64_t label) {
  return kShapes[static_cast<std::size_t>(label) % kShapes.size()];
}
const Colour& colour_of(std::int64_t label) {
  return kColours[static_cast<std::size_t>(label) / kShapes.size() % kColours.size()];
}

std::uint8_t clamp_byte(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

void draw_background(core::Philox& random, data::Image& image) {
  std::array<int, 3> base{};
  for (int& value : base) value = static_cast<int>(60 + random.below(120));
  const std::uint32_t slope = random.next_u32() % 60;
  std::uint32_t noise = 0;
  std::size_t at = 0;
  for (std::int64_t y = 0; y < image.height; ++y) {
    const int shade = static_cast<int>(slope * y / image.height);
    for (std::int64_t x = 0; x < image.width; ++x, at += 3) {
      if (x % 4 == 0) noise = random.next_u32();
      const int grain = static_cast<int>(noise & 31U) - 16;
      noise >>= 8;
      for (std::size_t c = 0; c < 3; ++c)
        image.pixels[at + c] = clamp_byte(base[c] + shade + grain);
    }
  }
}

void draw_one(core::Philox& random, const Shape& shape, const std::array<int, 3>& rgb,
              data::Image& image) {
  const auto side = static_cast<double>(std::min(image.width, image.height));
  const double radius = side * (0.15 + 0.2 * random.uniform());
  const double middle_x =
      radius + random.uniform() * (static_cast<double>(image.width) - 2 * radius);
  const double middle_y =
      radius + random.uniform() * (static_cast<double>(image.height) - 2 * radius);
  const double turn = 2 * std::numbers::pi * random.uniform();
  const double cosine = std::cos(turn) / radius, sine = std::sin(turn) / radius;
  const auto first = [](double at) {
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(at));
  };
  const double reach = 1.5 * radius;
  const std::int64_t bottom =
      std::min(image.height, static_cast<std::int64_t>(middle_y + reach) + 1);
  const std::int64_t right = std::min(image.width, static_cast<std::int64_t>(middle_x + reach) + 1);
  for (std::int64_t y = first(middle_y - reach); y < bottom; ++y) {
    std::uint8_t* const row = image.row(y);
    for (std::int64_t x = first(middle_x - reach); x < right; ++x) {
      const double dx = static_cast<double>(x) - middle_x, dy = static_cast<double>(y) - middle_y;
      if (!shape.holds(dx * cosine + dy * sine, dy * cosine - dx * sine)) continue;
      for (std::size_t c = 0; c < 3; ++c) {
        row[static_cast<std::size_t>(x) * 3 + c] = static_cast<std::uint8_t>(rgb[c]);
      }
    }
  }
}

}  // namespace

std::vector<std::string> shape_classes(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t label = 0; label < count; ++label) {
    const std::int64_t copies = label / kKinds + 1;
    names.push_back(fmt::format("{}-{}{}", colour_of(label).name, shape_of(label).name,
                                copies > 1 ? fmt::format("-x{}", copies) : ""));
  }
  return names;
}

std::int64_t distinct_label(std::int64_t i) {
  constexpr auto kStride = static_cast<std::int64_t>(kShapes.size()) + 1;
  return i / kKinds * kKinds + i * kStride % kKinds;
}

void draw_shapes(std::uint64_t seed, std::int64_t number, std::int64_t label, data::Image& image) {
  core::Philox random(seed, core::DrawPurpose::kTools, static_cast<std::uint64_t>(label),
                      static_cast<std::uint64_t>(number));
  draw_background(random, image);
  for (std::int64_t copy = 0; copy <= label / kKinds; ++copy) {
    draw_one(random, shape_of(label), colour_of(label).rgb, image);
  }
}

}  // namespace scaletrain::app
