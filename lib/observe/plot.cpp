#include "lib/observe/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace scaletrain::observe {
namespace {

constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr int kDotsAcross = 2, kDotsDown = 4;  // of a braille character
constexpr int kNarrowest = 16;

std::vector<PlotPoint> finite(const std::vector<PlotPoint>& points) {
  std::vector<PlotPoint> result;
  for (const PlotPoint& point : points) {
    if (std::isfinite(point.x) && std::isfinite(point.y)) result.push_back(point);
  }
  return result;
}

// A grid of dots, drawn as braille characters.
class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns),
        rows_(rows),
        cells_(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows)) {}

  int dots_across() const { return columns_ * kDotsAcross; }
  int dots_down() const { return rows_ * kDotsDown; }

  void set(int x, int y) {
    static constexpr std::uint8_t kBits[kDotsDown][kDotsAcross] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    cells_.at(static_cast<std::size_t>(y / kDotsDown) * static_cast<std::size_t>(columns_) +
              static_cast<std::size_t>(x / kDotsAcross)) |= kBits[y % kDotsDown][x % kDotsAcross];
  }

  void line(int x0, int y0, int x1, int y1) {
    const int count = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= count; ++i) {
      const double part = static_cast<double>(i) / count;
      set(static_cast<int>(std::lround(x0 + part * (x1 - x0))),
          static_cast<int>(std::lround(y0 + part * (y1 - y0))));
    }
  }

  std::string row(int y) const {
    std::string text;
    for (int x = 0; x < columns_; ++x) {
      const unsigned dots =
          cells_[static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_) +
                 static_cast<std::size_t>(x)];
      if (dots == 0) {
        text += ' ';
        continue;
      }
      text += '\xe2';  // U+2800 + dots in UTF-8
      text += static_cast<char>(0xa0U + (dots >> 6U));
      text += static_cast<char>(0x80U + (dots & 0x3fU));
    }
    return text;
  }

 private:
  int columns_, rows_;
  std::vector<std::uint8_t> cells_;
};

// True if the values differ by no more than means of equal values do.
bool is_flat(double low, double high) {
  return high - low <= 1e-12 * std::max(std::abs(low), std::abs(high));
}

// The dot of a value between the ends of an axis.
int place(double value, double low, double high, int dots) {
  if (is_flat(low, high)) return dots / 2;
  return static_cast<int>(std::lround((value - low) / (high - low) * (dots - 1)));
}

void draw_line(Canvas& canvas, const std::vector<PlotPoint>& points, double low, double high) {
  const double first = points.front().x, last = points.back().x;
  int x0 = -1, y0 = 0;
  for (const PlotPoint& point : points) {
    const int x = place(point.x, first, last, canvas.dots_across());
    const int y = canvas.dots_down() - 1 - place(point.y, low, high, canvas.dots_down());
    canvas.line(x0 < 0 ? x : x0, x0 < 0 ? y : y0, x, y);
    x0 = x;
    y0 = y;
  }
}

// "1    step    100" in `width` columns; the name is left out where it has no room.
std::string axis_row(const std::string& first, std::string_view name, const std::string& last,
                     int width) {
  constexpr int kLeastGap = 2;  // blanks on each side of the name
  const int room = std::max(width - static_cast<int>(first.size() + last.size()), 0);
  const bool has_room = room >= static_cast<int>(name.size()) + 2 * kLeastGap;
  return fmt::format("{}{:^{}}{}", first, has_room ? name : "", room, last);
}

}  // namespace

std::vector<PlotPoint> downsample(const std::vector<PlotPoint>& points, int most) {
  const std::size_t count = static_cast<std::size_t>(std::max(most, 1));
  if (points.size() <= count) return points;
  std::vector<PlotPoint> result;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * points.size() / count, end = (i + 1) * points.size() / count;
    PlotPoint mean;
    for (std::size_t k = begin; k < end; ++k) {
      mean.x += points[k].x;
      mean.y += points[k].y;
    }
    const auto length = static_cast<double>(end - begin);
    result.push_back({mean.x / length, mean.y / length});
  }
  return result;
}

std::string sparkline(const std::vector<double>& values, int width) {
  std::vector<PlotPoint> points;
  for (const double value : values) points.push_back({0, value});
  points = downsample(finite(points), width);
  if (points.empty() || width < 1) return "";
  const auto [low, high] =
      std::minmax_element(points.begin(), points.end(),
                          [](const PlotPoint& a, const PlotPoint& b) { return a.y < b.y; });
  const double least = low->y, most = high->y;
  std::string text;
  for (const PlotPoint& point : points) {
    const int block =
        is_flat(least, most) ? 0 : place(point.y, least, most, static_cast<int>(kBlocks.size()));
    text += kBlocks.at(static_cast<std::size_t>(block));
  }
  return text;
}

std::vector<std::string> draw_chart(const std::vector<PlotPoint>& points, int width, int height,
                                    Scale x_axis, const AxisText& y_text, std::string_view x_name) {
  std::vector<PlotPoint> drawn = finite(points);
  if (x_axis == Scale::kLogarithmic) {
    std::erase_if(drawn, [](const PlotPoint& point) { return point.x <= 0; });
  }
  if (drawn.empty() || width < kNarrowest || height < 2) return {};
  const int digits = x_axis == Scale::kLogarithmic ? 3 : 6;
  const std::string first_x = fmt::format("{:.{}g}", drawn.front().x, digits);
  const std::string last_x = fmt::format("{:.{}g}", drawn.back().x, digits);
  if (x_axis == Scale::kLogarithmic) {
    for (PlotPoint& point : drawn) point.x = std::log10(point.x);
  }
  drawn = downsample(drawn, width * kDotsAcross);
  const auto [low, high] = std::minmax_element(
      drawn.begin(), drawn.end(), [](const PlotPoint& a, const PlotPoint& b) { return a.y < b.y; });
  const double least = low->y, most = high->y;
  const auto text_of = [&](double value) {
    return y_text ? y_text(value) : fmt::format("{:.4g}", value);
  };
  const std::string top = text_of(most), bottom = text_of(least);
  const std::size_t labels = std::max(top.size(), bottom.size());
  const int inside = std::max(width - static_cast<int>(labels) - 2, 1);
  Canvas canvas(inside, height);
  draw_line(canvas, drawn, least, most);
  std::vector<std::string> rows;
  for (int y = 0; y < height; ++y) {
    const std::string& label = y == 0 ? top : y == height - 1 ? bottom : std::string();
    rows.push_back(fmt::format("{:>{}} |{}", label, labels, canvas.row(y)));
  }
  rows.push_back(
      fit_columns(std::string(labels + 2, ' ') + axis_row(first_x, x_name, last_x, inside), width));
  return rows;
}

int text_columns(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xc0U) != 0x80U;
  }));
}

std::string fit_columns(std::string_view text, int width) {
  std::string result;
  int columns = 0;
  for (const char letter : text) {
    const bool starts = (static_cast<unsigned char>(letter) & 0xc0U) != 0x80U;
    if (starts && columns == width) break;
    columns += starts ? 1 : 0;
    result += letter;
  }
  if (columns < width) result.append(static_cast<std::size_t>(width - columns), ' ');
  return result;
}

}  // namespace scaletrain::observe
