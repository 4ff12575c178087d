// Task numbers of a job array: "0-3" is 0, 1, 2, 3; "1,5-9:2%2" is 1, 5, 7, 9, two at a time.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

// Returns the numbers in order. Throws core::UsageError if the text is not such a list, repeats a
// task or has more than 10,000 tasks.
std::vector<int> array_tasks(const std::string& text);

// Replaces every %a in `text` by the task number.
std::string for_task(std::string text, int task);

}  // namespace scaletrain::launcher
