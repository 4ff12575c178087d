// Curves as rows of text: sparklines of block characters and charts of braille dots.
//
// Pure functions: no terminal, no colour. Values that are not finite are left out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::observe {

struct PlotPoint {
  double x = 0, y = 0;
};

// Returns at most `most` points: the mean of each of `most` runs of neighbours of equal length.
std::vector<PlotPoint> downsample(const std::vector<PlotPoint>& points, int most);

// Returns at most `width` block characters, the lowest value as "▁" and the highest as "█"; "" if
// no value is finite. Equal values give the lowest block.
std::string sparkline(const std::vector<double>& values, int width);

enum class Scale { kLinear, kLogarithmic };

// Text of a value at the y axis.
using AxisText = std::function<std::string(double value)>;

// Returns `height` rows of `width` columns each, and a last row with the first and the last x. The
// first and the last row of the chart have the highest and the lowest y at the left edge. Empty if
// no point is finite or there is no room (width below 16, height below 2). The points are sorted
// by x. A logarithmic x axis leaves out points whose x is not above 0. `y_text` defaults to four
// significant digits. `x_name` stands between the first and the last x if there is room.
std::vector<std::string> draw_chart(const std::vector<PlotPoint>& points, int width, int height,
                                    Scale x_axis = Scale::kLinear, const AxisText& y_text = nullptr,
                                    std::string_view x_name = "");

// Returns the columns of a UTF-8 text whose characters are one column wide.
int text_columns(std::string_view text);
// Cuts or pads a text to exactly `width` columns.
std::string fit_columns(std::string_view text, int width);

}  // namespace scaletrain::observe
