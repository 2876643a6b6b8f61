// The web page's files (actors/api/web, dygraphs and its licence), compiled into the binary
// by actors/api/web/embed.py. Who may see them, and how they travel by HTTP, is decided
// elsewhere (http_door.h, web_page.h).
#pragma once

#include <span>
#include <string_view>

namespace tandem::api {

// All views are of constant data of the program.
struct WebAsset {
  std::string_view path;          // "/", "/assets/app.js", "/licences.txt"; "/unauthorized" is for
                                  // those who may not see "/"
  std::string_view content_type;  // with its charset
  std::string_view etag;          // strong, with its quotes: a digest of `bytes`
  std::string_view bytes;
  std::string_view gzip;  // the same compressed, or empty where that saves next to nothing
};

std::span<const WebAsset> web_assets();
const WebAsset* find_web_asset(std::string_view path);  // null: there is none

}  // namespace tandem::api
