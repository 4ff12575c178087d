// The tasks of a job array: "0-3" is 0, 1, 2, 3; "1,5-9:2%2" is 1, 5, 7, 9, two at a time.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

// The numbers in their order. Throws core::UsageError where the text is no such list, names a task
// twice or has more than 10,000 tasks.
std::vector<int> array_tasks(const std::string& text);

// `text` with every %a replaced by the number of the task.
std::string for_task(std::string text, int task);

}  // namespace scaletrain::launcher
