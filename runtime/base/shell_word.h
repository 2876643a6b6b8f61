// Texts as words of a shell's command line.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// `text` as one word: as it is where no character means anything to a shell, else in single quotes.
std::string shell_word(std::string_view text);

}  // namespace tandem
